"""One criterion: what is observed, compared with its limit, and what keeps a pass from being one."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from moeplan.catalogue.metrics import METRICS
from moeplan.evaluation import artifact, economics, handoff, loading, memory, routing, service
from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, missing
from moeplan.evaluation.next_steps import next_step
from moeplan.model.plan import BINDINGS, Criterion, Gate
from moeplan.model.verdict import CriterionResult

__all__ = ["judge_criterion"]

_JUDGES: Mapping[str, Judge] = {
    **artifact.JUDGES,
    **loading.JUDGES,
    **memory.JUDGES,
    **service.JUDGES,
    **handoff.JUDGES,
    **routing.JUDGES,
    **economics.JUDGES,
}
"""The judge of each metric; a metric without one is inconclusive."""


def judge_criterion(state: State, gate: Gate, criterion: Criterion) -> CriterionResult:
    """Judge one criterion of a plan."""
    least = _stronger(criterion.min_binding, state.policy.binding_for(gate.id))
    judged = _capped(state, criterion, least, _judge(state, criterion))
    waiver = next((w for w in state.policy.waivers if w.criterion == criterion.id and state.at < w.expires), None)
    return CriterionResult(
        id=criterion.id,
        metric=criterion.metric,
        outcome="waived" if waiver is not None else judged.outcome,
        underlying=judged.outcome,
        observed=judged.observed,
        limit=criterion.limit,
        unit=criterion.unit,
        method=METRICS[criterion.metric].computation if criterion.metric in METRICS else "not known to this release",
        binding=judged.binding,
        least_binding=least,
        evidence=judged.evidence,
        trials=judged.trials,
        reason=judged.reason,
        next=None
        if judged.outcome == "pass"
        else next_step(judged.reason, criterion, judged.requests_needed, state.present_types),
        contributed_by=criterion.contributed_by,
    )


def _stronger(left: str, right: str) -> str:
    return max(left, right, key=BINDINGS.index)


def _capped(state: State, criterion: Criterion, least: str, judged: Judgement) -> Judgement:
    """Turn a pass that something stands in the way of into ``inconclusive``; nothing here makes one better."""
    if judged.outcome != "pass":
        return judged
    if state.taken_away:
        return attrs.evolve(judged, outcome="inconclusive", reason="evidence_taken_away")
    if judged.binding is not None and BINDINGS.index(judged.binding) < BINDINGS.index(least):
        return attrs.evolve(judged, outcome="inconclusive", reason="binding_too_weak")
    return judged


def _judge(state: State, criterion: Criterion) -> Judgement:
    judge = _JUDGES.get(criterion.metric)
    return missing() if judge is None else judge(state, criterion)
