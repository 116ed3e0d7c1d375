"""Criteria of routing_health."""

from __future__ import annotations

from moeplan.model.plan import Objectives
from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["routing_criteria"]

_EXPERTS = ("expert_counts",)


def routing_criteria(objectives: Objectives) -> Criteria:
    """Return the criteria of ``routing_health``."""
    trace = ("communication_trace",)
    return (
        criterion(
            "expert_load", "routing.expert_load", "expert_layers_without_counts", "sum", "le", 0, "count", _EXPERTS
        ),
        criterion(
            "expert_load", "routing.dropped_tokens", "dropped_tokens_unreported", "sum", "le", 0, "count", _EXPERTS
        ),
        criterion("communication", "routing.communication", "communication_samples", "sum", "ge", 1, "count", trace),
    )
