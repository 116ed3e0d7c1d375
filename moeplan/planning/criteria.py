"""The core's criteria: declarative rules, each with the limit that the scenario sets. One function a gate."""

from __future__ import annotations

from moeplan.model.plan import Criterion, SampleNeed
from moeplan.planning.samples import sample_need
from moeplan.units import NS_PER_MS

__all__ = [
    "artifact_criteria",
    "economics_criteria",
    "load_criteria",
    "memory_criteria",
    "residency_criteria",
    "routing_criteria",
    "sla_criteria",
]

LEAST_TRIALS = 3
"""Trials a run needs; each is judged alone."""
MEMORY_PHASES = 3
"""Idle, warm and peak."""

_MANIFEST = ("checkpoint_manifest",)
_TRIAL = ("serving_trial",)
_MEMORY = ("memory_series",)
_EXPERTS = ("expert_counts",)

Criteria = tuple[Criterion, ...]


def _criterion(
    clause: str,
    id: str,
    metric: str,
    aggregation: str,
    comparator: str,
    limit: int | str | None,
    unit: str,
    types: tuple[str, ...],
    binding: str = "declared",
    need: tuple[int, int] | None = None,
) -> Criterion:
    samples = None if need is None else SampleNeed(*need)
    return Criterion(
        id,
        metric,
        aggregation,
        comparator,
        limit,
        unit,
        types,
        binding,
        "inconclusive",
        "moeplan",
        clause,
        samples,
    )


def artifact_criteria(identity: str, root: str | None) -> Criteria:
    """Return the criteria of ``artifact_integrity``.

    Args:
        identity: ``<repository>@<revision>``.
        root: root digest of the exact checkpoint, or None where none was digested.
    """
    both = ("checkpoint_digest", "serving_trial")
    return (
        _criterion(
            "resolve_artifact",
            "artifact.revision_identity",
            "checkpoint_revision",
            "exact",
            "eq",
            identity,
            "identity",
            _MANIFEST,
        ),
        _criterion(
            "digests_before_execution",
            "artifact.files_digested",
            "checkpoint_root",
            "exact",
            "eq",
            root,
            "digest",
            _MANIFEST,
        ),
        _criterion(
            "digests_before_execution",
            "artifact.digest_before_execution",
            "digest_lead_seconds",
            "all_records",
            "ge",
            0,
            "s",
            both,
            "hashed",
        ),
    )


def residency_criteria(requested: int, usable_bytes: int | None) -> Criteria:
    """Return the criteria of ``static_residency``.

    Args:
        requested: accelerators asked for.
        usable_bytes: bytes of all of them after the reserve, or None where unknown.
    """
    return (
        _criterion(
            "residency_floor",
            "residency.planned_floor",
            "minimum_accelerators",
            "exact",
            "le",
            requested,
            "accelerators",
            (),
        ),
        _criterion(
            "residency_floor",
            "residency.exact_tensor_bytes",
            "checkpoint_tensor_bytes",
            "exact",
            "le",
            usable_bytes,
            "bytes",
            _MANIFEST,
        ),
    )


def load_criteria() -> Criteria:
    """Return the criteria of ``runtime_load``."""
    log = ("engine_log",)
    environment = ("environment",)
    return (
        _criterion("ready_state", "load.ready", "engine_ready", "exact", "eq", "ready", "state", log),
        _criterion("ready_state", "load.fatal_signatures", "fatal_log_signatures", "sum", "le", 0, "count", log),
        _criterion(
            "environment_recorded",
            "load.environment",
            "environment_parts_missing",
            "sum",
            "le",
            0,
            "count",
            environment,
        ),
    )


_PHASES = _criterion(
    "memory_phases", "memory.phases", "memory_phases_captured", "sum", "ge", MEMORY_PHASES, "count", _MEMORY
)
_WORKLOAD_AND_PARTS = (
    _criterion(
        "memory_workload",
        "memory.workload",
        "workload_requests_in_capture",
        "sum",
        "ge",
        1,
        "count",
        ("memory_series", "serving_trial"),
    ),
    _criterion("memory_parts", "memory.parts", "memory_parts_missing", "sum", "le", 0, "count", _MEMORY),
)


def memory_criteria(device_bytes: int | None) -> Criteria:
    """Return the criteria of ``memory_envelope``; ``device_bytes`` is one device's memory, None where unknown."""
    peak = _criterion(
        "memory_phases",
        "memory.device_peak",
        "device_memory_peak_bytes",
        "all_records",
        "le",
        device_bytes,
        "bytes",
        _MEMORY,
    )
    return (_PHASES, peak, *_WORKLOAD_AND_PARTS)


def sla_criteria(
    target_ttft_ms: int,
    target_inter_token_ms: int,
    concurrency: int,
    input_tokens: int,
    output_tokens: int,
    prefix_cache_share: int | None,
) -> Criteria:
    """Return the criteria of ``workload_sla``; ``prefix_cache_share`` is in basis points, None where undeclared."""
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
    return _criterion(clause, f"sla.{name}", metric, aggregation, comparator, limit, unit, _TRIAL, "declared", samples)


_FAILED_REQUESTS = _trial("sustained_load", "failed_requests", "failed_requests", "le", 0, "requests")
_COUNTERS_AND_TRIALS = (
    _trial("sustained_load", "engine_counters", "engine_counter_differences", "le", 0, "count"),
    _criterion("sustained_load", "sla.trials", "complete_trials", "sum", "ge", LEAST_TRIALS, "count", _TRIAL),
)


def routing_criteria() -> Criteria:
    """Return the criteria of ``routing_health``."""
    trace = ("communication_trace",)
    return (
        _criterion(
            "expert_load", "routing.expert_load", "expert_layers_without_counts", "sum", "le", 0, "count", _EXPERTS
        ),
        _criterion(
            "expert_load", "routing.dropped_tokens", "dropped_tokens_unreported", "sum", "le", 0, "count", _EXPERTS
        ),
        _criterion("communication", "routing.communication", "communication_samples", "sum", "ge", 1, "count", trace),
    )


def economics_criteria(availability: str) -> Criteria:
    """Return the criteria of ``economics_resilience``; ``ha`` adds that a worker's failure loses no request."""
    timeline = ("failure_timeline",)
    priced = ("price", "serving_trial")
    single = (
        _criterion("cost", "economics.cost_inputs", "cost_inputs_missing", "sum", "le", 0, "count", priced),
        _criterion(
            "worker_failure",
            "resilience.failure_recorded",
            "worker_failures_recorded",
            "sum",
            "ge",
            1,
            "count",
            timeline,
        ),
    )
    if availability == "single":
        return single
    lost = _criterion(
        "worker_failure",
        "resilience.requests_lost",
        "requests_lost_in_failure",
        "sum",
        "le",
        0,
        "requests",
        timeline,
    )
    return (*single, lost)
