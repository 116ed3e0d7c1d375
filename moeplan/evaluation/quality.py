"""Judge of quality: a task's share of right answers is not below its reference by more than the margin.

Non-inferiority, in exact integers: with d the reference's share less the observed one and V the sum of both variances,
d + 1.645·√V <= margin is asked as margin - d >= 0 and 1000²·(margin - d)² >= 1645²·V.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import attrs

from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, missing, observe
from moeplan.model.plan import Criterion, QualityReference, quality_criterion
from moeplan.model.series import QualityTable
from moeplan.model.verified import VerifiedRecord
from moeplan.units import BASIS_POINTS, MAX_SAFE_INTEGER, ceil_div

__all__ = ["NORMAL_MILLI", "QUALITY_JUDGES", "Answers", "answers_of", "compare_answers"]

NORMAL_MILLI = 1645
"""0.95 quantile of the normal distribution, in thousandths. Source: NIST/SEMATECH 1.3.6.7.1."""


@attrs.frozen
class Answers:
    """Right answers, the documents answered, and the documents that the task has at least: the last index and one."""

    correct: int
    answered: int
    documents: int


@attrs.frozen
class Compared:
    """How one record's answers stand to the reference.

    ``deficit_basis_points``: reference share less observed share, rounded up. ``holds``: within the margin by the
    bound. ``needed``: documents at which it would be at the observed shares; None where no number helps.
    """

    deficit_basis_points: int
    holds: bool
    needed: int | None


def answers_of(table: QualityTable, task: str, metric: str) -> Answers | None:
    """Return the answers to one task by one measure; None where there are none."""
    rows = [
        (document, correct)
        for named, measure, document, correct in zip(
            table.task, table.metric, table.document, table.correct, strict=True
        )
        if (named, measure) == (task, metric)
    ]
    if not rows:
        return None
    return Answers(sum(right for _, right in rows), len(rows), max(document for document, _ in rows) + 1)


def compare_answers(reference: QualityReference, answers: Answers, margin_basis_points: int) -> Compared:
    """Return how answers compare with a reference.

    Documents that the reference or the result's own numbering has, and that were not answered, count as wrong in the
    bound: leaving documents out never helps.
    """
    shown = Fraction(reference.correct, reference.documents)
    margin = Fraction(margin_basis_points, BASIS_POINTS)
    deficit = shown - Fraction(answers.correct, answers.answered)
    whole = max(reference.documents, answers.documents)
    room = margin - (shown - Fraction(answers.correct, whole))
    theirs, ours = _variance(reference.correct, reference.documents), _variance(answers.correct, whole)
    holds = room >= 0 and 1000**2 * room**2 >= NORMAL_MILLI**2 * (theirs + ours)
    needed = None if holds else _needed(margin - deficit, theirs, answers, whole)
    points = ceil_div(deficit.numerator * BASIS_POINTS, deficit.denominator)
    return Compared(points, holds, needed)


def _variance(correct: int, documents: int) -> Fraction:
    """Return the variance of a share, with one right and one wrong answer added, so that it is never 0.

    Source: A. Agresti and B. Caffo, The American Statistician 54 (2000) 280, section 3.
    """
    share = Fraction(correct + 1, documents + 2)
    return share * (1 - share) / (documents + 2)


def _needed(room: Fraction, theirs: Fraction, answers: Answers, whole: int) -> int | None:
    """Return the documents at which the bound would hold at the observed shares."""
    left = 1000**2 * room**2 - NORMAL_MILLI**2 * theirs
    if room <= 0 or left <= 0:
        return None
    share = Fraction(answers.correct + 1, answers.answered + 2)
    ratio = NORMAL_MILLI**2 * share * (1 - share) / left
    return max(ceil_div(ratio.numerator, ratio.denominator), whole)


def _quality(state: State, criterion: Criterion) -> Judgement:
    reference = next((one for one in state.plan.objectives.quality if quality_criterion(one) == criterion.id), None)
    if reference is None or type(criterion.limit) is not int:
        return Judgement("inconclusive", reason="plan_value_missing")
    found = [(item, answers) for item in state.of_type("quality_result") for answers in _answers(item, reference)]
    if not found:
        return missing()
    compared = [compare_answers(reference, answers, criterion.limit) for _, answers in found]
    records = tuple(item for item, _ in found)
    judged = observe(state, criterion, records, max(one.deficit_basis_points for one in compared))
    if judged.outcome != "pass" or all(one.holds for one in compared):
        return judged
    open_ones = [one.needed for one in compared if not one.holds]
    needed = None if None in open_ones else max(number for number in open_ones if number is not None)
    if needed is not None and needed > MAX_SAFE_INTEGER:
        needed = None
    reason = "too_few_documents" if needed is not None else "quality_not_shown"
    return attrs.evolve(judged, outcome="inconclusive", reason=reason, requests_needed=needed)


def _answers(item: VerifiedRecord, reference: QualityReference) -> list[Answers]:
    assert item.quality is not None
    answers = answers_of(item.quality, reference.task, reference.metric)
    return [] if answers is None else [answers]


QUALITY_JUDGES: Mapping[str, Judge] = {"quality_deficit_basis_points": _quality}
