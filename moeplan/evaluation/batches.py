"""The batch test: the share of values above a limit over 20 consecutive batches, compared in exact integers.

Requests of one run hang together, so a bound that assumes independent values is not enough: over 20 batches in start
order, mean + 1.729·s/√20 of the share above the limit is at most 1 - q. A share that is low in one batch alone raises
s by more than it lowers the mean, so the inequality at one limit could hold where it does not at a looser one. The test
therefore asks for it at the limit and at every looser one: tightening a limit never improves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import lcm
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.evaluation.samples import Group, Sample
from moeplan.units import ceil_div

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BATCHES", "STUDENT_T_MILLI", "Group", "batches_hold"]

BATCHES = 20
STUDENT_T_MILLI = 1729
"""0.95 quantile of Student's t with 19 degrees of freedom, in thousandths. Source: NIST/SEMATECH 1.3.6.7.2."""

_FACTOR = 100 * (BATCHES - 1)
_T_SQUARED = STUDENT_T_MILLI**2
_FIRST_LIMITS, _MOST_LIMITS = 1 << 8, 1 << 16
_LITTLE_ROOM = 1e-3
_CERTAIN = 1.01


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


def batches_hold(groups: Sample | Sequence[Group], percent: int, limit: int) -> tuple[bool, int | None]:
    """Return whether the batch test holds, and the requests at which it would with the same shares (None: at none).

    Args:
        groups: one entry a request in start order, at least 20.
        percent: the quantile, 95 for p95.
        limit: largest accepted value.
    """
    sample = Sample.of(groups)
    edges = [index * len(sample) // BATCHES for index in range(BATCHES + 1)]
    totals = sample.totals(edges)
    if not all(totals):
        return False, None
    batches = _Batches(sample.above(limit, edges), sample.lost_between(edges), totals, percent)
    first = batches.shares(limit)
    # Every looser limit has more room: where there is any here, there is some at all of them.
    if not first.hold() and first.room <= 0:
        return False, None
    needed = 0 if first.hold_from_here_on() else _most_needed(batches, first, len(sample))
    return needed == 0, needed or len(sample)


def _most_needed(batches: _Batches, first: _Shares, requests: int) -> int:
    """Return the most requests that any limit at which the test does not hold needs; 0 where it holds at all."""
    needed = _needed(first, requests)
    limits, start, size = batches.looser_limits(), 0, _FIRST_LIMITS
    while start < len(limits):
        block = limits[start : start + size]
        for value, ratio in batches.doubtful(block):
            # Ratios descend, and each is right to a hundredth: what follows cannot need more.
            if ratio * requests * _CERTAIN + 1 < needed:
                break
            needed = max(needed, _needed(batches.shares(value), requests))
        if batches.shares(int(block[-1])).hold_from_here_on():
            break
        start, size = start + size, min(2 * size, _MOST_LIMITS)
    return needed


def _needed(shares: _Shares, requests: int) -> int:
    return 0 if shares.hold() else ceil_div(requests * shares.spread(), _FACTOR * shares.room**2)


@attrs.frozen(eq=False)
class _Batches:
    """The values above a limit, the lost values and the size of each of the 20 batches."""

    above: list[NDArray[Any]]
    lost: list[int]
    totals: list[int]
    percent: int

    def shares(self, limit: int) -> _Shares:
        """Return the exact shares above a limit that is not tighter than the first."""
        whole = lcm(*self.totals)
        parts = [
            (len(values) - bisect_right(values, limit) + lost) * (whole // total)
            for values, lost, total in zip(self.above, self.lost, self.totals, strict=True)
        ]
        total = sum(parts)
        allowed = (100 - self.percent) * BATCHES * whole
        return _Shares(allowed - 100 * total, total, sum(part**2 for part in parts))

    def looser_limits(self) -> NDArray[Any]:
        """Return every looser limit at which the shares differ, ascending: each value above the first."""
        import numpy as np

        return np.unique(np.concatenate(self.above))

    def doubtful(self, limits: NDArray[Any]) -> list[tuple[int, float]]:
        """Return the limits at which the inequality does not clearly hold, by descending ratio of its sides.

        Reckoned in binary64 over shares of at most 1, with room at each: both sides are right to 0.00001, so what holds
        by more than 0.01 holds, and from a room of 0.001 on the ratio is right to a hundredth; below it is infinite.
        """
        import numpy as np

        total, squares = np.zeros(len(limits)), np.zeros(len(limits))
        for values, lost, size in zip(self.above, self.lost, self.totals, strict=True):
            share = (len(values) - np.searchsorted(values, limits, "right") + lost) / size
            total += share
            squares += share**2
        room = (100 - self.percent) * BATCHES - 100 * total
        left, right = _FACTOR * room**2, _T_SQUARED * (BATCHES * squares - total**2)
        rows = np.flatnonzero((left < right + 0.01) | (room < _LITTLE_ROOM))
        ratios = np.full(len(rows), np.inf)
        np.divide(right[rows], left[rows], out=ratios, where=room[rows] >= _LITTLE_ROOM)
        order = np.argsort(-ratios, kind="stable")
        return list(zip(limits[rows[order]].tolist(), ratios[order].tolist(), strict=True))
