"""A plan as bytes: form 1.1.0 in the one form of a document, form 1.0.0 in the key order of the first release.

Both are written fast enough for sweeps: gates, which many plans share, are rendered once. That the bytes equal those
of RFC 8785 is a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.deployment import DeploymentSpec
from moeplan.model.fields import camel
from moeplan.model.plan import (
    Artifact,
    Criterion,
    Dimension,
    Dimensions,
    EvidencePolicy,
    Gate,
    Plan,
    Readiness,
    RegistryRef,
    Residency,
    Workload,
)

__all__ = ["FORMS", "plan_bytes", "plan_value_1_0_0"]

FORMS = ("1.0.0", "1.1.0")
"""Forms a plan can be written in; the last is the document, the first an export only."""

_KEPT = 4096

Part = TypeVar("Part")

_ordered = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_quote = json.JSONEncoder(ensure_ascii=False).encode
_WORDS: dict[Any, str] = {None: "null", True: "true", False: "false"}

_SHARED = frozenset(
    (Artifact, Criterion, DeploymentSpec, Dimensions, EvidencePolicy, Gate, Readiness, RegistryRef, Residency, Workload)
)
"""Parts that the planner builds once for equal values, so that remembering their text pays."""

_texts: dict[tuple[int, str], tuple[object, str]] = {}


def plan_bytes(plan: Plan, form: str = "1.1.0", *, envelope: bool = False) -> bytes:
    """Return a plan in one of its forms, one line and an LF.

    Args:
        plan: the plan.
        form: ``1.1.0``, the document (RFC 8785), or ``1.0.0``, an export in its own key order that nothing reads back.
        envelope: wrap form 1.0.0 with the API's version and the registry's.

    Raises:
        InputError: an unknown form, or an envelope around form 1.1.0.
    """
    if form not in FORMS:
        raise InputError(
            Issue("--schema-version", "unsupported_version", "no such form", ", ".join(FORMS), escape(form, 40))
        )
    if form == "1.0.0":
        text = _text_1_0_0(plan)
        if envelope:
            text = f'{{"apiVersion":"v1","registryVersion":{_ordered(plan.registry.version)},"plan":{text}}}'
        return (text + "\n").encode()
    if envelope:
        raise InputError(
            Issue("--envelope", "usage", "only form 1.0.0 has an envelope", "--schema-version 1.0.0", form)
        )
    return (_text_1_1_0(plan) + "\n").encode()


def plan_value_1_0_0(plan: Plan) -> dict[str, Any]:
    """Return a plan in form 1.0.0 as JSON values, keys in that form's order."""
    value: dict[str, Any] = json.loads(_text_1_0_0(plan))
    return value


def _text_1_0_0(plan: Plan) -> str:
    artifact, target, workload = plan.artifact, plan.target, plan.workload
    head = {
        "schemaVersion": "1.0.0",
        "kind": plan.kind,
        "scenarioKey": plan.scenario_key,
        "artifact": {
            "modelId": artifact.model_id,
            "modelName": artifact.model_name,
            "repository": artifact.repository,
            "revision": artifact.revision,
            "manifestUrl": artifact.manifest_url,
        },
        "target": {
            "hardwareId": target.hardware_id,
            "hardwareName": target.hardware_name,
            "runtime": target.runtime,
            "requestedAccelerators": target.requested_accelerators,
            "acceleratorsPerNode": target.accelerators_per_node,
            "reserveBasisPoints": target.reserve_basis_points,
        },
        "workload": {
            "inputTokens": workload.input_tokens,
            "outputTokens": workload.output_tokens,
            "concurrency": workload.concurrency,
            "targetTtftMs": workload.target_ttft_ms,
            "targetInterTokenMs": workload.target_inter_token_ms,
            "availability": workload.availability,
        },
    }
    gates = ",".join([_kept(gate, "1.0.0", _gate_1_0_0) for gate in plan.validation_gates])
    tail = {
        "nextAction": {"code": plan.next_action.code, "summary": plan.next_action.summary},
        "reproducibility": {
            "cli": plan.reproducibility.cli,
            "apiPath": plan.reproducibility.api_path,
            "assumptions": plan.reproducibility.assumptions,
        },
    }
    return (
        f'{_ordered(head)[:-1]},"evidencePolicy":{_kept(plan.evidence_policy, "1.0.0", _evidence_policy)},'
        f'"readiness":{_kept(plan.readiness, "1.0.0", _readiness)},'
        f'"dimensions":{_kept(plan.dimensions, "1.0.0", _dimensions)},"risks":{_ordered(plan.risks)},'
        f'"validationGates":[{gates}],{_ordered(tail)[1:]}'
    )


def _kept(part: Part, form: str, render: Callable[[Part], str]) -> str:
    """Return the text of a part that many plans share, by its identity; holding the part keeps the identity its own."""
    key = (id(part), form)
    found = _texts.get(key)
    if found is None:
        if len(_texts) >= _KEPT:
            _texts.clear()
        found = _texts[key] = (part, render(part))
    return found[1]


def _evidence_policy(part: EvidencePolicy) -> str:
    return _ordered(
        {
            "resultClass": part.result_class,
            "measuredPerformanceAvailable": part.measured_performance_available,
            "statement": part.statement,
        }
    )


def _readiness(part: Readiness) -> str:
    return _ordered(
        {
            "status": part.status,
            "reason": part.reason,
            "staticResidency": part.static_residency,
            "runtimeCompatibility": part.runtime_compatibility,
        }
    )


def _dimensions(part: Dimensions) -> str:
    return _ordered({name: _dimension(getattr(part, name)) for name in ("load", "run", "scale", "economics")})


def _dimension(part: Dimension) -> dict[str, Any]:
    return {
        "status": part.status,
        "evidenceClass": part.evidence_class,
        "summary": part.summary,
        "known": part.known,
        "unknown": part.unknown,
    }


def _gate_1_0_0(gate: Gate) -> str:
    return _ordered(
        {
            "id": gate.id,
            "order": gate.order,
            "status": gate.status,
            "title": gate.title,
            "objective": gate.objective,
            "acceptanceCriteria": gate.acceptance_criteria,
            "requiredEvidence": gate.required_evidence,
        }
    )


def _text_1_1_0(value: Any) -> str:
    """Return a plan or a part of it in RFC 8785 form: keys are ASCII, so code point order is UTF-16 order."""
    kind = type(value)
    if kind is str:
        return _quote(value)
    if kind is int:
        return str(value)
    if kind is tuple:
        return "[" + ",".join([_text_1_1_0(item) for item in value]) + "]"
    if value is None or kind is bool:
        return _WORDS[value]
    return _kept(value, "1.1.0", _object) if kind in _SHARED else _object(value)


def _object(value: Any) -> str:
    return "{" + ",".join([f"{key}:{_text_1_1_0(getattr(value, name))}" for key, name in _keys(value.__class__)]) + "}"


@cache
def _keys(cls: type) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((f'"{camel(field.name)}"', field.name) for field in attrs.fields(cls)))
