"""Least samples of a bound against the binomial itself, and the time they take."""

from __future__ import annotations

from fractions import Fraction

import pytest

from moeplan.catalogue.order_statistics import least_samples
from moeplan.errors import InputError
from moeplan.planning.samples import sample_need


@pytest.mark.parametrize(("percent", "least"), [(95, 59), (99, 299), (90, 29), (50, 5)])
def test_least_samples_have_the_confidence_and_one_less_has_not(percent: int, least: int) -> None:
    share = Fraction(percent, 100)
    assert 1 - share**least >= Fraction(95, 100) > 1 - share ** (least - 1)
    assert least_samples(percent) == least == sample_need(percent, 1, 1, 1, 1).requests


@pytest.mark.parametrize(
    ("percent", "concurrency", "ttft", "gap", "output", "seconds"),
    [
        (95, 1, 1000, 50, 1024, 3077),  # 59 × 52.150 s = 3076.85 s
        (95, 59, 1000, 50, 1024, 53),  # one round of 52.150 s
        (95, 60, 1000, 50, 1024, 53),
        (95, 58, 1000, 50, 1024, 105),  # two rounds: 104.3 s
        (99, 1, 1000, 50, 1, 299),
        (95, 1000, 1, 1, 1, 1),
    ],
)
def test_seconds_at_target_speed(
    percent: int, concurrency: int, ttft: int, gap: int, output: int, seconds: int
) -> None:
    assert sample_need(percent, concurrency, ttft, gap, output).seconds == seconds


def test_a_trial_of_more_than_countable_seconds_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        sample_need(95, 1, 10**9, 10**9, 10**9)
    assert caught.value.issues[0].code == "workload_too_long"
