"""One criterion: what is observed, compared with its limit, and what keeps a pass from being one."""

from __future__ import annotations

import attrs

from moeplan.catalogue.metrics import METRICS
from moeplan.evaluation.evidence_state import State, digest_leads
from moeplan.evaluation.next_steps import next_step
from moeplan.evaluation.quantiles import judge_quantile
from moeplan.evaluation.trials import TRIAL_COUNTS, chunk_gap_groups, ttft_groups
from moeplan.model.evidence import ServingTrial
from moeplan.model.plan import BINDINGS, Criterion, Gate
from moeplan.model.verdict import CriterionResult, TrialResult
from moeplan.model.verified import VerifiedRecord

__all__ = ["Judgement", "judge_criterion"]


@attrs.frozen
class Judgement:
    """An outcome before binding, waivers and missing evidence are taken into account."""

    outcome: str
    observed: int | str | None = None
    reason: str | None = None
    evidence: tuple[str, ...] = ()
    trials: tuple[TrialResult, ...] = ()
    binding: str | None = None
    requests_needed: int | None = None


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
    if criterion.metric in ("ttft_p95_ns", "chunk_gap_p95_ns") or criterion.metric in TRIAL_COUNTS:
        return _judge_trials(state, criterion)
    special = {
        "complete_trials": _complete_trials,
        "digest_lead_seconds": _digest_lead,
        "minimum_accelerators": _planned_floor,
        "checkpoint_revision": _checkpoint,
        "checkpoint_root": _checkpoint,
        "checkpoint_tensor_bytes": _checkpoint,
    }.get(criterion.metric)
    if special is None:
        return Judgement("inconclusive", reason="missing_evidence")
    return special(state, criterion)


def _holds(criterion: Criterion, observed: int | str) -> bool:
    limit = criterion.limit
    if criterion.comparator == "eq":
        return type(observed) is type(limit) and observed == limit
    if type(observed) is not int or type(limit) is not int:
        return False
    return observed <= limit if criterion.comparator == "le" else observed >= limit


def _compare(criterion: Criterion, observed: int | str | None, reason: str | None = None) -> tuple[str, str | None]:
    if observed is None:
        return "inconclusive", reason or "missing_evidence"
    if criterion.limit is None:
        return "inconclusive", "plan_value_missing"
    return ("pass", None) if _holds(criterion, observed) else ("fail", "limit_not_met")


def _planned_floor(state: State, criterion: Criterion) -> Judgement:
    observed = state.plan.residency.minimum_accelerators
    outcome, reason = _compare(criterion, observed, "plan_value_missing")
    return Judgement(outcome, observed, reason)


def _checkpoint(state: State, criterion: Criterion) -> Judgement:
    manifest, digest = state.evidence.checkpoint, state.evidence.checkpoint_digest
    if manifest is None or digest is None:
        return Judgement("inconclusive", reason="missing_evidence")
    named = (
        None
        if manifest.repository is None or manifest.revision is None
        else f"{manifest.repository}@{manifest.revision}"
    )
    observed: int | str | None = {
        "checkpoint_revision": named,
        "checkpoint_root": manifest.root,
        # Weights in a format that is not read leave no tensor: nothing is known of their size.
        "checkpoint_tensor_bytes": manifest.tensor_bytes or None,
    }[criterion.metric]
    unknown = "tensors_not_read" if criterion.metric == "checkpoint_tensor_bytes" else "revision_not_named"
    outcome, reason = _compare(criterion, observed, unknown)
    if manifest.index is not None and not manifest.index.agrees and criterion.metric != "checkpoint_revision":
        outcome, reason = "fail", "index_disagrees"
    return Judgement(outcome, observed, reason, (digest,), binding=state.manifest_binding())


def _digest_lead(state: State, criterion: Criterion) -> Judgement:
    if not state.trials or not state.digestions:
        return Judgement("inconclusive", reason="missing_evidence")
    records = state.trials + state.digestions
    used = tuple(item.digest for item in records)
    obstacle = state.obstacle(records)
    if obstacle is not None:
        return Judgement("inconclusive", None, obstacle, used)
    doubt, leads = state.doubt(records), list[int]()
    for item in state.trials:
        by_node, nodes = digest_leads(item, state.digestions), item.record.deployment.nodes
        if by_node is None or not nodes or any(node not in by_node for node in nodes):
            why = "engine_start_unknown" if by_node is None else "node_not_hashed"
            return _doubted(Judgement("inconclusive", None, why, used), doubt)
        leads += [by_node[node] for node in nodes]
    outcome, reason = _compare(criterion, min(leads))
    return _doubted(Judgement(outcome, min(leads), reason, used, binding=state.trial_binding), doubt)


def _doubted(judged: Judgement, doubt: str | None) -> Judgement:
    """Let a doubt stand in the way of everything but a failure."""
    if doubt is None or judged.outcome == "fail":
        return judged
    return attrs.evolve(judged, outcome="inconclusive", reason=doubt)


def _complete_trials(state: State, criterion: Criterion) -> Judgement:
    used = tuple(item.digest for item in state.trials)
    if not used:
        return Judgement("inconclusive", reason="missing_evidence")
    outcome, reason = _compare(criterion, len(used))
    if outcome == "fail":
        outcome, reason = "inconclusive", "too_few_trials"
    judged = Judgement(outcome, len(used), reason, used, binding=state.trial_binding)
    return _doubted(judged, state.obstacle(state.trials) or state.doubt(state.trials) or state.run_obstacle())


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
    together = _doubted(together, state.doubt(state.trials))
    return _doubted(together, state.run_obstacle()) if together.outcome == "pass" else together


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
        outcome, reason = _compare(criterion, observed, why)
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
