"""The facts of vLLM on AMD Instinct with ROCm and AITER, joined with those of Infera and of vLLM itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from moeplan_infera.facts import ORIGIN as INFERA
from moeplan_infera.facts import infera_facts
from moeplan_vllm.facts import ORIGIN as VLLM
from moeplan_vllm.facts import read_fact_files, vllm_facts

from moeplan.facts.model import FactSet
from moeplan.model.plugin import FindingRule

__all__ = ["ORIGIN", "all_facts", "finding_rules", "recipe_facts"]

ORIGIN = "moeplan-vllm-rocm-aiter"
_PACKAGES = {"moeplan_vllm_rocm_aiter.facts": ORIGIN, "moeplan_infera.facts": INFERA, "moeplan_vllm.facts": VLLM}


@cache
def recipe_facts() -> FactSet:
    """Return the facts of Infera's recipes: this distribution's and those of ``moeplan_infera``."""
    return read_fact_files("moeplan_vllm_rocm_aiter.facts", ORIGIN).joined(infera_facts())


@cache
def all_facts() -> FactSet:
    """Return every fact that a finding or a log signature of this plugin may bear."""
    return recipe_facts().joined(vllm_facts())


@cache
def finding_rules() -> tuple[FindingRule, ...]:
    """Return the id of every fact with its origin, without reading more of the facts: each command asks for that."""
    return tuple(_rules())


def _rules() -> Iterator[FindingRule]:
    for package, origin in _PACKAGES.items():
        for entry in sorted(files(package).iterdir(), key=lambda one: one.name):
            if entry.name.endswith(".json"):
                yield from (FindingRule(row["id"], origin) for row in json.loads(entry.read_bytes()))
