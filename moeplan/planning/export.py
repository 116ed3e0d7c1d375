"""A plan as bytes: form 1.1.0 in the one form of a document, form 1.0.0 in the key order of the first release.

Both are written fast enough for sweeps: gates, which many plans share, are rendered once. That the bytes equal those
of RFC 8785 is a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from json.encoder import encode_basestring
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

_quote: Callable[[str], str] = encode_basestring
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
            text = f'{{"apiVersion":"v1","registryVersion":{_quote(plan.registry.version)},"plan":{text}}}'
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
    target, again = plan.target, plan.reproducibility
    gates = ",".join([_kept(gate, "1.0.0", _gate) for gate in plan.validation_gates])
    return (
        f'{{"schemaVersion":"1.0.0","kind":{_quote(plan.kind)},"scenarioKey":{_quote(plan.scenario_key)}'
        f',"artifact":{_kept(plan.artifact, "1.0.0", _artifact)}'
        f',"target":{{"hardwareId":{_quote(target.hardware_id)},"hardwareName":{_quote(target.hardware_name)}'
        f',"runtime":{_quote(target.runtime)},"requestedAccelerators":{target.requested_accelerators}'
        f',"acceleratorsPerNode":{target.accelerators_per_node},"reserveBasisPoints":{target.reserve_basis_points}}}'
        f',"workload":{_kept(plan.workload, "1.0.0", _workload)}'
        f',"evidencePolicy":{_kept(plan.evidence_policy, "1.0.0", _evidence_policy)}'
        f',"readiness":{_kept(plan.readiness, "1.0.0", _readiness)}'
        f',"dimensions":{_kept(plan.dimensions, "1.0.0", _dimensions)},"risks":{_list(plan.risks)}'
        f',"validationGates":[{gates}]'
        f',"nextAction":{{"code":{_quote(plan.next_action.code)},"summary":{_quote(plan.next_action.summary)}}}'
        f',"reproducibility":{{"cli":{_quote(again.cli)},"apiPath":{_quote(again.api_path)}'
        f',"assumptions":{_kept(again.assumptions, "1.0.0", _list)}}}}}'
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


def _list(texts: tuple[str, ...]) -> str:
    return "[" + ",".join([_quote(text) for text in texts]) + "]"


def _artifact(part: Artifact) -> str:
    url = "null" if part.manifest_url is None else _quote(part.manifest_url)
    return (
        f'{{"modelId":{_quote(part.model_id)},"modelName":{_quote(part.model_name)}'
        f',"repository":{_quote(part.repository)},"revision":{_quote(part.revision)},"manifestUrl":{url}}}'
    )


def _workload(part: Workload) -> str:
    return (
        f'{{"inputTokens":{part.input_tokens},"outputTokens":{part.output_tokens},"concurrency":{part.concurrency}'
        f',"targetTtftMs":{part.target_ttft_ms},"targetInterTokenMs":{part.target_inter_token_ms}'
        f',"availability":{_quote(part.availability)}}}'
    )


def _evidence_policy(part: EvidencePolicy) -> str:
    return (
        f'{{"resultClass":{_quote(part.result_class)}'
        f',"measuredPerformanceAvailable":{_WORDS[part.measured_performance_available]}'
        f',"statement":{_quote(part.statement)}}}'
    )


def _readiness(part: Readiness) -> str:
    return (
        f'{{"status":{_quote(part.status)},"reason":{_quote(part.reason)}'
        f',"staticResidency":{_quote(part.static_residency)}'
        f',"runtimeCompatibility":{_quote(part.runtime_compatibility)}}}'
    )


def _dimensions(part: Dimensions) -> str:
    return (
        f'{{"load":{_dimension(part.load)},"run":{_kept(part.run, "1.0.0", _dimension)}'
        f',"scale":{_kept(part.scale, "1.0.0", _dimension)},"economics":{_kept(part.economics, "1.0.0", _dimension)}}}'
    )


def _dimension(part: Dimension) -> str:
    return (
        f'{{"status":{_quote(part.status)},"evidenceClass":{_quote(part.evidence_class)}'
        f',"summary":{_quote(part.summary)},"known":{_list(part.known)},"unknown":{_list(part.unknown)}}}'
    )


def _gate(part: Gate) -> str:
    return (
        f'{{"id":{_quote(part.id)},"order":{part.order},"status":{_quote(part.status)},"title":{_quote(part.title)}'
        f',"objective":{_quote(part.objective)},"acceptanceCriteria":{_list(part.acceptance_criteria)}'
        f',"requiredEvidence":{_kept(part.required_evidence, "1.0.0", _list)}}}'
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
