"""Order statistics: the nearest-rank quantile, its distribution-free upper bound, and the samples a bound needs.

Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1: the k-th order statistic of n
independent values is an upper confidence bound for the q-quantile at the level P(Bin(n, q) <= k - 1).
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from functools import lru_cache

from moeplan.units import ceil_div

__all__ = ["CONFIDENCE_PERCENT", "least_samples", "nearest_rank", "upper_bound_rank"]

CONFIDENCE_PERCENT = 95
"""Level of the one-sided bound, in percent."""

_UP = Context(prec=50, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Every step rounds up, so a tail probability is never understated and a bound never too low."""


def nearest_rank(count: int, percent: int) -> int:
    """Return the 1-based rank of the ``percent`` quantile of ``count`` values: ceil(count × percent / 100). Exact."""
    return max(1, ceil_div(count * percent, 100))


@lru_cache(maxsize=256)
def upper_bound_rank(count: int, percent: int) -> int | None:
    """Return the least 1-based rank that is a 95 % upper bound for the ``percent`` quantile, or None.

    That is the least k with P(Bin(count, percent / 100) >= k) <= 5 %; None where even the largest value is none,
    which is below 59 values for 95 and below 299 for 99. Tail probabilities are rounded up at 50 digits.
    """
    alpha = Decimal(100 - CONFIDENCE_PERCENT).scaleb(-2)
    share = Decimal(percent).scaleb(-2)
    term = _power(share, count)
    if term > alpha:
        return None
    odds = _UP.divide(1 - share, share)
    tail, rank = term, count
    while rank > 1:
        term = _UP.multiply(term, _UP.divide(_UP.multiply(Decimal(rank), odds), Decimal(count - rank + 1)))
        tail = _UP.add(tail, term)
        if tail > alpha:
            break
        rank -= 1
    return rank


@lru_cache(maxsize=16)
def least_samples(percent: int) -> int:
    """Return the least number of values that has a 95 % upper bound for the ``percent`` quantile. Exact integers."""
    count, power, whole = 1, percent, 100
    while power * 100 > (100 - CONFIDENCE_PERCENT) * whole:
        count, power, whole = count + 1, power * percent, whole * 100
    return count


def _power(base: Decimal, exponent: int) -> Decimal:
    result = Decimal(1)
    while exponent:
        if exponent & 1:
            result = _UP.multiply(result, base)
        base = _UP.multiply(base, base)
        exponent >>= 1
    return result
