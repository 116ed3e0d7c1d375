"""What the plugin, its distribution and its fact files are called, and whose a manifest is."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["NAME", "ORIGIN", "PACKAGE", "owns"]

NAME = "vllm-cuda"
"""The entry point's name: the plugin's."""
ORIGIN = "moeplan-vllm-cuda"
"""The distribution."""
PACKAGE = "moeplan_vllm_cuda.facts"
"""The package that holds the fact files."""

_VLLM = re.compile(r"vllm['\", \s]+serve\b|vllm\.entrypoints\.|vllm-openai|\bvllm serve\b")
_INFERA = re.compile(r"inferadeployment|infera\.engine|infera-exec|infera\.server")
_OTHERS = re.compile(
    r"amd\.com/gpu|vllm-openai-rocm|vllm-openai-cpu|vllm-openai-xpu|/dev/kfd|vllm_rocm_|rocm/vllm|hsa_|hip_visible"
    r"|vllm_cpu_|vllm_target_device|google\.com/tpu|habana\.ai/gaudi|gpu\.intel\.com|aiter|sglang"
)
"""Words of other accelerators, other engines and other plugins. A plain ``vllm serve`` runs on NVIDIA GPUs: that is
vLLM's own default. Source: vLLM documentation, "Installation": the released wheel is CUDA's."""


def owns(manifest: Any) -> bool | None:
    """Return whether a manifest or script runs vLLM on NVIDIA GPUs; None where it asks for one and shows no engine."""
    text = (manifest if isinstance(manifest, str) else repr(manifest)).lower()
    if _INFERA.search(text) or _OTHERS.search(text):
        return False
    if _VLLM.search(text):
        return True
    return None if "nvidia.com/gpu" in text else False
