"""Exact figures of a host: medians and scaled integers; no float decides."""

from __future__ import annotations

from collections.abc import Collection
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

from moeplan.units import MAX_SAFE_INTEGER
from moeplan_infera.preflight.tool_file import Malformed, Number

__all__ = ["GIBIBYTE", "median", "parse_decimal", "scaled", "version_of"]

GIBIBYTE = 1 << 30
_EXACT = Context(prec=120)
_LARGEST = Decimal(MAX_SAFE_INTEGER)


def median(values: Collection[Number]) -> Decimal:
    """Return the middle value, or the mean of the two middle ones, exactly; ``values`` is not empty."""
    ordered = sorted(Decimal(value) for value in values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return _EXACT.divide(_EXACT.add(ordered[middle - 1], ordered[middle]), Decimal(2))


def scaled(value: Number, factor: int, path: str) -> int:
    """Return ``value`` times ``factor`` as an integer, rounded half to even from the exact product.

    Raises:
        Malformed: beyond 2^53 - 1.
    """
    product = _EXACT.multiply(Decimal(value), Decimal(factor))
    if abs(product) > _LARGEST:
        raise Malformed(path, "number out of range", "a figure of one host", value)
    return int(product.to_integral_value(ROUND_HALF_EVEN))


def parse_decimal(text: str | None) -> Decimal | None:
    """Return a decimal written as text, as the tool writes temperatures; None where it is none."""
    if text is None or len(text) > 40:
        return None
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value) < 10**6 else None


def version_of(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a dotted version such as ``6.16.6``; None where it does not begin with one."""
    numbers: list[int] = []
    for part in text.strip().split("."):
        digits = "".join(c for c in part if c.isascii() and c.isdigit())
        if not digits or not part.startswith(digits) or len(digits) > 9:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers) or None
