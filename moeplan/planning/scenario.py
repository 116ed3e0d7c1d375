"""What is asked: scenarios from JSON, runtime names in one spelling, and the scenario that makes a plan again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, MoeplanError, escape
from moeplan.model.fields import camel
from moeplan.model.plan import Plan, Scenario, Target, Workload

__all__ = [
    "REQUIRED_KEYS",
    "SCENARIO_KEYS",
    "WIRE_KEYS",
    "api_path",
    "in_scenario_keys",
    "normalise_runtime",
    "parse_scenario",
    "rebuild_scenario",
    "scenario_key",
]

SCENARIO_KEYS = {
    "model": "model",
    "hardware": "hardware",
    "devices": "devices",
    "devicesPerNode": "devices_per_node",
    "reserveBps": "reserve_basis_points",
    "runtime": "runtime",
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "concurrency": "concurrency",
    "targetTtftMs": "target_ttft_ms",
    "targetInterTokenMs": "target_inter_token_ms",
    "availability": "availability",
}
"""Keys of a scenario in JSON and in a plan's ``apiPath``, with the attributes of :class:`Scenario`."""

REQUIRED_KEYS = ("model", "hardware", "devices")

_RUNTIME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_WORDS = frozenset(("model", "hardware", "runtime", "availability"))
WIRE_KEYS = {camel(attribute): f"$.{key}" for key, attribute in SCENARIO_KEYS.items()}
"""JSON path of each scenario key by the attribute's name in camel case."""


def normalise_runtime(text: str) -> str:
    """Return a runtime's name in its one spelling: trimmed, lower case; ``unspecified`` where it is empty.

    Raises:
        InputError: not 1 to 64 of ``a-z0-9._-`` beginning with a letter or digit.
    """
    trimmed = text.strip()
    name = trimmed.lower() or "unspecified"
    if not trimmed.isascii() or _RUNTIME.fullmatch(name) is None:
        raise InputError(
            Issue(
                "$.runtime",
                "invalid_runtime",
                "not a runtime's name",
                "1 to 64 of a-z 0-9 . _ - beginning with a letter or digit",
                escape(repr(text), 80),
            )
        )
    return name


def parse_scenario(value: Any) -> Scenario:
    """Return the scenario in a JSON object with the keys of :data:`SCENARIO_KEYS`; missing ones take the defaults.

    Raises:
        InputError: with every unknown, missing or mistyped key; else the first value out of range, under the
            attribute's own name, which :func:`in_scenario_keys` turns into the key.
    """
    if type(value) is not dict:
        raise InputError(Issue("$", "wrong_type", "not a scenario", "a JSON object", escape(repr(value), 60)))
    if not (value.keys() <= SCENARIO_KEYS.keys() and value.keys() >= _REQUIRED and _well_typed(value)):
        raise InputError(*_key_issues(value))
    return Scenario(**{SCENARIO_KEYS[key]: item for key, item in value.items()})


_REQUIRED = frozenset(REQUIRED_KEYS)


def _well_typed(value: dict[str, Any]) -> bool:
    return all(type(item) is (str if key in _WORDS else int) for key, item in value.items())


def _key_issues(value: dict[str, Any]) -> list[Issue]:
    from moeplan.wire.strict_json import child

    issues = [
        Issue(f"$.{key}", "missing_key", "key missing", f"the key {key!r}") for key in REQUIRED_KEYS if key not in value
    ]
    for key, item in value.items():
        if key not in SCENARIO_KEYS:
            issues.append(
                Issue(child("$", key), "unknown_key", "key is not part of a scenario", ", ".join(SCENARIO_KEYS))
            )
        elif type(item) is not (str if key in _WORDS else int):
            expected = "text" if key in _WORDS else "an integer"
            issues.append(Issue(f"$.{key}", "wrong_type", "value of the wrong type", expected, escape(repr(item), 60)))
    return issues


def in_scenario_keys(error: MoeplanError, keys: Mapping[str, str] = WIRE_KEYS) -> InputError:
    """Return the error with paths in a caller's own names.

    Args:
        error: raised for a :class:`Scenario` or by ``plan``; its paths are ``$.`` and an attribute in camel case.
        keys: path by attribute in camel case; the default gives the keys of :data:`SCENARIO_KEYS`.
    """
    issues = (attrs.evolve(issue, path=keys.get(issue.path.removeprefix("$."), issue.path)) for issue in error.issues)
    return InputError(*issues, source=error.source)


def scenario_key(model_id: str, target: Target, workload: Workload) -> str:
    """Return the key that names the twelve values of a scenario."""
    return (
        f"{model_id}--{target.hardware_id}--{target.runtime}"
        f"--{target.requested_accelerators}x{target.accelerators_per_node}--r{target.reserve_basis_points}"
        f"--i{workload.input_tokens}--o{workload.output_tokens}--c{workload.concurrency}"
        f"--t{workload.target_ttft_ms}--p{workload.target_inter_token_ms}--{workload.availability}"
    )


def api_path(model_id: str, target: Target, workload: Workload) -> str:
    """Return the API path for the twelve values of a scenario. Ids and runtime names need no escaping."""
    return (
        f"/api/v1/plan?model={model_id}&hardware={target.hardware_id}"
        f"&devices={target.requested_accelerators}&devicesPerNode={target.accelerators_per_node}"
        f"&reserveBps={target.reserve_basis_points}&runtime={target.runtime}"
        f"&inputTokens={workload.input_tokens}&outputTokens={workload.output_tokens}"
        f"&concurrency={workload.concurrency}&targetTtftMs={workload.target_ttft_ms}"
        f"&targetInterTokenMs={workload.target_inter_token_ms}&availability={workload.availability}"
    )


def rebuild_scenario(plan: Plan) -> Scenario:
    """Return the scenario that makes ``plan`` again from its registry, with every default written out.

    The audit plans from it and compares, so nothing in a plan that came by mail has to be believed.

    Raises:
        InputError: the plan holds a value that no scenario may have.
    """
    target, workload = plan.target, plan.workload
    return Scenario(
        model=plan.artifact.model_id,
        hardware=target.hardware_id,
        devices=target.requested_accelerators,
        devices_per_node=target.accelerators_per_node,
        reserve_basis_points=target.reserve_basis_points,
        runtime=target.runtime,
        input_tokens=workload.input_tokens,
        output_tokens=workload.output_tokens,
        concurrency=workload.concurrency,
        target_ttft_ms=workload.target_ttft_ms,
        target_inter_token_ms=workload.target_inter_token_ms,
        availability=workload.availability,
        prefix_cache_share_basis_points=workload.prefix_cache_share_basis_points,
        checkpoint=plan.artifact.checkpoint,
        deployment=plan.deployment,
        objectives=plan.objectives,
    )
