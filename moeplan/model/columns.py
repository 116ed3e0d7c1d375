"""Integer columns: ``array`` objects in the model, looked at through numpy where a million rows are reckoned with."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NARROW", "WIDE", "append", "column_of", "narrow", "view"]

NARROW = "i"
"""Type code of a column of 32-bit integers."""
WIDE = "q"
"""Type code of a column of 64-bit integers."""
_NARROW_MOST = (1 << 31) - 1


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
