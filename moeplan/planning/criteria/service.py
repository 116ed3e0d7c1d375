"""Criteria of workload_sla."""

from __future__ import annotations

from moeplan.model.plan import Criterion, Objectives, QualityReference, quality_criterion
from moeplan.planning.criteria.rule import Criteria, criterion
from moeplan.planning.samples import sample_need
from moeplan.units import NS_PER_MS

__all__ = ["sla_criteria"]

LEAST_TRIALS = 3
"""Trials a run needs; each is judged alone."""
MOST_DRIFT_BASIS_POINTS = 2500
"""A quarter of the median: how far apart the medians of a trial's quarters may lie."""
LEAST_REQUESTS_PER_STREAM = 10
"""So the requests that all streams send at once at the start are at most a tenth."""
MOST_OVERHEAD_BASIS_POINTS = 1000
"""A tenth: how much longer than the engine the client may find the mean request."""
MOST_LATE_BASIS_POINTS = 500
"""The share that a 95th percentile leaves above its limit."""
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
    token_ns = target_inter_token_ms * NS_PER_MS
    return (
        _quantile("ttft", "ttft_p95", "ttft_p95_ns", target_ttft_ms * NS_PER_MS, samples),
        _quantile("inter_token", "chunk_gap_p95", "chunk_gap_p95_ns", None if speculative else token_ns, samples),
        _quantile("inter_token", "tpot_p95", "tpot_p95_ns", token_ns if speculative else None, samples),
        _goodput(objectives.goodput_basis_points_at_least),
        _trial("concurrency", "concurrency_sustained", "ge", concurrency, "requests"),
        _FAILED_REQUESTS,
        _trial("input_tokens", "input_tokens_least", "ge", input_tokens, "tokens"),
        _trial("output_tokens_least", "output_tokens_least", "ge", output_tokens, "tokens"),
        _trial("output_tokens_most", "output_tokens_most", "le", output_tokens, "tokens"),
        _trial("prefix_cache_share", "prefix_cache_share_basis_points", "le", prefix_cache_share, "basis_points"),
        *_FIT_AND_COUNTED,
        *(_quality(reference) for reference in objectives.quality),
    )


def _trial(name: str, metric: str, comparator: str, limit: int | None, unit: str) -> Criterion:
    return criterion("sustained_load", f"sla.{name}", metric, "each_trial", comparator, limit, unit, _TRIAL)


def _quantile(clause: str, name: str, metric: str, limit: int | None, samples: tuple[int, int]) -> Criterion:
    comparator, need = ("reported", None) if limit is None else ("le", samples)
    return criterion(clause, f"sla.{name}", metric, "p95_each_trial", comparator, limit, "ns", _TRIAL, "declared", need)


def _goodput(limit: int | None) -> Criterion:
    comparator = "reported" if limit is None else "ge"
    return _trial("goodput", "goodput_basis_points", comparator, limit, "basis_points")


def _quality(reference: QualityReference) -> Criterion:
    return criterion(
        "quality",
        quality_criterion(reference),
        "quality_deficit_basis_points",
        "all_records",
        "le",
        reference.margin_basis_points,
        "basis_points",
        ("quality_result",),
    )


_FAILED_REQUESTS = _trial("failed_requests", "failed_requests", "le", 0, "requests")
_FIT_AND_COUNTED = (
    _trial("steady_state", "steady_state_drift_basis_points", "le", MOST_DRIFT_BASIS_POINTS, "basis_points"),
    _trial("length", "requests_per_stream", "ge", LEAST_REQUESTS_PER_STREAM, "requests"),
    _trial("client", "client_overhead_basis_points", "le", MOST_OVERHEAD_BASIS_POINTS, "basis_points"),
    _trial("warmup", "warmup_late_share_basis_points", "le", MOST_LATE_BASIS_POINTS, "basis_points"),
    _trial("engine_counters", "engine_counter_differences", "le", 0, "count"),
    criterion("sustained_load", "sla.trials", "complete_trials", "sum", "ge", LEAST_TRIALS, "count", _TRIAL),
)
