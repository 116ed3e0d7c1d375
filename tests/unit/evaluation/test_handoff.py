"""The hand-over of KV cache is proved by each decode process's counters alone."""

from __future__ import annotations

import pytest

from moeplan.model.memory_metrics import ROLE
from tests.build import criterion_of
from tests.unit.evaluation.handoff_cases import COMPUTED, GOOD, HANDED_OVER, Grown, counters, decode_case


def test_a_share_is_of_the_growth_and_not_of_what_was_before() -> None:
    verdict = decode_case(counters("process-0", GOOD)).judge()
    taken, computed = criterion_of(verdict, HANDED_OVER), criterion_of(verdict, COMPUTED)
    assert (taken.outcome, taken.observed) == ("pass", 9995)  # 19,990 of 20,000
    assert (computed.outcome, computed.observed) == ("pass", 10)  # 20 of 20,000


def test_the_worst_process_counts() -> None:
    bad: list[Grown] = [(0, 0, 0), (10_000, 9_700, 300)]
    verdict = decode_case([*counters("process-0", GOOD), *counters("process-1", bad)]).judge()
    assert (criterion_of(verdict, HANDED_OVER).outcome, criterion_of(verdict, HANDED_OVER).observed) == ("fail", 9700)
    assert (criterion_of(verdict, COMPUTED).outcome, criterion_of(verdict, COMPUTED).observed) == ("fail", 300)


def test_shares_are_rounded_against_the_deployment() -> None:
    moments: list[Grown] = [(0, 0, 0), (30_000, 29_399, 601)]  # 97.996… % and 2.003… %
    verdict = decode_case(counters("process-0", moments)).judge()
    assert criterion_of(verdict, HANDED_OVER).observed == 9799
    assert criterion_of(verdict, COMPUTED).observed == 201


def test_a_restart_within_the_run_is_counted_from_zero() -> None:
    moments: list[Grown] = [(5_000, 5_000, 0), (6_000, 6_000, 0), (1_000, 900, 100)]
    verdict = decode_case(counters("process-0", moments)).judge()
    assert criterion_of(verdict, HANDED_OVER).observed == 9500  # 1,900 of 2,000


@pytest.mark.parametrize("id", [HANDED_OVER, COMPUTED])
def test_a_process_without_counters_makes_it_inconclusive_though_the_other_is_good(id: str) -> None:
    result = criterion_of(decode_case([*counters("p-0", GOOD), *counters("p-1", [])]).judge(), id)
    assert (result.outcome, result.reason) == ("inconclusive", "decode_counters_missing")


def test_a_process_that_served_nothing_shows_nothing() -> None:
    result = criterion_of(decode_case(counters("process-0", [GOOD[0], GOOD[0]])).judge(), HANDED_OVER)
    assert (result.outcome, result.reason) == ("inconclusive", "no_prompt_tokens")


def test_counters_of_one_trial_alone_do_not_pass() -> None:
    result = criterion_of(decode_case(counters("process-0", GOOD), seconds=300).judge(), HANDED_OVER)
    assert (result.outcome, result.reason) == ("inconclusive", "workload_not_in_capture")


def test_more_hits_than_prompt_tokens_contradict() -> None:
    moments: list[Grown] = [(0, 0, 0), (10_000, 10_001, 0)]
    result = criterion_of(decode_case(counters("process-0", moments)).judge(), HANDED_OVER)
    assert (result.outcome, result.reason) == ("inconclusive", "counters_contradict")


def test_rows_before_the_one_that_tells_the_role_count() -> None:
    late = [row if row[2] != ROLE else (10**9, *row[1:]) for row in counters("process-0", GOOD)]
    assert any(row[0] == 10**9 and row[5] == "decode" for row in late)
    assert criterion_of(decode_case(late).judge(), HANDED_OVER).observed == 9995
