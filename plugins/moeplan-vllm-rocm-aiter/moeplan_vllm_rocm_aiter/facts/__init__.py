"""The facts of vLLM on AMD Instinct with ROCm and AITER, joined with those of Infera and of vLLM itself."""

from __future__ import annotations

from functools import cache

from moeplan_infera.facts import infera_facts
from moeplan_vllm.facts import read_fact_files, vllm_facts

from moeplan.facts.model import FactSet

__all__ = ["ORIGIN", "all_facts", "recipe_facts"]

ORIGIN = "moeplan-vllm-rocm-aiter"


@cache
def recipe_facts() -> FactSet:
    """Return the facts of Infera's recipes: this distribution's and those of ``moeplan_infera``."""
    return read_fact_files("moeplan_vllm_rocm_aiter.facts", ORIGIN).joined(infera_facts())


@cache
def all_facts() -> FactSet:
    """Return every fact that a finding or a log signature of this plugin may bear."""
    return recipe_facts().joined(vllm_facts())
