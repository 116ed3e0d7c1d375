"""How many requests would settle a quantile whose point estimate passes and whose bound does not."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from moeplan.catalogue.order_statistics import least_samples, upper_bound_rank
from moeplan.units import ceil_div

__all__ = ["requests_for_bound"]

_NORMAL = Fraction(1645, 1000)
"""0.95 quantile of the standard normal. Source: NIST/SEMATECH 1.3.6.7.1."""

_CORRECTION = 2
"""Whole values set aside for rounding up a count and for the step from a binomial to a normal."""

_EXACT_UP_TO = 20_000
"""Values up to which the least number is looked for with the exact bound; beyond, the approximation is returned."""


def requests_for_bound(share_above: Fraction, percent: int, values_a_request: Fraction, at_least: int) -> int | None:
    """Return requests at which the order-statistic bound holds if the share above the limit stays as observed.

    The least such number as a bisection finds it where that takes few values, else one that is large enough.

    Args:
        share_above: share of values above the limit.
        percent: the quantile, 95 for p95.
        values_a_request: values one request gives on average; more than 0.
        at_least: the least answer wanted.

    Returns:
        None where no number of requests would do: the share is not below 1 - q.
    """
    share = Fraction(100 - percent, 100)
    room = share - share_above
    if room <= 0:
        return None
    enough = max(_enough_values(share * (1 - share), room), least_samples(percent))
    high = max(at_least, ceil_div(enough * values_a_request.denominator, values_a_request.numerator))
    if high * values_a_request > _EXACT_UP_TO:
        return high
    low = at_least - 1
    while high - low > 1:
        middle = (low + high) // 2
        if _holds_at(middle, share_above, percent, values_a_request):
            high = middle
        else:
            low = middle
    return high


def _enough_values(variance: Fraction, room: Fraction) -> int:
    """Return ceil(x²) for the positive x with room·x² = z·σ·x + correction."""
    spread = _NORMAL**2 * variance
    inner = spread + 4 * room * _CORRECTION
    product = spread * inner
    root = isqrt(ceil_div(product.numerator * 10**12, product.denominator)) + 1
    enough = (spread + inner + 2 * Fraction(root, 10**6)) / (4 * room**2)
    return ceil_div(enough.numerator, enough.denominator)


def _holds_at(requests: int, share_above: Fraction, percent: int, values_a_request: Fraction) -> bool:
    values = requests * values_a_request.numerator // values_a_request.denominator
    rank = upper_bound_rank(values, percent)
    return rank is not None and rank <= values - ceil_div(values * share_above.numerator, share_above.denominator)
