"""Judges of ``workload_sla``: each trial alone, all must pass."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, compare, doubted
from moeplan.evaluation.quantiles import judge_quantile
from moeplan.evaluation.trials import TRIAL_COUNTS, chunk_gap_groups, ttft_groups
from moeplan.model.evidence import ServingTrial
from moeplan.model.plan import Criterion
from moeplan.model.verdict import TrialResult
from moeplan.model.verified import VerifiedRecord

__all__ = ["JUDGES"]


def _complete_trials(state: State, criterion: Criterion) -> Judgement:
    used = tuple(item.digest for item in state.trials)
    if not used:
        return Judgement("inconclusive", reason="missing_evidence")
    outcome, reason = compare(criterion, len(used))
    if outcome == "fail":
        outcome, reason = "inconclusive", "too_few_trials"
    judged = Judgement(outcome, len(used), reason, used, binding=state.trial_binding)
    return doubted(judged, state.obstacle(state.trials) or state.doubt(state.trials) or state.run_obstacle())


def _judge_trials(state: State, criterion: Criterion) -> Judgement:
    """Judge each trial alone; all must pass, and one that fails fails the criterion."""
    if not state.trials:
        return Judgement("inconclusive", reason="missing_evidence")
    judged = [_judge_trial(number, item, criterion) for number, item in enumerate(state.trials, 1)]
    results = tuple(result for result, _ in judged)
    outcomes = [result.outcome for result in results]
    outcome = next((word for word in ("fail", "inconclusive") if word in outcomes), "pass")
    together = Judgement(
        outcome,
        _worst(criterion, results),
        next((result.reason for result in results if result.outcome == outcome), None),
        tuple(item.digest for item in state.trials),
        results,
        state.trial_binding,
        max((needed for _, needed in judged if needed is not None), default=None),
    )
    obstacle = state.obstacle(state.trials)
    if obstacle is not None:
        return attrs.evolve(together, outcome="inconclusive", reason=obstacle)
    together = doubted(together, state.doubt(state.trials))
    return doubted(together, state.run_obstacle()) if together.outcome == "pass" else together


def _worst(criterion: Criterion, results: tuple[TrialResult, ...]) -> int | None:
    """Return the observation that lies worst against the limit; None where a trial has none."""
    observed = [result.observed for result in results]
    numbers = [value for value in observed if type(value) is int]
    if len(numbers) < len(observed):
        return None
    return min(numbers) if criterion.comparator == "ge" else max(numbers)


def _judge_trial(number: int, item: VerifiedRecord, criterion: Criterion) -> tuple[TrialResult, int | None]:
    payload, requests, gaps = item.record.payload, item.requests, item.chunk_gaps
    assert isinstance(payload, ServingTrial)
    assert requests is not None
    assert gaps is not None
    if criterion.metric in TRIAL_COUNTS:
        observed, why = TRIAL_COUNTS[criterion.metric](requests, payload)
        outcome, reason = compare(criterion, observed, why)
        return TrialResult(number, outcome, observed, None, len(requests), reason, item.digest), None
    if type(criterion.limit) is not int or criterion.comparator != "le":
        why = "plan_value_missing" if type(criterion.limit) is not int else "comparator_not_judged"
        return TrialResult(number, "inconclusive", None, None, len(requests), why, item.digest), None
    groups = ttft_groups(requests) if criterion.metric == "ttft_p95_ns" else chunk_gap_groups(requests, gaps)
    result = judge_quantile(groups, 95, criterion.limit)
    trial = TrialResult(
        number, result.outcome, result.observed, result.bound, result.samples, result.reason, item.digest
    )
    return trial, result.requests_needed


JUDGES: Mapping[str, Judge] = {
    "complete_trials": _complete_trials,
    "ttft_p95_ns": _judge_trials,
    "chunk_gap_p95_ns": _judge_trials,
    **dict.fromkeys(TRIAL_COUNTS, _judge_trials),
}
