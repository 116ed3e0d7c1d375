"""Integer quantities, against hand calculation and the standard library's exact fractions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.units import (
    MAX_SAFE_INTEGER,
    ceil_div,
    format_basis_points,
    format_bytes,
    format_count,
    format_instant,
    format_ns,
    parse_instant,
    parse_percent,
    seconds_to_ns,
)


def test_largest_integer() -> None:
    assert MAX_SAFE_INTEGER == 9007199254740991


@given(st.integers(-(10**20), 10**20), st.integers(1, 10**12))
def test_ceil_div_is_the_least_integer_not_below(a: int, b: int) -> None:
    assert (ceil_div(a, b) - 1) * b < a <= ceil_div(a, b) * b


@pytest.mark.parametrize(
    ("text", "value"),
    [("13", 1300), ("12.5", 1250), ("0", 0), ("99.99", 9999), ("0.010", 1), ("-5", -500), ("007", 700)],
)
def test_percent(text: str, value: int) -> None:
    assert parse_percent(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "12.345", "nan", "NaN", "sNaN", "inf", "-Infinity", "1e1", "1e999999", "1e99999999999999999999", " 13",
        "13 ", "13\n", "1_3", "١٣", "13%", "0x10", ".5", "5.", "+5",
        "12.50000000000000000000000000000000001", "9" * 400,
    ],
)  # fmt: skip
def test_no_percent(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_percent(text)
    assert caught.value.issues[0].code == "invalid_percent"
    assert str(caught.value).isprintable()


def test_text_for_people() -> None:
    assert format_basis_points(1300) == "13.00%"
    assert format_basis_points(5) == "0.05%"
    assert format_count(4096) == "4,096"
    assert format_bytes(1560860324864) == "1.56 TB"
    assert format_bytes(141 * 10**9) == "141.00 GB"
    assert format_bytes(999) == "999 B"
    assert format_bytes(2 * 10**15) == "2000.00 TB"
    assert format_ns(37757690) == "37.758 ms"


@pytest.mark.parametrize(
    ("seconds", "ns"),
    [
        ("0.03775769", 37757690), ("1", 10**9), ("0", 0), ("-0.5", -500000000), ("0.0000000005", 0),
        ("0.0000000015", 2), ("0.0000000025", 2), ("0.00000000051", 1), ("9007199.254740991", MAX_SAFE_INTEGER),
        ("0.00000000050000000000000000000000000000000000000000000001", 1), ("1e-999999", 0),
    ],
)  # fmt: skip
def test_seconds_to_ns(seconds: str, ns: int) -> None:
    assert seconds_to_ns(Decimal(seconds)) == ns


@given(st.floats(0, 9e6))
def test_seconds_of_a_binary64_round_once(seconds: float) -> None:
    assert seconds_to_ns(Decimal(seconds)) == round(Fraction(seconds) * 10**9)


@pytest.mark.parametrize("seconds", ["NaN", "sNaN", "Infinity", "-Infinity", "1e99999999", "9007199.254740992", "-1e8"])
def test_no_duration(seconds: str) -> None:
    with pytest.raises(InputError) as caught:
        seconds_to_ns(Decimal(seconds))
    assert caught.value.issues[0].code == "out_of_range"


def test_instants() -> None:
    assert parse_instant("1970-01-01T00:00:00Z") == 0
    assert parse_instant("2026-11-30T17:29:49Z") == 1796059789
    assert parse_instant("2024-02-29T23:59:59Z") == 1709251199
    assert format_instant(1796059789) == "2026-11-30T17:29:49Z"


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)))
def test_instants_round_trip(when: datetime) -> None:
    whole = when.replace(microsecond=0)
    seconds = (whole - datetime(1970, 1, 1)) // timedelta(seconds=1)
    text = f"{whole.year:04}-{whole.month:02}-{whole.day:02}T{whole.hour:02}:{whole.minute:02}:{whole.second:02}Z"
    assert format_instant(seconds) == text
    assert parse_instant(text) == seconds
    assert datetime.fromtimestamp(seconds, UTC).year == whole.year


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-11-30", "2026-11-30T17:29:49", "2026-11-30T17:29:49+00:00", "2026-11-30t17:29:49z",
        "2026-11-30T17:29:49.5Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-30T24:00:00Z",
        "2026-11-30T23:59:60Z", "0000-01-01T00:00:00Z", "2026-11-30T17:29:49Z\n", "٢٠٢٦-11-30T17:29:49Z", "\x1b[31m",
    ],
)  # fmt: skip
def test_no_instant(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_instant(text)
    assert caught.value.issues[0].code == "invalid_instant"
    assert str(caught.value).isprintable()
