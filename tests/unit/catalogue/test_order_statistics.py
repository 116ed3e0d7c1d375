"""Ranks and sample sizes against scipy's binomial distribution, sorted arrays and the published 59 and 299."""

from __future__ import annotations

import math
import random

import pytest
from scipy.stats import binom

from moeplan.catalogue import order_statistics
from moeplan.catalogue.order_statistics import CONFIDENCE_PERCENT, least_samples, nearest_rank, upper_bound_rank

MANY = [*range(1, 700), 999, 1000, 1001, 2400, 5000, 15_000, 60_000, 250_000]


@pytest.mark.parametrize("percent", [50, 90, 95, 99])
def test_the_bound_rank_is_the_least_that_scipy_gives_the_level(percent: int) -> None:
    for count in MANY:
        rank = upper_bound_rank(count, percent)
        tail_at = [float(binom.sf(k - 1, count, percent / 100)) for k in (count, (rank or 1) - 1, rank or count)]
        if rank is None:
            assert tail_at[0] > 0.05, count
        else:
            assert tail_at[2] <= 0.05, count
            assert tail_at[1] > 0.05, count


@pytest.mark.parametrize("percent", [50, 90, 95, 99])
@pytest.mark.parametrize("count", [60_000, 99_999, 123_456])
def test_the_sum_near_the_quantile_gives_the_rank_of_the_whole_sum(count: int, percent: int) -> None:
    whole = order_statistics._rank_from_the_top(count, percent)
    near = order_statistics._rank_near_the_quantile(count, percent)
    assert near in (None, whole)
    assert (near is None) is (percent == 99 and count < 90_000)


def test_a_rank_among_a_hundred_million() -> None:
    rank = upper_bound_rank(99_000_000, 95)
    assert rank is not None
    assert binom.sf(rank - 1, 99_000_000, 0.95) <= 0.05 < binom.sf(rank - 2, 99_000_000, 0.95)


@pytest.mark.parametrize(("percent", "published"), [(95, 59), (99, 299)])
def test_the_least_samples_are_the_published_ones(percent: int, published: int) -> None:
    """ln 0.05 / ln q rounded up: 59 and 299, the sample sizes of Wilks' formula at 95/95 and 99/95."""
    assert least_samples(percent) == published == math.ceil(math.log(0.05) / math.log(percent / 100))
    assert upper_bound_rank(published, percent) == published
    assert upper_bound_rank(published - 1, percent) is None


def test_wilks_second_order_needs_93_samples() -> None:
    """At 95/95 the second largest value is a bound from 93 values on (published with Wilks' 59 and 124)."""
    assert upper_bound_rank(92, 95) == 92
    assert upper_bound_rank(93, 95) == 92
    assert upper_bound_rank(123, 95) == 122
    assert upper_bound_rank(124, 95) == 122


def test_no_value_has_no_bound() -> None:
    assert upper_bound_rank(0, 95) is None
    assert CONFIDENCE_PERCENT == 95


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_nearest_rank_has_the_share_at_or_below_it_and_is_the_least_that_has(percent: int) -> None:
    rng = random.Random(percent)
    for count in [*range(1, 300), 1000, 99_999]:
        values = sorted(rng.random() for _ in range(min(count, 300)))
        rank = nearest_rank(count, percent)
        assert 1 <= rank <= count
        assert rank * 100 >= percent * count
        assert rank == 1 or (rank - 1) * 100 < percent * count
        if count <= 300:
            found = values[rank - 1]
            assert sum(value <= found for value in values) * 100 >= percent * count


def test_nearest_rank_by_hand() -> None:
    assert [nearest_rank(count, 95) for count in (1, 19, 20, 21, 40, 41, 100, 240)] == [1, 19, 19, 20, 38, 39, 95, 228]
