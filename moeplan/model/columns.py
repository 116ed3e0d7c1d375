"""Integer columns: ``array`` objects in the model, looked at through numpy where a million rows are reckoned with."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NARROW", "WIDE", "append", "column_of", "exact_sum", "exact_sum_of_squares", "narrow", "run_sums", "view"]

NARROW = "i"
"""Type code of a column of 32-bit integers."""
WIDE = "q"
"""Type code of a column of 64-bit integers."""
_NARROW_MOST = (1 << 31) - 1
_RUN_VALUES = 1 << 20
_BLOCK = 1 << 11
"""Products of two numbers of 26 bits that fit into 63 together."""


def view(column: array[int]) -> NDArray[Any]:
    """Return the column's own memory as a numpy array; the column cannot grow as long as the view lives."""
    import numpy as np

    return np.frombuffer(column, dtype=column.typecode) if len(column) else np.empty(0, column.typecode)


def column_of(values: NDArray[Any], typecode: str = WIDE) -> array[int]:
    """Return a column with a copy of ``values``, which must fit into the type."""
    made = array(typecode)
    append(made, values)
    return made


def append(column: array[int], values: NDArray[Any]) -> None:
    """Append ``values``, which must fit into the column's type."""
    import numpy as np

    whole: Any = np.ascontiguousarray(values, column.typecode)
    if len(values):
        column.frombytes(memoryview(whole).cast("B"))


def narrow(values: Iterable[int]) -> array[int]:
    """Return a column of 32-bit integers where all of ``values`` fit into them, else of 64-bit ones.

    Raises:
        OverflowError: a value beyond 64 bits.
    """
    made = values if isinstance(values, array) else array(WIDE, values)
    if made.typecode == NARROW or not made:
        return made if made else array(NARROW)
    seen = view(made)
    fits = int(seen.min()) >= -_NARROW_MOST and int(seen.max()) <= _NARROW_MOST
    return column_of(seen, NARROW) if fits else made


def run_sums(values: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
    """Return the 64-bit sum of each run of ``counts`` values, 1 or more each; widened a block at a time."""
    import numpy as np

    stops, sums = np.cumsum(counts), np.empty(len(counts), np.int64)
    step = max(_RUN_VALUES // max(int(counts.max(initial=1)), 1), 1)
    for first in range(0, len(counts), step):
        starts = stops[first : first + step] - counts[first : first + step]
        part = values[int(starts[0]) : int(stops[min(first + step, len(counts)) - 1])].astype(np.int64)
        sums[first : first + step] = np.add.reduceat(part, starts - starts[0])
    return sums


def exact_sum(values: NDArray[Any]) -> int:
    """Return the sum of integers, however large it is."""
    if values.dtype == object or not len(values):
        return int(sum(values.tolist()))
    most = max(abs(int(values.min())), abs(int(values.max())), 1)
    step = max((1 << 62) // most, 1)
    return sum(int(values[at : at + step].sum(dtype="int64")) for at in range(0, len(values), step))


def exact_sum_of_squares(values: NDArray[Any]) -> int:
    """Return the sum of the squares of integers from 0 on, however large it is: by halves of 26 bits, below 2^52."""
    import numpy as np

    if values.dtype == object or not len(values) or int(values.max()) >= 1 << 52 or int(values.min()) < 0:
        return sum(value * value for value in values.tolist())
    total = 0
    for at in range(0, len(values), _BLOCK):
        block = values[at : at + _BLOCK].astype(np.int64)
        high, low = block >> 26, block & ((1 << 26) - 1)
        total += (int(np.dot(high, high)) << 52) + (int(np.dot(high, low)) << 27) + int(np.dot(low, low))
    return total
