"""Criteria of routing_health."""

from __future__ import annotations

from moeplan.model.plan import Criterion, Objectives
from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["routing_criteria"]

_EXPERTS = ("expert_counts",)
_TRACE = ("communication_trace",)


def routing_criteria(objectives: Objectives) -> Criteria:
    """Return the criteria of ``routing_health``; what no objective limits is reported."""
    ratio = objectives.expert_load_ratio_basis_points_at_most
    return (
        *_BELIEVED,
        _limited("load_ratio", "expert_load_ratio_basis_points", ratio),
        _limited("load_ratio_peak", "expert_load_ratio_peak_basis_points", ratio),
        *_REPORTED,
        *_COMMUNICATION,
    )


def _none(name: str, metric: str, types: tuple[str, ...] = _EXPERTS) -> Criterion:
    return criterion("expert_load", f"routing.{name}", metric, "sum", "le", 0, "count", types)


def _limited(name: str, metric: str, limit: int | None) -> Criterion:
    comparator = "reported" if limit is None else "le"
    return criterion(
        "expert_load", f"routing.{name}", metric, "all_records", comparator, limit, "basis_points", _EXPERTS
    )


def _reported(
    name: str, metric: str, unit: str, clause: str = "expert_load", types: tuple[str, ...] = _EXPERTS
) -> Criterion:
    aggregation = "all_records" if unit == "basis_points" else "sum"
    return criterion(clause, f"routing.{name}", metric, aggregation, "reported", None, unit, types)


_BELIEVED = (
    _none("expert_load", "expert_layers_without_counts", ("expert_counts", "checkpoint_manifest")),
    _none("conservation", "routing_conservation_difference"),
    _none("sample_size", "expert_layers_short_of_tokens"),
)
_REPORTED = (
    _reported("effective_experts", "expert_effective_share_basis_points", "basis_points"),
    _reported("inactive_experts", "expert_inactive_share_basis_points", "basis_points"),
    _reported("hot_experts", "hot_experts", "count"),
    _reported("dead_experts", "dead_experts", "count"),
    _none("dropped_tokens", "dropped_tokens_unreported"),
    _reported("dropped_tokens_sum", "dropped_tokens", "tokens"),
)
_COMMUNICATION = (
    criterion("communication", "routing.communication", "communication_samples", "sum", "ge", 1, "count", _TRACE),
    _reported("routing_time", "routing_time_share_basis_points", "basis_points", "communication", _TRACE),
    _reported("all_to_all", "all_to_all_share_basis_points", "basis_points", "communication", _TRACE),
)
