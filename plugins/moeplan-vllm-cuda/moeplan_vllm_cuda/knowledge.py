"""What the plugin brings to the reading of manifests, its facts with vLLM's own, and whose a manifest is."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from moeplan_vllm.facts import read_fact_files, vllm_facts
from moeplan_vllm.families import architecture
from moeplan_vllm.programs import IMAGES, role_of, vllm_programs

from moeplan.facts.launches import Knowledge
from moeplan.facts.model import FactSet
from moeplan_vllm_cuda.profiles import profile_of
from moeplan_vllm_cuda.rules.derived import DERIVED

__all__ = ["NAME", "cuda_facts", "knowledge", "owns"]

NAME = "vllm-cuda"
"""The entry point's name: the plugin's."""
_ORIGIN = "moeplan-vllm-cuda"

_VLLM = re.compile(r"vllm['\", \s]+serve\b|vllm\.entrypoints\.|vllm-openai|\bvllm serve\b")
_INFERA = re.compile(r"inferadeployment|infera\.engine|infera-exec|infera\.server")
_OTHERS = re.compile(
    r"amd\.com/gpu|vllm-openai-rocm|vllm-openai-cpu|vllm-openai-xpu|/dev/kfd|vllm_rocm_|rocm/vllm|hsa_|hip_visible"
    r"|vllm_cpu_|vllm_target_device|google\.com/tpu|habana\.ai/gaudi|gpu\.intel\.com|aiter|sglang"
)
"""Words of other accelerators, other engines and other plugins. A plain ``vllm serve`` runs on NVIDIA GPUs: that is
vLLM's own default. Source: vLLM documentation, "Installation": the released wheel is CUDA's."""


@cache
def cuda_facts() -> FactSet:
    """Return all facts: NVIDIA's, joined with those of vLLM itself."""
    return read_fact_files("moeplan_vllm_cuda.facts", _ORIGIN).joined(vllm_facts())


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
    )


def owns(manifest: Any) -> bool | None:
    """Return whether a manifest or script runs vLLM on NVIDIA GPUs; None where it asks for one and shows no engine."""
    text = (manifest if isinstance(manifest, str) else repr(manifest)).lower()
    if _INFERA.search(text) or _OTHERS.search(text):
        return False
    if _VLLM.search(text):
        return True
    return None if "nvidia.com/gpu" in text else False
