"""Criteria of workload_sla."""

from __future__ import annotations

from moeplan.model.plan import Criterion, Objectives
from moeplan.planning.criteria.rule import Criteria, criterion
from moeplan.planning.samples import sample_need
from moeplan.units import NS_PER_MS

__all__ = ["sla_criteria"]

LEAST_TRIALS = 3
"""Trials a run needs; each is judged alone."""
_TRIAL = ("serving_trial",)


def sla_criteria(
    target_ttft_ms: int,
    target_inter_token_ms: int,
    concurrency: int,
    input_tokens: int,
    output_tokens: int,
    prefix_cache_share: int | None,
    objectives: Objectives,
    speculative: bool,
) -> Criteria:
    """Return the criteria of ``workload_sla``.

    ``prefix_cache_share`` is in basis points, None where undeclared; ``speculative``: a draft model speculates, so that
    a chunk may carry several tokens.
    """
    need = sample_need(95, concurrency, target_ttft_ms, target_inter_token_ms, output_tokens)
    samples = (need.requests, need.seconds)
    return (
        _trial("ttft", "ttft_p95", "ttft_p95_ns", "le", target_ttft_ms * NS_PER_MS, "ns", samples),
        _trial(
            "inter_token", "chunk_gap_p95", "chunk_gap_p95_ns", "le", target_inter_token_ms * NS_PER_MS, "ns", samples
        ),
        _trial("sustained_load", "concurrency", "concurrency_sustained", "ge", concurrency, "requests"),
        _FAILED_REQUESTS,
        _trial("sustained_load", "input_tokens", "input_tokens_least", "ge", input_tokens, "tokens"),
        _trial("sustained_load", "output_tokens_least", "output_tokens_least", "ge", output_tokens, "tokens"),
        _trial("sustained_load", "output_tokens_most", "output_tokens_most", "le", output_tokens, "tokens"),
        _trial(
            "sustained_load",
            "prefix_cache_share",
            "prefix_cache_share_basis_points",
            "le",
            prefix_cache_share,
            "basis_points",
        ),
        *_COUNTERS_AND_TRIALS,
    )


def _trial(
    clause: str,
    name: str,
    metric: str,
    comparator: str,
    limit: int | None,
    unit: str,
    samples: tuple[int, int] | None = None,
) -> Criterion:
    aggregation = "each_trial" if samples is None else "p95_each_trial"
    return criterion(clause, f"sla.{name}", metric, aggregation, comparator, limit, unit, _TRIAL, "declared", samples)


_FAILED_REQUESTS = _trial("sustained_load", "failed_requests", "failed_requests", "le", 0, "requests")
_COUNTERS_AND_TRIALS = (
    _trial("sustained_load", "engine_counters", "engine_counter_differences", "le", 0, "count"),
    criterion("sustained_load", "sla.trials", "complete_trials", "sum", "ge", LEAST_TRIALS, "count", _TRIAL),
)
