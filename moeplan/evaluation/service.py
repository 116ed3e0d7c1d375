"""Judges of ``workload_sla``: each trial alone, all must pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, compare, doubted
from moeplan.evaluation.quality import QUALITY_JUDGES
from moeplan.evaluation.quantiles import QuantileResult, judge_quantile, reported_quantile
from moeplan.evaluation.samples import Sample
from moeplan.evaluation.trial_shapes import TRIAL_SHAPES, Trial, tpot_groups
from moeplan.evaluation.trials import TRIAL_COUNTS, chunk_gap_groups, ttft_groups
from moeplan.model.evidence import ServingTrial
from moeplan.model.plan import Criterion
from moeplan.model.verdict import TrialResult
from moeplan.model.verified import VerifiedRecord
from moeplan.units import MAX_SAFE_INTEGER

__all__ = ["JUDGES"]


def _complete_trials(state: State, criterion: Criterion) -> Judgement:
    used = tuple(item.digest for item in state.trials)
    if not used:
        return Judgement("inconclusive", reason="missing_evidence")
    outcome, reason = compare(criterion, len(used))
    if outcome == "fail":
        outcome, reason = "inconclusive", "too_few_trials"
    judged = Judgement(outcome, len(used), reason, used, binding=state.trial_binding)
    payloads = [(item, item.record.payload) for item in state.trials]
    unfit = [_unfit(state, item, one) for item, one in payloads if isinstance(one, ServingTrial)]
    judged = doubted(judged, next((why for why in unfit if why is not None), None))
    return doubted(judged, state.obstacle(state.trials) or state.doubt(state.trials) or state.run_obstacle())


def _judge_trials(state: State, criterion: Criterion) -> Judgement:
    """Judge each trial alone; all must pass, and one that fails fails the criterion."""
    if not state.trials:
        return Judgement("inconclusive", reason="missing_evidence")
    judged = [_judge_trial(state, number, item, criterion) for number, item in enumerate(state.trials, 1)]
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


def _judge_trial(
    state: State, number: int, item: VerifiedRecord, criterion: Criterion
) -> tuple[TrialResult, int | None]:
    payload, requests, gaps = item.record.payload, item.requests, item.chunk_gaps
    assert isinstance(payload, ServingTrial)
    assert requests is not None
    assert gaps is not None
    trial = Trial(requests, gaps, payload, state.plan.workload)
    found = (_judge_sample if criterion.metric in _SAMPLES else _judge_count)(trial, criterion)
    unfit = _unfit(state, item, payload)
    if unfit is not None:
        found = attrs.evolve(found, outcome="inconclusive", reason=unfit, requests_needed=None)
    result = TrialResult(number, found.outcome, found.observed, found.bound, found.samples, found.reason, item.digest)
    return result, found.requests_needed


def _unfit(state: State, item: VerifiedRecord, payload: ServingTrial) -> str | None:
    """Return why a trial says nothing of what is served, good or bad, or None."""
    if payload.path == "port_forward":
        return "port_forward"
    return "counting_on" if item.record.engine_start in state.counted_starts else None


def _judge_count(trial: Trial, criterion: Criterion) -> QuantileResult:
    if criterion.metric in TRIAL_COUNTS:
        observed, why = TRIAL_COUNTS[criterion.metric](trial.requests, trial.payload)
    else:
        observed, why = TRIAL_SHAPES[criterion.metric](trial)
    if observed is not None and observed > MAX_SAFE_INTEGER:
        observed, why = None, "value_too_large"
    outcome, reason = compare(criterion, observed, why)
    if outcome == "fail" and criterion.metric in _UNFIT_ABOVE:
        outcome, reason = "inconclusive", _UNFIT_ABOVE[criterion.metric]
    if outcome == "pass" and why is not None:
        outcome, reason = "inconclusive", why
    return QuantileResult(outcome, observed, None, len(trial.requests), reason, None)


def _judge_sample(trial: Trial, criterion: Criterion) -> QuantileResult:
    sample, requests = _SAMPLES[criterion.metric](trial), len(trial.requests)
    if sample is None:
        return QuantileResult("inconclusive", None, None, requests, "no_server_usage", None)
    if criterion.comparator == "reported":
        return reported_quantile(sample, 95)
    if type(criterion.limit) is not int or criterion.comparator != "le":
        why = "plan_value_missing" if type(criterion.limit) is not int else "comparator_not_judged"
        return QuantileResult("inconclusive", None, None, requests, why, None)
    return judge_quantile(sample, 95, criterion.limit)


_SAMPLES: Mapping[str, Callable[[Trial], Sample | None]] = {
    "ttft_p95_ns": lambda trial: ttft_groups(trial.requests),
    "chunk_gap_p95_ns": lambda trial: chunk_gap_groups(trial.requests, trial.gaps),
    "tpot_p95_ns": tpot_groups,
}
_UNFIT_ABOVE = {
    "steady_state_drift_basis_points": "not_steady",
    "requests_per_stream": "too_short",
    "client_overhead_basis_points": "client_bottleneck",
    "warmup_late_share_basis_points": "warmup_hides",
}
"""Metrics that say whether a trial is fit to judge: beyond their limit it shows nothing, good or bad."""

JUDGES: Mapping[str, Judge] = {
    "complete_trials": _complete_trials,
    **dict.fromkeys((*_SAMPLES, *TRIAL_COUNTS, *TRIAL_SHAPES), _judge_trials),
    **QUALITY_JUDGES,
}
