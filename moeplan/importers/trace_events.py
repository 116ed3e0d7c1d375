"""What an event of a torch profiler trace is part of, by its name: data, each line with its source."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

__all__ = ["PARTS", "part_of", "step_names"]

PARTS = ("all_to_all_ns", "collective_ns", "routing_ns")
"""The parts of a step that events tell apart; where two go on at once the first counts."""

_EVENTS: tuple[tuple[str, str, str], ...] = (
    # All-to-all: tokens travel to the ranks that hold their experts, and back.
    (
        "all_to_all_ns",
        r"gloo:all_to_all|nccl:all_to_all.*|c10d::alltoall.*",
        "torch 2.13 profiler, gloo and NCCL groups",
    ),
    (
        "all_to_all_ns",
        r"ncclDevKernel_SendRecv.*|ncclKernel_SendRecv.*",
        "NCCL: an all-to-all is send and receive, as pipeline sends are",
    ),
    ("all_to_all_ns", r"(?:void )?deep_ep::(?:intranode|internode|internode_ll)::.*", "DeepEP, csrc/kernels"),
    (
        "all_to_all_ns",
        r"(?:void )?Ep(?:Dispatch|Combine)\w*.*|(?:void )?mori::moe::Ep\w+.*",
        "MoRI, src/ops/dispatch_combine",
    ),
    # Other collectives.
    (
        "collective_ns",
        r"gloo:\w+|nccl:\w+|c10d::all\w+|c10d::\w*(?:reduce|gather|broadcast|scatter)\w*",
        "torch 2.13 profiler",
    ),
    ("collective_ns", r"nccl(?:Dev)?Kernel_\w+.*", "NCCL and RCCL, device kernels"),
    ("collective_ns", r"vllm::(?:all_reduce|all_gather|reduce_scatter)", "vLLM 0.32, distributed/parallel_state.py"),
    ("collective_ns", r"_C::shm_(?:allreduce|all_gather|gather|send_tensor_list)", "vLLM 0.32, cpu_communicator.py"),
    ("collective_ns", r"(?:void )?vllm::cross_device_reduce_[12]stage.*", "vLLM 0.32, csrc/custom_all_reduce.cuh"),
    ("collective_ns", r"(?:void )?aiter::cross_device_reduce_[12]stage.*", "aiter, csrc/include/custom_all_reduce.cuh"),
    # Routing: which experts a token selects, and putting tokens in the order of their experts.
    ("routing_ns", r"aten::topk", "vLLM 0.32 on CPU: the router's top-k, seen once a layer and step"),
    ("routing_ns", r"_C::(?:biased|hash)_topk\w*", "vLLM 0.32, CPU operators"),
    (
        "routing_ns",
        r"_moe_C::(?:topk_\w+|grouped_topk|moe_align_block_size|batched_moe_align_block_size|moe_permute\w*"
        r"|moe_prepare_scatter|shuffle_rows)",
        "vLLM 0.32, torch.ops._moe_C",
    ),
    ("routing_ns", r"vllm::\w*(?:grouped_topk|topk_softmax|topk_sigmoid|fused_topk)\w*", "vLLM 0.32, _aiter_ops.py"),
    (
        "routing_ns",
        r"(?:void )?vllm::moe::(?:topk\w*|moeSoftmax|moeTopK|moeSigmoid|grouped_topk\w*|moe_align_block_size\w*"
        r"|count_and_sort_expert_tokens\w*).*",
        "vLLM, csrc/moe",
    ),
    ("routing_ns", r"(?:void )?moe_fused_gate\w*.*", "SGLang, sgl-kernel/csrc/moe"),
)
"""Part, whole name as a pattern, source."""

_PATTERNS = tuple((part, re.compile(pattern)) for part, pattern, _source in _EVENTS)
_IDLE = "execute_context_0(0)_generation_0(0)"
"""A step without tokens."""
_STEPS = re.compile(r"execute_context_[0-9].*|execute_[0-9].*|execute_new_[0-9]+_cached_[0-9]+|ProfilerStep#[0-9]+")
"""Names of steps. Sources: vLLM 0.32, v1/worker/gpu_worker.py, annotate_profile; torch.profiler.schedule."""


@lru_cache(maxsize=65_536)
def part_of(name: str) -> str | None:
    """Return the part that events of a name belong to, or None: they belong to the rest."""
    return next((part for part, pattern in _PATTERNS if pattern.fullmatch(name)), None)


def step_names(prefix: str | None) -> Callable[[str], bool]:
    """Return what tells whether a name is that of a step: one known here, or one that begins with ``prefix``."""
    if prefix is not None:
        return lambda name: name.startswith(prefix)
    return lambda name: name != _IDLE and _STEPS.fullmatch(name) is not None
