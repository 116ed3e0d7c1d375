"""Criteria of economics_resilience."""

from __future__ import annotations

from moeplan.model.plan import Objectives
from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["economics_criteria"]


def economics_criteria(availability: str, objectives: Objectives) -> Criteria:
    """Return the criteria of ``economics_resilience``; ``ha`` adds that a worker's failure loses no request."""
    timeline = ("failure_timeline",)
    priced = ("price", "serving_trial")
    single = (
        criterion("cost", "economics.cost_inputs", "cost_inputs_missing", "sum", "le", 0, "count", priced),
        criterion(
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
    lost = criterion(
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
