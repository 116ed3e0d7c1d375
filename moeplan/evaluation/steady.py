"""Whether a trial was in a steady state: the middles of its four quarters lie close together."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from moeplan.units import BASIS_POINTS, ceil_div

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["QUARTERS", "drift_basis_points"]

QUARTERS = 4


def drift_basis_points(durations: NDArray[Any], allowed_ns: int) -> int | None:
    """Return the greatest distance between two quarters' medians, in basis points of the time allowed, rounded up.

    Args:
        durations: how long each request took, in start order.
        allowed_ns: how long the plan allows a request to take.

    Returns:
        None for fewer than four requests. A median is the value of rank ceil(n / 2): an observed integer.
    """
    import numpy as np

    count = len(durations)
    if count < QUARTERS:
        return None
    edges = [part * count // QUARTERS for part in range(QUARTERS + 1)]
    parts = [durations[start:stop] for start, stop in pairwise(edges)]
    middles = [int(np.partition(part, (len(part) - 1) // 2)[(len(part) - 1) // 2]) for part in parts]
    return ceil_div((max(middles) - min(middles)) * BASIS_POINTS, allowed_ns)
