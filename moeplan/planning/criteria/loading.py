"""Criteria of runtime_load."""

from __future__ import annotations

from moeplan.model.deployment import DeploymentSpec
from moeplan.model.plan import Criterion
from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["load_criteria"]


def load_criteria(ready_within_s: int, deployment: DeploymentSpec) -> Criteria:
    """Return the criteria of ``runtime_load``.

    Args:
        ready_within_s: seconds the engine may take from its start to ready.
        deployment: what the plan decides; its values are what the engine must show.
    """
    return (
        criterion("ready_state", "load.ready", "engine_ready", "exact", "eq", "ready", "state", _LOG),
        criterion("ready_state", "load.ready_time", "ready_seconds", "all_records", "le", ready_within_s, "s", _LOG),
        *_ALWAYS,
        *(_SPECULATION if deployment.draft_checkpoint_root is not None else ()),
        *(_DEPLOYMENT if _decided(deployment) else ()),
    )


def _none(clause: str, name: str, metric: str, types: tuple[str, ...]) -> Criterion:
    return criterion(clause, f"load.{name}", metric, "sum", "le", 0, "count", types)


def _decided(deployment: DeploymentSpec) -> bool:
    """Return whether the plan decides a value that an engine shows."""
    sizes = deployment.parallelism
    values = (
        sizes.tensor_parallel_size,
        sizes.pipeline_parallel_size,
        sizes.data_parallel_size,
        sizes.expert_parallel_size,
        deployment.precision,
    )
    return any(value is not None for value in values)


_LOG = ("engine_log",)
_ALWAYS = (
    _none("ready_state", "fatal_signatures", "fatal_log_signatures", _LOG),
    _none("ready_state", "smoke", "smoke_failures", ("smoke",)),
    _none("environment_recorded", "environment", "environment_parts_missing", ("environment", "engine_log")),
)
_SPECULATION = (
    criterion(
        "environment_recorded",
        "load.speculation",
        "draft_tokens_least",
        "each_trial",
        "ge",
        1,
        "tokens",
        ("serving_trial", "engine_log"),
    ),
)
_DEPLOYMENT = (_none("environment_recorded", "deployment", "deployment_differences", ("engine_log", "environment")),)
