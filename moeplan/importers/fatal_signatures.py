"""Lines that say an engine failed, whatever its plugin: each a few regular expressions, told apart by cause."""

from __future__ import annotations

import re

from moeplan.evaluation.engine_logs import FATAL_PREFIX

__all__ = ["FATAL_PREFIX", "FATAL_SIGNATURES", "fatal_causes"]

FATAL_SIGNATURES: dict[str, tuple[str, ...]] = {
    "unsupported_architecture": (
        r"Model architectures .* are not supported for now",
        r"does not recognize this architecture",
        r"Cannot find model module",
        r"has no vLLM implementation and the Transformers implementation is not compatible",
    ),
    "out_of_memory": (
        r"\b(CUDA|HIP|XPU|NPU) out of memory",
        r"\b(torch\.)?(cuda\.)?OutOfMemoryError\b",
        r"No available memory for the cache blocks",
        r"larger than the available KV cache memory",
        r"is less than desired GPU memory utilization",
        r"DefaultCPUAllocator: can't allocate memory",
        r"std::bad_alloc",
    ),
    "killed_for_memory": (r"\bOOMKilled\b", r"Out of memory: Killed process", r"oom-kill:"),
    "missing_kernel": (
        r"no kernel image is available",
        r"hipErrorNoBinaryForGpu",
        r"HSA_STATUS_ERROR_INVALID_ISA",
        r"No valid attention backend found",
        r"No .{1,40} MoE backend supports the deployment configuration",
    ),
    "device_fault": (
        r"illegal memory access was encountered",
        r"Memory access fault by GPU",
        r"HSA_STATUS_ERROR_(EXCEPTION|MEMORY_APERTURE_VIOLATION)",
        r"device-side assert triggered",
    ),
    "engine_died": (
        r"Engine core initialization failed",
        r"EngineCore failed to start",
        r"EngineCore (encountered|hit) (a fatal error|an issue|an exception)",
        r"\bEngineDeadError\b",
        r"died unexpectedly",
    ),
}
"""Regular expressions by cause. Source: vLLM 0.32.0, ``v1/engine/{core,utils,exceptions}.py``,
``v1/executor/*_executor*.py``, ``v1/core/kv_cache_utils.py``, ``v1/worker/utils.py``,
``model_executor/models/registry.py``, ``platforms/{cuda,rocm}.py``; PyTorch's, CUDA's, ROCr's and Linux's own words.
"""

_ALL = {cause: re.compile("|".join(texts)) for cause, texts in FATAL_SIGNATURES.items()}
_ANY = re.compile("|".join(f"(?:{text})" for texts in FATAL_SIGNATURES.values() for text in texts))


def fatal_causes(text: str) -> tuple[str, ...]:
    """Return the causes that a line names, none for most; a line about a request's own text names none."""
    if _ANY.search(text) is None or "Received request" in text:
        return ()
    return tuple(cause for cause, pattern in _ALL.items() if pattern.search(text))
