"""Quantiles, bounds and outcomes against sorted arrays, numpy and hand calculation."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.stats import binom

from moeplan.evaluation.batches import Group
from moeplan.evaluation.quantiles import judge_quantile, upper_tail


def singles(values: list[int]) -> list[Group]:
    return [Group((value,)) for value in values]


def spread_out(count: int, above: int, *, low: int = 10, high: int = 100) -> list[Group]:
    """Return ``count`` requests of which ``above`` are high, as evenly apart as integers allow."""
    marks = {index * count // above for index in range(above)} if above else set()
    return singles([high if index in marks else low for index in range(count)])


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_the_observed_quantile_is_numpys_nearest_rank(percent: int) -> None:
    rng = random.Random(percent)
    for count in (1, 2, 19, 20, 21, 59, 100, 240, 1001):
        values = [rng.randrange(10**9) for _ in range(count)]
        expected = int(np.percentile(np.array(values), percent, method="inverted_cdf"))
        assert judge_quantile(singles(values), percent, 10**9).observed == expected


def test_the_bound_is_the_value_scipy_points_at() -> None:
    rng = random.Random(7)
    for count in (59, 93, 240, 1000):
        values = [rng.randrange(10**9) for _ in range(count)]
        rank = int(binom.ppf(0.95, count, 0.95)) + 1
        assert judge_quantile(singles(values), 95, 10**9).bound == sorted(values)[rank - 1]


def test_a_calm_trial_passes() -> None:
    result = judge_quantile(spread_out(240, 2), 95, 50)
    assert (result.outcome, result.observed, result.bound, result.samples) == ("pass", 10, 10, 240)
    assert result.reason is None
    assert result.requests_needed is None


def test_a_limit_is_met_by_equality_and_missed_by_one() -> None:
    values = singles([50] * 60)
    assert judge_quantile(values, 95, 50).outcome == "pass"
    assert judge_quantile(values, 95, 49).outcome == "fail"


def test_a_quantile_above_the_limit_fails() -> None:
    result = judge_quantile(spread_out(60, 4), 95, 50)
    assert (result.outcome, result.observed, result.reason) == ("fail", 100, "above_limit")


def test_of_sixty_requests_two_above_leave_the_bound_above() -> None:
    result = judge_quantile(spread_out(60, 2), 95, 50)
    assert (result.outcome, result.observed, result.bound) == ("inconclusive", 10, 100)
    assert result.reason == "bound_above_limit"


def test_fifty_eight_are_too_few_and_fifty_nine_are_enough() -> None:
    few = judge_quantile(singles([10] * 58), 95, 50)
    assert (few.outcome, few.reason, few.bound, few.requests_needed) == ("inconclusive", "too_few_samples", None, 59)
    assert judge_quantile(singles([10] * 59), 95, 50).outcome == "pass"
    assert judge_quantile(singles([10] * 298), 99, 50).requests_needed == 299
    assert judge_quantile(singles([10] * 299), 99, 50).outcome == "pass"


def test_many_gaps_of_few_requests_are_too_few() -> None:
    result = judge_quantile([Group((10,) * 1000)] * 58, 95, 50)
    assert (result.outcome, result.reason, result.bound) == ("inconclusive", "too_few_samples", 10)


def test_a_drift_within_the_trial_is_inconclusive() -> None:
    late = [10] * 388 + [100] * 12
    result = judge_quantile(singles(late), 95, 50)
    assert result.bound == 10
    assert (result.outcome, result.reason) == ("inconclusive", "batches_vary")
    assert judge_quantile(spread_out(400, 12), 95, 50).outcome == "pass"


def test_no_values_decide_nothing() -> None:
    for groups in ([], [Group(())] * 60):
        result = judge_quantile(groups, 95, 50)
        assert (result.outcome, result.samples, result.reason) == ("inconclusive", 0, "no_values")


def test_lost_values_lie_beyond_every_limit() -> None:
    groups = [Group((10,))] * 56 + [Group((), lost=1)] * 4
    result = judge_quantile(groups, 95, 10**15)
    assert (result.outcome, result.observed, result.bound, result.samples) == ("fail", None, None, 60)
    three = judge_quantile([Group((10,))] * 57 + [Group((), lost=1)] * 3, 95, 10**15)
    assert (three.outcome, three.observed, three.bound) == ("inconclusive", 10, None)


def test_all_lost_fails() -> None:
    assert judge_quantile([Group((), lost=1)] * 60, 95, 50).outcome == "fail"


@pytest.mark.parametrize("count", [0, 1, 4096, 4097, 20_000])
@pytest.mark.parametrize("shape", ["random", "equal", "ascending", "descending", "tail_off_sample"])
def test_the_upper_tail_is_the_sorted_lists_end(count: int, shape: str) -> None:
    rng = random.Random(count)
    values = {
        "random": [rng.randrange(1000) for _ in range(count)],
        "equal": [5] * count,
        "ascending": list(range(count)),
        "descending": list(range(count, 0, -1)),
        "tail_off_sample": [10 if index % 64 else 10**9 for index in range(count)],
    }[shape]
    for rank in (1, count // 2, count * 95 // 100, count, count + 1):
        if rank >= 1:
            assert upper_tail(np.array(values, np.int64), rank).tolist() == sorted(values)[rank - 1 :]
