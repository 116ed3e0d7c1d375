"""Quality against a reference: the bound by an independent computation, and what leaving documents out does."""

from __future__ import annotations

import random
from fractions import Fraction
from math import ceil, sqrt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moeplan.evaluation.quality import Answers, compare_answers
from moeplan.model.plan import Objectives, QualityReference
from tests.build import build_plan, criterion_of, digest_of, make_deployment, planned_criterion
from tests.unit.evaluation.service_cases import QUALITY_ID, answers, quality_case, quality_plan

REFERENCE = QualityReference("gsm8k", "exact_match", 700, 1000, 500)


def bound(right: int, of: int, reference: QualityReference = REFERENCE) -> float:
    """Return d + 1.645·√V in floats, from the formula as the page states it."""

    def variance(count: int, documents: int) -> float:
        share = (count + 1) / (documents + 2)
        return share * (1 - share) / (documents + 2)

    v = variance(reference.correct, reference.documents) + variance(right, of)
    return reference.correct / reference.documents - right / of + 1.645 * sqrt(v)


@pytest.mark.parametrize(
    ("right", "outcome", "observed"),
    [
        (1000, "pass", -3000),
        (684, "pass", 160),
        (683, "inconclusive", 170),
        (650, "inconclusive", 500),
        (649, "fail", 510),
    ],
)
def test_outcomes_around_the_margin(right: int, outcome: str, observed: int) -> None:
    found = criterion_of(quality_case(answers(right, 1000 - right)).judge(), QUALITY_ID)
    assert (found.outcome, found.observed, found.limit) == (outcome, observed, 500)


@settings(max_examples=300)
@given(st.integers(0, 2000), st.integers(1, 2000), st.integers(0, 2000), st.integers(1, 2000), st.integers(0, 3000))
def test_the_bound_is_that_of_floats_away_from_equality(a: int, b: int, c: int, d: int, margin: int) -> None:
    reference, right = QualityReference("t", "m", min(a, b), b, margin), min(c, d)
    whole = max(b, d)
    reached = bound(right, whole, reference) - margin / 10_000
    found = compare_answers(reference, Answers(right, d, d), margin)
    if abs(reached) > 1e-9:
        assert found.holds is (reached <= 0)
    assert found.deficit_basis_points == ceil(Fraction(min(a, b) * 10_000, b) - Fraction(right * 10_000, d))


def test_the_documents_needed_settle_it_at_the_same_shares() -> None:
    found = criterion_of(quality_case(answers(683, 317)).judge(), QUALITY_ID)
    assert found.reason == "too_few_documents"
    assert found.next is not None
    assert "at least 1125 documents" in found.next
    assert bound(683 * 1125, 1000 * 1125) < 0.05
    assert compare_answers(REFERENCE, Answers(round(0.683 * 1130), 1130, 1130), 500).holds
    assert not compare_answers(REFERENCE, Answers(round(0.683 * 1100), 1100, 1100), 500).holds


@settings(max_examples=200)
@given(st.data())
def test_leaving_documents_out_never_makes_it_pass(data: st.DataObject) -> None:
    documents = data.draw(st.integers(1, 200))
    right = data.draw(st.integers(0, documents))
    reference = QualityReference("t", "m", data.draw(st.integers(0, documents)), documents, 0)
    margin = data.draw(st.integers(0, 4000))
    given_all = [1] * right + [0] * (documents - right)
    random.Random(documents).shuffle(given_all)
    kept = [n for n in range(documents) if data.draw(st.booleans())] or [0]
    less = Answers(sum(given_all[n] for n in kept), len(kept), max(kept) + 1)
    if compare_answers(reference, less, margin).holds:
        assert compare_answers(reference, Answers(right, documents, documents), margin).holds


def test_wrong_answers_left_out_are_not_forgotten() -> None:
    """690 of 1,000 pass. Without 300 of the wrong ones it looks like 690 of 700, and does not pass."""
    found = criterion_of(quality_case(answers(690, 10)).judge(), QUALITY_ID)
    assert found.outcome == "pass"  # as many right as before: leaving wrong ones out changes nothing
    found = criterion_of(quality_case(answers(680, 0)).judge(), QUALITY_ID)
    assert (found.outcome, found.observed) == ("inconclusive", -3000)
    assert criterion_of(quality_case(answers(680, 0, first=900)).judge(), QUALITY_ID).outcome == "inconclusive"


def test_a_tighter_margin_never_improves() -> None:
    reference = QualityReference("t", "m", 70, 100, 0)
    for right in range(0, 101, 5):
        held = [compare_answers(reference, Answers(right, 100, 100), margin).holds for margin in range(0, 10_001, 50)]
        assert held == sorted(held)


def test_all_right_with_few_documents_shows_little() -> None:
    plan = quality_plan(1, 1, 5000)
    assert criterion_of(quality_case(answers(1), plan=plan).judge(), QUALITY_ID).outcome == "inconclusive"


def test_each_of_several_records_must_pass() -> None:
    verdict = quality_case(answers(700, 300), answers(600, 400)).judge()
    found = criterion_of(verdict, QUALITY_ID)
    assert (found.outcome, found.observed) == ("fail", 1000)
    found = criterion_of(quality_case(answers(700, 300), answers(683, 317)).judge(), QUALITY_ID)
    assert (found.outcome, found.reason) == ("inconclusive", "too_few_documents")


def test_another_task_is_no_evidence() -> None:
    found = criterion_of(quality_case(answers(700, 300, task="mmlu")).judge(), QUALITY_ID)
    assert (found.outcome, found.reason) == ("inconclusive", "missing_evidence")
    assert found.next is not None
    assert "moeplan import lm-eval" in found.next


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"signers": ()}, "no_trusted_runner"),
        ({"deployment": make_deployment(arguments=("--x",))}, "mixed_deployments"),
        ({"deployment": make_deployment(checkpoint_root=digest_of("x"))}, "mixed_deployments"),
    ],
)
def test_whose_answers_they_are(record: dict[str, Any], reason: str) -> None:
    found = criterion_of(quality_case(answers(700, 300), **record).judge(), QUALITY_ID)
    assert (found.outcome, found.reason) == ("inconclusive", reason)


def test_the_plan_asks_task_by_task() -> None:
    first, second = QualityReference("a", "acc", 1, 2, 100), QualityReference("b", "acc", 1, 2, 250)
    plan = build_plan(objectives=Objectives(quality=(first, second)))
    rules = [planned_criterion(plan, id) for id in ("sla.quality.a.acc", "sla.quality.b.acc")]
    assert [(rule.comparator, rule.limit, rule.unit) for rule in rules] == [
        ("le", 100, "basis_points"),
        ("le", 250, "basis_points"),
    ]
    assert plan.validation_gates[4].acceptance_criteria[-1] == (
        "Quality is not below its reference by more than the margin: a.acc (1.00%), b.acc (2.50%)."
    )


@pytest.mark.parametrize(
    "names", [(("a.b", "c"), ("a", "b.c")), (("t" * 100, "m" * 100),)], ids=["one id for two", "too long"]
)
def test_names_that_give_no_criterion_are_refused(names: tuple[tuple[str, str], ...]) -> None:
    quality = tuple(sorted((QualityReference(t, m, 1, 2, 0) for t, m in names), key=lambda one: (one.task, one.metric)))
    assert [issue.code for issue in Objectives(quality=quality).faults()] == ["criterion_id"]
