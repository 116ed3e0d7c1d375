"""The judgement of quantiles in plain Python integers, value by value: the judgement by columns is held against it."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, groupby, pairwise
from math import lcm

import attrs

from moeplan.catalogue.order_statistics import least_samples, nearest_rank, upper_bound_rank
from moeplan.evaluation.batches import BATCHES, STUDENT_T_MILLI
from moeplan.evaluation.quantiles import QuantileResult
from moeplan.evaluation.requests_needed import requests_for_bound
from moeplan.evaluation.samples import Group
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.units import ceil_div

_FACTOR = 100 * (BATCHES - 1)
_T_SQUARED = STUDENT_T_MILLI**2


@attrs.frozen
class _Shares:
    """Shares above one limit over a common denominator D: R = (100 - percent)·20·D - 100·A, A = Σx, Q = Σx².

    The inequality is R >= 0 and 1900·R² >= 1729²·(20·Q - A²).
    """

    room: int
    total: int
    squares: int

    def spread(self) -> int:
        return _T_SQUARED * (BATCHES * self.squares - self.total**2)

    def hold(self) -> bool:
        return self.room >= 0 and _FACTOR * self.room**2 >= self.spread()

    def hold_from_here_on(self) -> bool:
        """Whether the inequality holds here and for every set of smaller shares: R only grows, Q only falls."""
        return self.room >= 0 and _FACTOR * self.room**2 >= _T_SQUARED * BATCHES * self.squares


def batches_hold(groups: Sequence[Group], percent: int, limit: int) -> tuple[bool, int | None]:
    """Return whether the batch test holds, and the requests at which it would with the same shares (None: at none).

    Args:
        groups: one entry a request in start order, at least 20.
        percent: the quantile, 95 for p95.
        limit: largest accepted value.
    """
    edges = [index * len(groups) // BATCHES for index in range(BATCHES + 1)]
    batches = [groups[start:stop] for start, stop in pairwise(edges)]
    totals = [sum(len(group.values) + group.lost for group in batch) for batch in batches]
    if not all(totals):
        return False, None
    needed = 0
    for shares in _loosening(batches, totals, percent, limit):
        if shares.hold_from_here_on():
            break
        if shares.hold():
            continue
        if shares.room <= 0:
            return False, None
        needed = max(needed, ceil_div(len(groups) * shares.spread(), _FACTOR * shares.room**2))
    return needed == 0, needed or len(groups)


def _loosening(
    batches: Sequence[Sequence[Group]], totals: Sequence[int], percent: int, limit: int
) -> Iterator[_Shares]:
    """Yield the shares at ``limit``, then at each looser limit at which they differ."""
    whole = lcm(*totals)
    weights = [whole // total for total in totals]
    above = [[value for group in batch for value in group.values if value > limit] for batch in batches]
    lost = [sum(group.lost for group in batch) for batch in batches]
    parts = [(len(values) + gone) * weight for values, gone, weight in zip(above, lost, weights, strict=True)]
    total, squares = sum(parts), sum(part**2 for part in parts)
    allowed = (100 - percent) * BATCHES * whole
    yield _Shares(allowed - 100 * total, total, squares)
    ranked = sorted((value, number) for number, values in enumerate(above) for value in values)
    for _, rows in groupby(ranked, key=lambda row: row[0]):
        for _, number in rows:
            weight = weights[number]
            total -= weight
            squares -= weight * (2 * parts[number] - weight)
            parts[number] -= weight
        yield _Shares(allowed - 100 * total, total, squares)


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
    values = array("q", chain.from_iterable(group.values for group in groups))
    count = len(values) + sum(group.lost for group in groups)
    if count == 0:
        return QuantileResult("inconclusive", None, None, 0, "no_values", None)
    point, rank = nearest_rank(count, percent), upper_bound_rank(count, percent)
    tail = sorted(values)[point - 1 :]
    observed = tail[0] if tail else None
    bound = tail[rank - point] if rank is not None and rank <= len(values) else None
    if observed is None or observed > limit:
        return QuantileResult("fail", observed, bound, count, "above_limit", None)
    above = count - len(values) + len(tail) - bisect_right(tail, limit)
    share, values_a_request, least = Fraction(above, count), Fraction(count, len(groups)), least_samples(percent)
    if rank is None or len(groups) < least:
        needed = requests_for_bound(share, percent, values_a_request, least)
        return QuantileResult("inconclusive", observed, bound, count, "too_few_samples", needed or least)
    holds, for_batches = batches_hold(groups, percent, limit)
    if bound is not None and bound <= limit and holds:
        return QuantileResult("pass", observed, bound, count, None, None)
    reason = "bound_above_limit" if bound is None or bound > limit else "batches_vary"
    needed = (
        None
        if for_batches is None
        else requests_for_bound(share, percent, values_a_request, max(for_batches, len(groups) + 1))
    )
    return QuantileResult("inconclusive", observed, bound, count, reason, needed)


def chunk_gap_groups(requests: RequestTable, gaps: ChunkGapTable) -> list[Group]:
    """Return each request's chunk gaps in ns, in start order; one that failed adds a lost value to those seen."""
    stops = [0]
    for request in range(len(requests)):
        stops.append(bisect_right(gaps.request, request, stops[-1]))
    return [
        Group(gaps.gap_ns[stops[request] : stops[request + 1]], lost=0 if outcome == "complete" else 1)
        for request, outcome in zip(requests.request, requests.outcome, strict=True)
    ]


def time_at_level(requests: RequestTable) -> dict[int, int]:
    """Return the nanoseconds spent at each number of requests in flight, within the offered-load window."""
    events = sorted([(end, -1) for end in requests.end_ns] + [(start, 1) for start in requests.start_ns])
    first, last = min(requests.start_ns, default=0), max(requests.start_ns, default=0)
    stop = last if last > first else max(requests.end_ns, default=0)
    levels: dict[int, int] = {}
    level, before = 0, first
    for time, step in events:
        until = min(time, stop)
        if until > before:
            levels[level] = levels.get(level, 0) + until - before
            before = until
        level += step
        levels.setdefault(level, 0)
    return levels
