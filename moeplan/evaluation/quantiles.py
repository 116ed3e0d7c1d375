"""A quantile criterion: point estimate by nearest rank, order-statistic bound, and a test over 20 batches.

The bound assumes independent values. Requests of one run hang together, so the share of values above the limit must
hold over 20 consecutive batches in start order too: mean + 1.729·s/√20 <= 1 - q, compared as exact rationals.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import attrs

from moeplan.catalogue.order_statistics import least_samples, nearest_rank, upper_bound_rank
from moeplan.units import ceil_div

__all__ = ["BATCHES", "STUDENT_T", "Group", "QuantileResult", "judge_quantile"]

BATCHES = 20
STUDENT_T = Fraction(1729, 1000)
"""0.95 quantile of Student's t with 19 degrees of freedom. Source: any t table, for example NIST/SEMATECH 1.3.6.7.2."""

_NORMAL = Fraction(1645, 1000)
"""0.95 quantile of the standard normal, for estimates of the requests needed. Source: NIST/SEMATECH 1.3.6.7.1."""


@attrs.frozen
class Group:
    """The values of one request, in start order of the requests; ``lost`` counts values beyond every limit."""

    values: Sequence[int]
    lost: int = 0


@attrs.frozen
class QuantileResult:
    """Outcome of one trial: ``observed`` is None where the quantile lies among lost values."""

    outcome: str
    observed: int | None
    bound: int | None
    samples: int
    reason: str | None
    requests_needed: int | None


def judge_quantile(groups: Sequence[Group], percent: int, limit: int) -> QuantileResult:
    """Judge one trial's values against a limit.

    Args:
        groups: one entry a request in start order; a failed request carries a lost value.
        percent: the quantile, 95 for p95.
        limit: largest accepted value, in the values' unit.

    Returns:
        ``fail`` when the nearest-rank quantile is above the limit, ``pass`` when the bound and the batch test hold,
        else ``inconclusive`` with the requests that would settle it at the observed share.
    """
    ordered = array("q", sorted(value for group in groups for value in group.values))
    count = len(ordered) + sum(group.lost for group in groups)
    if count == 0:
        return QuantileResult("inconclusive", None, None, 0, "no_values", None)
    observed = _at(ordered, nearest_rank(count, percent))
    rank = upper_bound_rank(count, percent)
    bound = None if rank is None else _at(ordered, rank)
    if observed is None or observed > limit:
        return QuantileResult("fail", observed, bound, count, "above_limit", None)
    above = count - bisect_right(ordered, limit)
    for_bound = _for_bound(Fraction(above, count), percent, Fraction(count, len(groups)))
    if rank is None or len(groups) < least_samples(percent):
        least = max(least_samples(percent), for_bound or 0)
        return QuantileResult("inconclusive", observed, bound, count, "too_few_samples", least)
    holds, for_batches = _batches_hold(groups, percent, limit)
    if bound is not None and bound <= limit and holds:
        return QuantileResult("pass", observed, bound, count, None, None)
    reason = "bound_above_limit" if bound is None or bound > limit else "batches_vary"
    needed = None if for_bound is None or for_batches is None else max(for_bound, for_batches, len(groups) + 1)
    return QuantileResult("inconclusive", observed, bound, count, reason, needed)


def _at(ordered: array[int], rank: int) -> int | None:
    return ordered[rank - 1] if rank <= len(ordered) else None


def _batches_hold(groups: Sequence[Group], percent: int, limit: int) -> tuple[bool, int | None]:
    """Return whether the batch test holds, and the requests at which it would (None: at none)."""
    edges = [index * len(groups) // BATCHES for index in range(BATCHES + 1)]
    shares: list[Fraction] = []
    for start, stop in pairwise(edges):
        batch = groups[start:stop]
        total = sum(len(group.values) + group.lost for group in batch)
        if total == 0:
            return False, None
        above = sum(group.lost + sum(value > limit for value in group.values) for group in batch)
        shares.append(Fraction(above, total))
    mean = sum(shares, Fraction(0)) / BATCHES
    variance = sum(((share - mean) ** 2 for share in shares), Fraction(0)) / (BATCHES - 1)
    room = Fraction(100 - percent, 100) - mean
    spread = STUDENT_T**2 * variance / BATCHES
    if room >= 0 and room**2 >= spread:
        return True, len(groups)
    if room <= 0:
        return False, None
    needed = len(groups) * spread / room**2
    return False, ceil_div(needed.numerator, needed.denominator)


def _for_bound(above: Fraction, percent: int, values_a_request: Fraction) -> int | None:
    """Return the requests at which the bound would hold at the observed share, by the normal approximation."""
    share = Fraction(percent, 100)
    room = 1 - share - above
    if room <= 0:
        return None
    needed = _NORMAL**2 * share * (1 - share) / room**2 / values_a_request
    return max(least_samples(percent), ceil_div(needed.numerator, needed.denominator))
