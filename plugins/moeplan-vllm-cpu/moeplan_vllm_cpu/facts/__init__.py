"""What is known of vLLM on CPUs: facts as data, joined with those of vLLM itself."""

from __future__ import annotations

from functools import cache

from moeplan_vllm.facts import vllm_facts

from moeplan.facts.files import read_fact_files
from moeplan.facts.model import FactSet

__all__ = ["ORIGIN", "all_facts"]

ORIGIN = "moeplan-vllm-cpu"


@cache
def all_facts() -> FactSet:
    """Return every fact that a finding or a log signature of this plugin may bear."""
    return read_fact_files("moeplan_vllm_cpu.facts", ORIGIN).joined(vllm_facts())
