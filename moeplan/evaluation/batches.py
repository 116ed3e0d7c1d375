"""The batch test: the share of values above a limit over 20 consecutive batches, compared in exact integers.

Requests of one run hang together, so a bound that assumes independent values is not enough: over 20 batches in start
order, mean + 1.729·s/√20 of the share above the limit is at most 1 - q. A share that is low in one batch alone raises
s by more than it lowers the mean, so the inequality at one limit could hold where it does not at a looser one. The test
therefore asks for it at the limit and at every looser one: tightening a limit never improves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from math import lcm

import attrs

from moeplan.units import ceil_div

__all__ = ["BATCHES", "STUDENT_T_MILLI", "Group", "batches_hold"]

BATCHES = 20
STUDENT_T_MILLI = 1729
"""0.95 quantile of Student's t with 19 degrees of freedom, in thousandths. Source: NIST/SEMATECH 1.3.6.7.2."""

_FACTOR = 100 * (BATCHES - 1)
_T_SQUARED = STUDENT_T_MILLI**2


@attrs.frozen
class Group:
    """The values of one request, in start order of the requests; ``lost`` counts values beyond every limit."""

    values: Sequence[int]
    lost: int = 0


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
