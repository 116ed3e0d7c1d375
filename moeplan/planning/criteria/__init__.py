"""The core's criteria: declarative rules, each with the limit that the scenario sets. One module a gate."""

from __future__ import annotations

from moeplan.planning.criteria.artifact import artifact_criteria, residency_criteria
from moeplan.planning.criteria.economics import economics_criteria
from moeplan.planning.criteria.loading import load_criteria
from moeplan.planning.criteria.memory import memory_criteria
from moeplan.planning.criteria.routing import routing_criteria
from moeplan.planning.criteria.service import sla_criteria

__all__ = [
    "artifact_criteria",
    "economics_criteria",
    "load_criteria",
    "memory_criteria",
    "residency_criteria",
    "routing_criteria",
    "sla_criteria",
]
