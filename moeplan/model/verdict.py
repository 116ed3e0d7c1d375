"""The readiness verdict: per gate and criterion what was observed, the limit, the method and the evidence used."""

from __future__ import annotations

import attrs

from moeplan.model.fields import (
    choice,
    const,
    digest,
    identifier,
    instant,
    integer,
    limit_value,
    nested,
    sequence,
    text,
)
from moeplan.model.plan import BINDINGS, GATE_IDS, GENERATOR_PATTERN

__all__ = ["OUTCOMES", "CriterionResult", "GateResult", "Reason", "Subject", "TrialResult", "Verdict"]

OUTCOMES = ("pass", "fail", "inconclusive")


@attrs.frozen
class TrialResult:
    """One trial judged alone: the point estimate, its upper bound where the metric has one, and the outcome."""

    trial: int = integer(ge=1)
    outcome: str = choice(*OUTCOMES)
    observed: int | str | None = limit_value()
    bound: int | None = integer(optional=True)
    samples: int | None = integer(optional=True)
    reason: str | None = identifier(optional=True)
    evidence: str = digest()


@attrs.frozen
class CriterionResult:
    """One criterion's outcome. ``underlying`` is the outcome without a waiver."""

    id: str = identifier()
    metric: str = identifier()
    outcome: str = choice(*OUTCOMES, "waived")
    underlying: str = choice(*OUTCOMES)
    observed: int | str | None = limit_value()
    limit: int | str | None = limit_value()
    unit: str = identifier()
    method: str = text()
    binding: str | None = choice(*BINDINGS, optional=True)
    least_binding: str = choice(*BINDINGS)
    evidence: tuple[str, ...] = digest(many=True)
    trials: tuple[TrialResult, ...] = sequence(TrialResult)
    reason: str | None = identifier(optional=True)
    next: str | None = text(optional=True)
    contributed_by: str = text(max_length=128)


@attrs.frozen
class GateResult:
    """One gate's outcome; ``blocked`` when an earlier gate failed, its own criteria shown all the same."""

    id: str = choice(*GATE_IDS)
    order: int = integer(ge=1, le=7)
    outcome: str = choice(*OUTCOMES, "blocked")
    criteria: tuple[CriterionResult, ...] = sequence(CriterionResult)


@attrs.frozen
class Reason:
    """Why the verdict is not better than it is."""

    code: str = identifier()
    message: str = text()


@attrs.frozen
class Subject:
    """What the verdict is about."""

    model_id: str = identifier()
    hardware_id: str = identifier()
    accelerators: int = integer(ge=1)
    runtime: str = identifier()
    checkpoint_root: str | None = digest(optional=True)
    deployment: str | None = digest(optional=True)
    runtimes: tuple[str, ...] = digest(many=True)


@attrs.frozen
class Verdict:
    """Overall ``ready``, ``not_ready`` or ``inconclusive``, with everything it rests on by digest."""

    kind: str = const("readiness_verdict")
    schema_version: str = const("1.0.0")
    generator: str = text(pattern=GENERATOR_PATTERN, max_length=64)
    readiness: str = choice("ready", "not_ready", "inconclusive")
    reasons: tuple[Reason, ...] = sequence(Reason)
    at: str = instant()
    plan: str = digest()
    policy: str = digest()
    evidence: tuple[str, ...] = digest(many=True)
    subject: Subject = nested(Subject)
    gates: tuple[GateResult, ...] = sequence(GateResult, min_items=7, max_items=7)
