"""Integer quantities: bytes, nanoseconds, basis points, instants. GB (10^9) is not GiB (2^30)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal

from moeplan.errors import InputError, Issue, escape

__all__ = [
    "BASIS_POINTS",
    "BYTES_PER_GB",
    "MAX_SAFE_INTEGER",
    "NS_PER_MS",
    "NS_PER_S",
    "ceil_div",
    "format_basis_points",
    "format_bytes",
    "format_count",
    "format_instant",
    "format_ns",
    "parse_instant",
    "parse_percent",
    "seconds_to_ns",
]

BYTES_PER_GB = 10**9
NS_PER_S = 10**9
NS_PER_MS = 10**6
BASIS_POINTS = 10_000
MAX_SAFE_INTEGER = 2**53 - 1
"""Largest integer every JSON implementation keeps exactly. Source: RFC 8785 section 3.2.2.3, RFC 7493 section 2.2."""

_EXACT = Context(prec=2000)
"""Wide enough for every binary64 written out in full: nothing is rounded twice."""
_MOST_SECONDS = Decimal(MAX_SAFE_INTEGER) / NS_PER_S
_PERCENT = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,2}0*)?", re.ASCII)
_INSTANT = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})Z", re.ASCII)


def ceil_div(a: int, b: int) -> int:
    """Return the least integer that is at least ``a / b`` (``b`` > 0), exactly."""
    return -(-a // b)


def parse_percent(text: str) -> int:
    """Return basis points for a percentage such as ``13`` or ``12.5``.

    Raises:
        InputError: not a decimal number, or finer than one basis point.
    """
    if not _PERCENT.fullmatch(text):
        raise InputError(
            Issue(
                "$",
                "invalid_percent",
                "not a percentage",
                "a number with at most two decimals, such as 12.5",
                escape(text, 40),
            )
        )
    return int(Decimal(text) * 100)


def format_basis_points(value: int) -> str:
    """Return basis points as a percentage with two decimals: ``1300`` → ``13.00%``. Exact."""
    return f"{value // 100}.{value % 100:02d}%"


def format_count(value: int) -> str:
    """Return an integer with thousands separators: ``4096`` → ``4,096``."""
    return f"{value:,}"


def format_bytes(value: int) -> str:
    """Return bytes in decimal units for people: ``1560860324864`` → ``1.56 TB``. Rounded; never for a decision."""
    amount = Decimal(value)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(amount) < 1000:
            return f"{amount} B" if unit == "B" else f"{amount:.2f} {unit}"
        amount /= 1000
    return f"{amount:.2f} TB"


def format_ns(value: int) -> str:
    """Return nanoseconds in milliseconds for people: ``37757690`` → ``37.758 ms``. Rounded; never for a decision."""
    return f"{Decimal(value) / NS_PER_MS:.3f} ms"


def seconds_to_ns(seconds: Decimal) -> int:
    """Return seconds as integer nanoseconds, rounded half to even from the exact decimal.

    Raises:
        InputError: not finite, or beyond 2^53 - 1 nanoseconds in magnitude (104 days).
    """
    if not seconds.is_finite() or seconds.copy_abs() > _MOST_SECONDS:
        raise InputError(
            Issue("$", "out_of_range", "not a duration", "at most 104 days in seconds", escape(str(seconds), 40))
        )
    return int(_EXACT.multiply(seconds, Decimal(NS_PER_S)).to_integral_value(ROUND_HALF_EVEN))


def parse_instant(text: str) -> int:
    """Return whole seconds since 1970-01-01T00:00:00Z for ``YYYY-MM-DDTHH:MM:SSZ`` (RFC 3339, UTC only).

    Raises:
        InputError: another form, or a date that does not exist.
    """
    match = _INSTANT.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return int(datetime(*(int(part) for part in match.groups()), tzinfo=UTC).timestamp())  # type: ignore[arg-type,misc]
    except ValueError:
        raise InputError(
            Issue("$", "invalid_instant", "not an instant", "UTC such as 2026-11-30T17:29:49Z", repr(text)[:40])
        ) from None


def format_instant(seconds: int) -> str:
    """Return whole seconds since the epoch as ``YYYY-MM-DDTHH:MM:SSZ``."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
