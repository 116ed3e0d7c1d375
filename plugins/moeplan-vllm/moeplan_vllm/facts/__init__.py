"""The facts of vLLM that hold on every accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moeplan.facts.files import read_fact_files

if TYPE_CHECKING:
    from moeplan.facts.model import FactSet

__all__ = ["ORIGIN", "PACKAGE", "vllm_facts"]

ORIGIN = "moeplan-vllm"
"""The distribution these facts belong to."""
PACKAGE = "moeplan_vllm.facts"
"""The package that holds their files."""


def vllm_facts() -> FactSet:
    """Return the facts of vLLM itself; those of an accelerator stand in its plugin."""
    return read_fact_files(PACKAGE, ORIGIN)
