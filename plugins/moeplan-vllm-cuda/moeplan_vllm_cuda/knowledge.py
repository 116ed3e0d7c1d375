"""What the plugin brings to the reading of manifests, and its facts with vLLM's own."""

from __future__ import annotations

from functools import cache

from moeplan_vllm.facts import vllm_facts
from moeplan_vllm.families import architecture, recognises
from moeplan_vllm.programs import IMAGES, role_of, vllm_programs

from moeplan.facts.files import read_fact_files
from moeplan.facts.launches import Knowledge
from moeplan.facts.model import FactSet
from moeplan_vllm_cuda.naming import ORIGIN, PACKAGE
from moeplan_vllm_cuda.recognising import profile_of
from moeplan_vllm_cuda.rules.derived import DERIVED

__all__ = ["cuda_facts", "knowledge"]


@cache
def cuda_facts() -> FactSet:
    """Return all facts: NVIDIA's, joined with those of vLLM itself."""
    return read_fact_files(PACKAGE, ORIGIN).joined(vllm_facts())


@cache
def knowledge() -> Knowledge:
    """Return what reads manifests for this plugin."""
    return Knowledge(
        programs=vllm_programs(),
        versioned=IMAGES,
        role=role_of,
        profile=profile_of,
        model=architecture,
        derived=DERIVED,
        recognises=recognises,
    )
