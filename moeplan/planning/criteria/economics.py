"""Criteria of economics_resilience."""

from __future__ import annotations

from moeplan.model.plan import Criterion, Objectives
from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["economics_criteria"]

_TIMELINE = ("failure_timeline",)
_PRICED = ("price", "serving_trial")


def economics_criteria(availability: str, objectives: Objectives) -> Criteria:
    """Return the criteria of ``economics_resilience``; what no objective limits is reported.

    ``ha`` asks that a worker's failure loses no request, and that requests are served while it lasts.
    """
    cost, restart = objectives.cost_micros_per_million_tokens_at_most, objectives.restart_within_seconds
    rules = (
        criterion("cost", "economics.cost_inputs", "cost_inputs_missing", "sum", "le", 0, "count", _PRICED),
        _limited("cost", "economics.cost", "cost_micros_per_million_output_tokens", cost, "micros", _PRICED),
        *_energy(objectives.energy_millijoules_per_token_at_most),
        _failure("failure_recorded", "worker_failures_recorded", "sum", "ge", 1, "count"),
        _limited("worker_failure", "resilience.restart", "restart_seconds", restart, "s", _TIMELINE),
        _failure("interruption", "interruption_ns", "all_records", "reported", None, "ns"),
    )
    lost = "requests_lost_in_failure"
    if availability == "single":
        return (*rules, _failure("requests_lost", lost, "sum", "reported", None, "requests"))
    return (
        *rules,
        _failure("requests_lost", lost, "sum", "le", 0, "requests"),
        _failure("requests_served", "requests_served_in_failure", "all_records", "ge", 1, "requests"),
    )


def _energy(limit: int | None) -> Criteria:
    """Return the criterion on energy where it is asked for: without measured power it is inconclusive."""
    if limit is None:
        return ()
    metric, types = "energy_millijoules_per_output_token", ("memory_series", "serving_trial")
    return (_limited("cost", "economics.energy", metric, limit, "millijoules", types),)


def _failure(name: str, metric: str, aggregation: str, comparator: str, limit: int | None, unit: str) -> Criterion:
    return criterion("worker_failure", f"resilience.{name}", metric, aggregation, comparator, limit, unit, _TIMELINE)


def _limited(clause: str, id: str, metric: str, limit: int | None, unit: str, types: tuple[str, ...]) -> Criterion:
    comparator = "reported" if limit is None else "le"
    return criterion(clause, id, metric, "all_records", comparator, limit, unit, types)
