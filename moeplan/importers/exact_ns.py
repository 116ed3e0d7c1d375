"""Milliseconds and seconds as a tool's JSON holds them -> integer nanoseconds, exactly rounded and fast.

A binary64 product is rounded at most three times (the text, the factor's product, the integer), each by half a unit in
the last place, so below 2^43 ns the product lies within 0.003 ns of the decimal's. Where it lies within 0.49 of an
integer that integer is the decimal's too; what lies nearer to a tie, or beyond, is computed from the decimal itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from decimal import Decimal

from moeplan.units import NS_PER_MS, seconds_to_ns

__all__ = ["many_to_ns", "one_to_ns"]

_SAFE = 2.0**43
_CLEAR = 0.49


def one_to_ns(value: int | float | Decimal, per_unit: int = NS_PER_MS) -> int:
    """Return a finite time as nanoseconds, rounded half to even from its shortest decimal.

    Args:
        value: the time; of a float, the shortest decimal that reads back as it.
        per_unit: nanoseconds in its unit: ``NS_PER_MS`` or ``NS_PER_S``.

    Raises:
        InputError: beyond 2^53 - 1 ns.
    """
    if type(value) is int:
        return value * per_unit
    if type(value) is float:
        scaled = value * per_unit
        nearest = round(scaled) if -_SAFE < scaled < _SAFE else 0
        if nearest and -_CLEAR < scaled - nearest < _CLEAR:
            return nearest
    exact = value if type(value) is Decimal else Decimal(repr(value))
    return seconds_to_ns(exact.scaleb(-3) if per_unit == NS_PER_MS else exact)


def many_to_ns(values: Sequence[int | float | Decimal], per_unit: int = NS_PER_MS) -> array[int]:
    """Return times as a column of 64-bit nanoseconds; otherwise as :func:`one_to_ns`."""
    import numpy as np

    if Decimal not in set(map(type, values)):
        scaled = np.array(values, np.float64) * per_unit
        nearest = np.rint(scaled)
        if not len(scaled) or (float(abs(nearest).max()) < _SAFE and float(abs(scaled - nearest).max()) < _CLEAR):
            return array("q", nearest.astype(np.int64).tobytes())
    return array("q", [one_to_ns(value, per_unit) for value in values])
