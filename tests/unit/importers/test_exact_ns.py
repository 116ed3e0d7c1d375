"""Times in binary floating point become the nanoseconds of their decimals, whatever the way taken."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.importers.exact_ns import many_to_ns, one_to_ns
from moeplan.units import NS_PER_MS, NS_PER_S

NEAR_TIES = st.integers(0, 10**13).map(lambda value: (value * 10 + 5) / 10 / 10**6)
TIMES = st.one_of(
    st.floats(0, 9e9), st.integers(0, 10**9), NEAR_TIES, st.integers(0, 10**15).map(lambda ns: ns / 10**6)
)


def by_decimal(value: float, per_unit: int) -> int:
    return int((Decimal(repr(value)) * per_unit).quantize(Decimal(1), ROUND_HALF_EVEN))


@given(st.lists(TIMES))
def test_milliseconds(values: list[float]) -> None:
    expected = [by_decimal(value, NS_PER_MS) for value in values]
    assert list(many_to_ns(values)) == expected
    assert [one_to_ns(value) for value in values] == expected
    assert list(many_to_ns([Decimal(repr(value)) for value in values])) == expected


@given(st.floats(0, 9e6))
def test_seconds(value: float) -> None:
    assert one_to_ns(value, NS_PER_S) == by_decimal(value, NS_PER_S)
    assert list(many_to_ns([value], NS_PER_S)) == [by_decimal(value, NS_PER_S)]


def test_small_columns_are_narrow() -> None:
    assert many_to_ns([1.0, 2147.483647]).typecode == "i"
    assert many_to_ns([1.0, 2147.483648]).typecode == "q"
    assert list(many_to_ns([])) == []


def test_what_no_safe_integer_holds_is_refused() -> None:
    with pytest.raises(InputError, match="at most 104 days"):
        many_to_ns([1.0, 9.1e9])
