"""Milliseconds and seconds as a tool's JSON holds them -> integer nanoseconds, exactly rounded and fast.

A binary64 product is rounded at most three times (the text, the factor's product, the integer), each by half a unit in
the last place, so below 2^43 ns the product lies within 0.003 ns of the decimal's. Where it lies within 0.49 of an
integer that integer is the decimal's too; what lies nearer to a tie, or beyond, is computed from the decimal itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from decimal import Decimal

from moeplan.model.columns import NARROW, WIDE
from moeplan.units import MAX_SAFE_INTEGER, NS_PER_MS, seconds_to_ns

__all__ = ["many_to_ns", "one_to_ns"]

_SAFE = 2.0**43
_CLEAR = 0.49
_NARROW_MOST = 2.0**31 - 1


def one_to_ns(value: int | float | Decimal, per_unit: int = NS_PER_MS) -> int:
    """Return a finite time as nanoseconds, rounded half to even from its shortest decimal.

    Args:
        value: the time; of a float, the shortest decimal that reads back as it.
        per_unit: nanoseconds in its unit: ``NS_PER_MS`` or ``NS_PER_S``.

    Raises:
        InputError: beyond 2^53 - 1 ns.
    """
    if type(value) is int and abs(value) <= MAX_SAFE_INTEGER // per_unit:
        return value * per_unit
    if type(value) is float:
        scaled = value * per_unit
        nearest = round(scaled) if -_SAFE < scaled < _SAFE else 0
        if nearest and -_CLEAR < scaled - nearest < _CLEAR:
            return nearest
    exact = value if type(value) is Decimal else Decimal(repr(value))
    return seconds_to_ns(exact.scaleb(-3) if per_unit == NS_PER_MS else exact)


def many_to_ns(values: Sequence[int | float | Decimal], per_unit: int = NS_PER_MS) -> array[int]:
    """Return times as a column of nanoseconds, of 32 bits where all fit; otherwise as :func:`one_to_ns`."""
    import numpy as np

    if Decimal not in set(map(type, values)):
        scaled = np.array(values, np.float64) * per_unit
        nearest = np.rint(scaled)
        most = max(float(nearest.max(initial=0.0)), -float(nearest.min(initial=0.0)))
        scaled -= nearest
        if most < _SAFE and -_CLEAR < float(scaled.min(initial=0.0)) <= float(scaled.max(initial=0.0)) < _CLEAR:
            narrow = most <= _NARROW_MOST
            return _column(nearest.astype(np.int32 if narrow else np.int64).tobytes(), NARROW if narrow else WIDE)
    return array(WIDE, [one_to_ns(value, per_unit) for value in values])


def _column(data: bytes, typecode: str) -> array[int]:
    made = array(typecode)
    made.frombytes(data)
    return made
