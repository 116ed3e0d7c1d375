"""Kubernetes quantities as exact integers.

Source: Kubernetes API conventions, ``resource.Quantity``: signed decimal number with a binary suffix (``Ki``), a
decimal one (``m``, ``k``, ``M``) or a decimal exponent (``2e3``).
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from moeplan.errors import InputError, Issue, escape

__all__ = ["parse_bytes", "parse_count", "parse_millicores", "parse_quantity"]

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?",
    re.ASCII,
)
_SCALE = {
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    **{letter: Fraction(1, 1000**power) for power, letter in enumerate("mun", 1)},
}
_LARGEST = 2**63 - 1
"""Largest quantity Kubernetes keeps."""


def parse_quantity(value: object, path: str = "$") -> Fraction:
    """Return a quantity exactly.

    Args:
        value: as a manifest holds it: text, an int, or a Decimal (``cpu: 0.5``).
        path: its JSON path, for messages.

    Raises:
        InputError: no quantity, negative, or beyond what Kubernetes keeps.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise _refused(path, value)
    match = _QUANTITY.fullmatch(str(value)[:200])
    if match is None or (match["sign"] == "-"):
        raise _refused(path, value)
    exponent = int(match["exponent"] or 0)
    if abs(exponent) > 60:
        raise _refused(path, value)
    quantity = Fraction(Decimal(match["number"])) * _SCALE.get(match["suffix"] or "", Fraction(1))
    quantity *= Fraction(10) ** exponent
    if quantity > _LARGEST:
        raise _refused(path, value)
    return quantity


def parse_bytes(value: object, path: str = "$") -> int:
    """Return bytes; raises :class:`~moeplan.errors.InputError` as :func:`parse_quantity`, also for parts of a byte."""
    return _whole(parse_quantity(value, path), value, path, "whole bytes")


def parse_millicores(value: object, path: str = "$") -> int:
    """Return thousandths of a CPU; raises as :func:`parse_quantity`, also for anything finer."""
    return _whole(parse_quantity(value, path) * 1000, value, path, "whole millicores")


def parse_count(value: object, path: str = "$") -> int:
    """Return a count of devices; raises as :func:`parse_quantity`, also for parts of one."""
    return _whole(parse_quantity(value, path), value, path, "a whole number")


def _whole(quantity: Fraction, value: object, path: str, expected: str) -> int:
    if quantity.denominator != 1:
        raise InputError(Issue(path, "inexact_quantity", "quantity refused", expected, escape(str(value), 40)))
    return quantity.numerator


def _refused(path: str, value: object) -> InputError:
    expected = f"a Kubernetes quantity from 0 to {_LARGEST} such as 100Gi, 1500m or 2e3"
    return InputError(Issue(path, "invalid_quantity", "no quantity", expected, escape(repr(value)[:200], 60)))
