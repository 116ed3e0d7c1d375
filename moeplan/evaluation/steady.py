"""Whether a trial was in a steady state: the middles of its four quarters lie close together."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from moeplan.units import BASIS_POINTS, ceil_div

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["QUARTERS", "drift_basis_points"]

QUARTERS = 4


def drift_basis_points(durations: NDArray[Any]) -> int | None:
    """Return the greatest distance between two quarters' medians over the median of all, in basis points, rounded up.

    Args:
        durations: how long each request took, in start order.

    Returns:
        None for fewer than four requests, or where the median is 0. A median is the value of rank ceil(n / 2): an
        observed integer.
    """
    count = len(durations)
    if count < QUARTERS:
        return None
    edges = [part * count // QUARTERS for part in range(QUARTERS + 1)]
    middles = [_median(durations[start:stop]) for start, stop in pairwise(edges)]
    whole = _median(durations)
    return ceil_div((max(middles) - min(middles)) * BASIS_POINTS, whole) if whole else None


def _median(values: NDArray[Any]) -> int:
    import numpy as np

    place = (len(values) - 1) // 2
    return int(np.partition(values, place)[place])
