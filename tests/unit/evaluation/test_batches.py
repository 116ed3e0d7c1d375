"""The batch test against numpy's floats away from the boundary, and exact rationals by hand on it."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import t as student

from moeplan.evaluation.batches import BATCHES, STUDENT_T_MILLI, Group, batches_hold


def excess(groups: list[Group], percent: int, limit: int) -> float:
    """Return mean + 1.729·s/√20 - (1 - q) in floats."""
    edges = [index * len(groups) // 20 for index in range(21)]
    shares = []
    for start, stop in pairwise(edges):
        values = np.concatenate([np.array([*g.values, *[2**62] * g.lost], dtype=np.int64) for g in groups[start:stop]])
        shares.append(float(np.mean(values > limit)))
    return float(np.mean(shares) + 1.729 * np.std(shares, ddof=1) / np.sqrt(20)) - (1 - percent / 100)


def test_the_factor_is_students() -> None:
    assert round(float(student.ppf(0.95, BATCHES - 1)), 3) == STUDENT_T_MILLI / 1000


@pytest.mark.parametrize("percent", [90, 95])
def test_the_test_holds_where_numpy_says_so_at_every_looser_limit(percent: int) -> None:
    rng = random.Random(percent)
    seen = {True: 0, False: 0}
    for _ in range(150):
        rate = rng.choice([0.0, 0.2, 0.6, 1.0]) * (100 - percent) / 100
        groups = [
            Group(
                tuple(rng.randrange(101, 110) if rng.random() < rate else 10 for _ in range(rng.randrange(1, 9))),
                lost=int(rng.random() < rate / 8),
            )
            for _ in range(rng.randrange(60, 400))
        ]
        margins = [excess(groups, percent, limit) for limit in range(100, 111)]
        if min(abs(margin) for margin in margins) < 1e-9:
            continue
        expected = all(margin < 0 for margin in margins)
        assert batches_hold(groups, percent, 100)[0] is expected
        seen[expected] += 1
    assert min(seen.values()) > 20


def full(total: int, above: int) -> Group:
    return Group((10,) * (total - above) + (100,) * above)


def test_equal_shares_of_exactly_one_in_twenty_hold_and_one_more_value_does_not() -> None:
    """No spread, so the mean alone decides: 0.05 <= 0.05."""
    batches = [full(20, 1)] * 20
    assert batches_hold(batches, 95, 50) == (True, 20)
    assert batches_hold([full(20, 2), *batches[1:]], 95, 50) == (False, None)


def test_one_batch_of_1000_in_2729_lies_exactly_on_the_boundary() -> None:
    """With one share x and nineteen 0: mean x/20, s x/√20, so 2.729·x/20 <= 0.05, that is x <= 1000/2729."""
    assert batches_hold([full(2729, 1000)] + [full(2729, 0)] * 19, 95, 50)[0]
    assert not batches_hold([full(2728, 1000)] + [full(2728, 0)] * 19, 95, 50)[0]
    assert not batches_hold([full(2729, 1001)] + [full(2729, 0)] * 19, 95, 50)[0]


def test_lost_values_count_as_above_every_limit() -> None:
    lost = [Group((10,) * 1729, lost=1000)] + [full(2729, 0)] * 19
    assert batches_hold(lost, 95, 10**15)[0]
    assert not batches_hold([Group((10,) * 1728, lost=1001)] + [full(2729, 0)] * 19, 95, 10**15)[0]


def test_requests_needed_shrink_the_spread_to_the_room() -> None:
    """x = 1/2: mean 0.025, spread (1.729/40)², room 0.025; n·spread/room² = 20·2.989441 = 59.79, rounded up."""
    assert batches_hold([full(10, 5)] + [full(10, 0)] * 19, 95, 50) == (False, 60)


def test_no_number_of_requests_helps_where_the_mean_is_too_high() -> None:
    assert batches_hold([full(20, 1)] * 19 + [full(20, 2)], 95, 50) == (False, None)


def test_a_batch_without_values_holds_nothing() -> None:
    assert batches_hold([Group(())] + [full(20, 0)] * 19, 95, 50) == (False, None)


def test_it_does_not_hold_at_a_limit_where_a_looser_one_fails() -> None:
    """Nineteen batches with 194 of 4000 above 250 and one with as many between 150 and 250.

    At 150 all shares are 0.0485 and the inequality holds; at 250 one share is 0, the mean falls to 0.046075, s rises to
    0.0108 and the sum is 0.05027. Without the looser limits, tightening 250 to 150 would make a pass.
    """
    groups = [Group((300,) * 194 + (10,) * 3806)] * 19 + [Group((200,) * 194 + (10,) * 3806)]
    assert excess(groups, 95, 150) < 0 < excess(groups, 95, 250)
    assert not batches_hold(groups, 95, 250)[0]
    assert not batches_hold(groups, 95, 150)[0]
    assert batches_hold(groups, 95, 300)[0]
