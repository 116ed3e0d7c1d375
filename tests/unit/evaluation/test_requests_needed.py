"""At the number given, with the same shares, scipy's binomial distribution says the bound holds."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy.stats import binom

from moeplan.evaluation.batches import Group
from moeplan.evaluation.quantiles import judge_quantile
from moeplan.evaluation.requests_needed import requests_for_bound


def bound_holds(values: int, share: Fraction, percent: int) -> bool:
    above = math.ceil(values * share)
    return float(binom.sf(values - above - 1, values, percent / 100)) <= 0.05


@pytest.mark.parametrize("percent", [95, 99])
@pytest.mark.parametrize("values_a_request", [Fraction(1), Fraction(5), Fraction(63, 2)])
def test_the_bound_holds_at_that_number(percent: int, values_a_request: Fraction) -> None:
    checked = 0
    for count in (20, 59, 100, 240, 1000, 30_000):
        allowed = count * (100 - percent) // 100
        for above in sorted({0, 1, 2, allowed // 2, allowed - 1, allowed}):
            share = Fraction(max(0, above), count)
            needed = requests_for_bound(share, percent, values_a_request, 1)
            if needed is None:
                assert share >= Fraction(100 - percent, 100)
                continue
            assert bound_holds(math.floor(needed * values_a_request), share, percent), (count, above)
            checked += 1
    assert checked > 15


def test_a_small_answer_is_the_least() -> None:
    assert requests_for_bound(Fraction(0), 95, Fraction(1), 1) == 59
    assert requests_for_bound(Fraction(0), 99, Fraction(1), 1) == 299
    assert requests_for_bound(Fraction(0), 95, Fraction(4), 1) == 15
    needed = requests_for_bound(Fraction(1, 60), 95, Fraction(1), 61)
    assert needed is not None
    assert bound_holds(needed, Fraction(1, 60), 95)
    assert not bound_holds(needed - 1, Fraction(1, 60), 95)


def test_it_is_never_less_than_asked() -> None:
    assert requests_for_bound(Fraction(0), 95, Fraction(1), 241) == 241


def test_no_number_is_enough_at_the_share_itself() -> None:
    assert requests_for_bound(Fraction(1, 20), 95, Fraction(1), 1) is None


def test_a_longer_trial_with_the_same_shares_passes() -> None:
    """The verdict's advice, taken: the same requests repeated up to the number asked for."""
    values = [100 if index in (20, 50) else 10 for index in range(60)]
    first = judge_quantile([Group((value,)) for value in values], 95, 50)
    assert first.reason == "bound_above_limit"
    assert first.requests_needed is not None
    longer = (values * (first.requests_needed // 60 + 1))[: first.requests_needed]
    assert judge_quantile([Group((value,)) for value in longer], 95, 50).outcome == "pass"
