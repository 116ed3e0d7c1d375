"""Criteria of runtime_load."""

from __future__ import annotations

from moeplan.model.deployment import DeploymentSpec
from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["load_criteria"]


def load_criteria(ready_within_s: int, deployment: DeploymentSpec) -> Criteria:
    """Return the criteria of ``runtime_load``.

    Args:
        ready_within_s: seconds the engine may take from its start to ready.
        deployment: what the plan decides; its values are what the engine must show.
    """
    log = ("engine_log",)
    environment = ("environment",)
    return (
        criterion("ready_state", "load.ready", "engine_ready", "exact", "eq", "ready", "state", log),
        criterion("ready_state", "load.fatal_signatures", "fatal_log_signatures", "sum", "le", 0, "count", log),
        criterion(
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
