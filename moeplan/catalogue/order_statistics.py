"""Order statistics: the nearest-rank quantile, its distribution-free upper bound, and the samples a bound needs.

Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1: the k-th order statistic of n
independent values is an upper confidence bound for the q-quantile at the level P(Bin(n, q) <= k - 1).
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from functools import lru_cache
from math import isqrt

from moeplan.units import ceil_div

__all__ = ["CONFIDENCE_PERCENT", "least_samples", "nearest_rank", "upper_bound_rank"]

CONFIDENCE_PERCENT = 95
"""Level of the one-sided bound, in percent."""

_UP = Context(prec=50, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Every step rounds up, so a tail probability is never understated and a bound never too low."""
_NEAR = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
_NEAR_ERROR = Decimal("1e-24")
"""Far more than a sum of 10^5 terms of 60 digits, or the first term, is off by, relatively."""
_STIRLING_LEAST = 500
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def nearest_rank(count: int, percent: int) -> int:
    """Return the 1-based rank of the ``percent`` quantile of ``count`` values: ceil(count × percent / 100). Exact."""
    return max(1, ceil_div(count * percent, 100))


@lru_cache(maxsize=256)
def upper_bound_rank(count: int, percent: int) -> int | None:
    """Return the least 1-based rank that is a 95 % upper bound for the ``percent`` quantile, or None.

    That is the least k with P(Bin(count, percent / 100) >= k) <= 5 %; None where even the largest value is none,
    which is below 59 values for 95 and below 299 for 99. Tail probabilities are rounded up at 50 digits.
    """
    rank = _rank_near_the_quantile(count, percent)
    return _rank_from_the_top(count, percent) if rank is None else rank


def _rank_near_the_quantile(count: int, percent: int) -> int | None:
    """Return the rank from the tail's sum of but 14 standard deviations; None where the sum's error leaves a doubt.

    Above, terms fall faster than a geometric series. The first one is Stirling's with five corrections, which is right
    to 10^-30 where each factorial's argument is 500 or more.
    """
    share, others = Decimal(percent).scaleb(-2), Decimal(100 - percent).scaleb(-2)
    deviation = isqrt(count * percent * (100 - percent) // 10_000) + 1
    rank = nearest_rank(count, percent) + 14 * deviation
    if count - rank < _STIRLING_LEAST or rank < _STIRLING_LEAST:
        return None
    alpha, odds = Decimal(100 - CONFIDENCE_PERCENT).scaleb(-2), _NEAR.divide(others, share)
    term = _binomial_term(count, rank, share, others)
    ratio = _NEAR.divide(Decimal(count - rank), _NEAR.multiply(Decimal(rank + 1), odds))
    beyond = _NEAR.divide(_NEAR.multiply(term, ratio), 1 - ratio)
    tail = term
    while True:
        rank -= 1
        term = _NEAR.multiply(term, _NEAR.divide(_NEAR.multiply(Decimal(rank + 1), odds), Decimal(count - rank)))
        longer = _NEAR.add(tail, term)
        if longer > alpha:
            break
        tail = longer
    decided = (tail + beyond) * (1 + _NEAR_ERROR) <= alpha < longer * (1 - _NEAR_ERROR)
    return rank + 1 if decided else None


def _binomial_term(count: int, rank: int, share: Decimal, others: Decimal) -> Decimal:
    """Return P(Bin(count, share) = rank) by Stirling's series. Source: NIST DLMF 5.11.1, error bound 5.11(ii)."""
    n, k, rest = Decimal(count), Decimal(rank), Decimal(count - rank)
    with localcontext(_NEAR):
        power = k * (n * share / k).ln() + rest * (n * others / rest).ln() + (n / (2 * _PI * k * rest)).ln() / 2
        return (power + _stirling(n) - _stirling(k) - _stirling(rest)).exp()


def _stirling(value: Decimal) -> Decimal:
    terms = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188))
    return sum((sign / (factor * value ** (2 * place + 1)) for place, (sign, factor) in enumerate(terms)), Decimal(0))


def _rank_from_the_top(count: int, percent: int) -> int | None:
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
