"""Metrics of the hand-over of KV cache from prefill to decode; plugins' criteria of ``workload_sla`` ask for them."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, Metric

__all__ = ["METRICS"]

_PER_PROCESS = "one decode process; nothing is assumed about others"

METRICS = (
    Metric(
        "external_prefix_cache_hit_basis_points",
        "prompt tokens taken from prefill",
        "basis_points",
        "Share of a decode process's prompt tokens whose KV cache another process handed over.",
        "least over decode processes of the growth of external prefix-cache hits of the growth of prompt tokens, "
        "rounded down",
        _PER_PROCESS,
        "vLLM 0.32, vllm:external_prefix_cache_hits",
    ),
    Metric(
        "decode_prompt_tokens_computed_basis_points",
        "prompt tokens computed by decode",
        "basis_points",
        "Share of its prompt tokens that a decode process computed itself.",
        "most over decode processes of the growth of prompt tokens computed locally of the growth of prompt tokens, "
        "rounded up",
        _PER_PROCESS,
        MOEPLAN,
    ),
)
