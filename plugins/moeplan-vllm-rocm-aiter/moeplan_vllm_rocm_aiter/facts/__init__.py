"""The facts of vLLM on AMD Instinct with ROCm and AITER, joined with those of Infera and of vLLM itself."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import moeplan_infera.facts as infera
import moeplan_vllm.facts as vllm

from moeplan.facts.files import read_fact_files, rules_of

if TYPE_CHECKING:
    from moeplan.facts.model import FactSet
    from moeplan.model.plugin import FindingRule

__all__ = ["ORIGIN", "PACKAGE", "all_facts", "finding_rules", "recipe_facts"]

ORIGIN = "moeplan-vllm-rocm-aiter"
"""The distribution these facts belong to."""
PACKAGE = "moeplan_vllm_rocm_aiter.facts"
"""The package that holds their files."""


@cache
def recipe_facts() -> FactSet:
    """Return the facts of Infera's recipes: this distribution's and those of ``moeplan_infera``."""
    return read_fact_files(PACKAGE, ORIGIN).joined(infera.infera_facts())


@cache
def all_facts() -> FactSet:
    """Return every fact that a finding or a log signature of this plugin may bear."""
    return recipe_facts().joined(vllm.vllm_facts())


def finding_rules() -> tuple[FindingRule, ...]:
    """Return the id of every fact with its origin, without reading more of the facts: each command asks for that.

    The preflight's own are among them: the plugin reads what it writes.
    """
    from moeplan_infera.preflight import hooks as preflight

    own, shared = rules_of(PACKAGE, ORIGIN), rules_of(infera.PACKAGE, infera.ORIGIN)
    return (*own, *shared, *rules_of(vllm.PACKAGE, vllm.ORIGIN), *preflight.rules())
