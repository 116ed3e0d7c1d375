"""Values given as text on a command line: strict, and named by their option when refused."""

from __future__ import annotations

import re

from moeplan.errors import InputError, Issue, escape
from moeplan.units import parse_percent

__all__ = ["parse_integer", "parse_reserve"]

_INTEGER = re.compile(r"[0-9]{1,16}", re.ASCII)
_PERCENT = re.compile(r"[0-9]{1,2}(\.[0-9]{1,2}0*)?", re.ASCII)
_MOST_RESERVE = 9999


def parse_integer(option: str, text: str, least: int = 0, most: int | None = None) -> int:
    """Return the whole number in ``text``, which holds digits alone.

    Raises:
        InputError: with the option as its path.
    """
    fits = _INTEGER.fullmatch(text) is not None
    if not fits:
        raise _refused(option, "not_an_integer", "not a whole number", "digits alone", text)
    value = int(text)
    if value < least or (most is not None and value > most):
        upper = "" if most is None else f" to {most}"
        raise _refused(option, "invalid_value", "value refused", f"an integer from {least}{upper}", text)
    return value


def parse_reserve(basis_points: str | None, percent: str | None) -> int | None:
    """Return a reserve in basis points from ``--reserve-bps`` or ``--reserve-pct``, None where neither is given.

    Raises:
        InputError: both are given, or not 0 to 9999 basis points.
    """
    if percent is None:
        return None if basis_points is None else parse_integer("--reserve-bps", basis_points, 0, _MOST_RESERVE)
    if basis_points is not None:
        raise _refused("--reserve-pct", "usage", "both --reserve-bps and --reserve-pct given", "one of them", percent)
    if _PERCENT.fullmatch(percent) is None:
        wanted = "0 to 99.99 with at most two decimals"
        raise _refused("--reserve-pct", "invalid_percent", "not a reserve", wanted, percent)
    return parse_percent(percent)


def _refused(option: str, code: str, message: str, expected: str, got: str) -> InputError:
    return InputError(Issue(option, code, message, expected, escape(repr(got), 80)))
