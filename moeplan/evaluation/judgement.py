"""An outcome before binding, waivers and evidence taken away are taken into account, and the steps that lead to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from moeplan.evaluation.evidence_state import State
from moeplan.model.plan import Criterion
from moeplan.model.verdict import TrialResult
from moeplan.model.verified import VerifiedRecord
from moeplan.units import MAX_SAFE_INTEGER

__all__ = ["Judge", "Judgement", "compare", "doubted", "missing", "observe"]


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


Judge: TypeAlias = Callable[[State, Criterion], Judgement]
"""Judges one criterion from the state of the evidence."""


def missing() -> Judgement:
    """Return the judgement where there is no evidence of the type."""
    return Judgement("inconclusive", reason="missing_evidence")


def compare(criterion: Criterion, observed: int | str | None, reason: str | None = None) -> tuple[str, str | None]:
    """Return outcome and reason of an observation against the criterion's limit.

    ``reason`` says why there is no observation. ``reported`` passes with any integer: the number itself is asked for.
    """
    if observed is None:
        return "inconclusive", reason or "missing_evidence"
    if criterion.comparator == "reported":
        return ("pass", None) if type(observed) is int else ("inconclusive", "missing_evidence")
    if criterion.limit is None:
        return "inconclusive", "plan_value_missing"
    return ("pass", None) if _holds(criterion, observed) else ("fail", "limit_not_met")


def _holds(criterion: Criterion, observed: int | str) -> bool:
    limit = criterion.limit
    if criterion.comparator == "eq":
        return type(observed) is type(limit) and observed == limit
    if type(observed) is not int or type(limit) is not int:
        return False
    return observed <= limit if criterion.comparator == "le" else observed >= limit


def doubted(judged: Judgement, doubt: str | None) -> Judgement:
    """Let a doubt stand in the way of everything but a failure."""
    if doubt is None or judged.outcome == "fail":
        return judged
    return attrs.evolve(judged, outcome="inconclusive", reason=doubt)


def observe(
    state: State,
    criterion: Criterion,
    records: tuple[VerifiedRecord, ...],
    observed: int | str | None,
    reason: str | None = None,
) -> Judgement:
    """Return the judgement of one observation drawn from ``records``.

    Records of another plan, checkpoint, runtime or deployment, or of later than the instant, decide nothing; records
    that no trusted runner signed, or beside which something was taken away, can fail a criterion and never pass it. The
    same holds of trials whose runs are not whole.
    """
    if not records:
        return missing()
    used = tuple(item.digest for item in records)
    obstacle = state.obstacle(records)
    if obstacle is not None:
        return Judgement("inconclusive", None, obstacle, used)
    if type(observed) is int and abs(observed) > MAX_SAFE_INTEGER:
        observed, reason = None, "value_too_large"
    outcome, why = compare(criterion, observed, reason)
    judged = Judgement(outcome, observed, why, used, binding=state.binding_of(records))
    judged = doubted(judged, state.doubt(records) or state.run_doubt(records))
    trials = any(item.record.type == "serving_trial" for item in records)
    return doubted(judged, state.run_obstacle()) if trials and judged.outcome == "pass" else judged
