"""Numbers on the command line are digits alone."""

from __future__ import annotations

import pytest

from moeplan.errors import InputError
from moeplan.planning.options import parse_integer, parse_reserve


@pytest.mark.parametrize("text", ["", "-1", "+1", "1_0", " 1", "1.0", "1e3", "0x10", "٣", "1" * 17])
def test_junk_is_refused_with_its_option(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_integer("--devices", text)
    assert (caught.value.issues[0].path, caught.value.issues[0].code) == ("--devices", "not_an_integer")


def test_range() -> None:
    assert parse_integer("--n", "007", 1, 7) == 7
    for text in ("0", "8"):
        with pytest.raises(InputError, match="from 1 to 7"):
            parse_integer("--n", text, 1, 7)


@pytest.mark.parametrize(
    ("percent", "basis_points"), [("0", 0), ("13", 1300), ("12.5", 1250), ("99.99", 9999), ("0.01", 1), ("5.000", 500)]
)
def test_percent(percent: str, basis_points: int) -> None:
    assert parse_reserve(None, percent) == basis_points
    assert parse_reserve(str(basis_points), None) == basis_points


@pytest.mark.parametrize("percent", ["100", "-1", "1e1", "1_3", "12.345", ".5", "nan", "", "13%"])
def test_bad_percent(percent: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_reserve(None, percent)
    assert caught.value.issues[0].path == "--reserve-pct"


def test_neither_and_both() -> None:
    assert parse_reserve(None, None) is None
    with pytest.raises(InputError):
        parse_reserve("1", "1")
    with pytest.raises(InputError):
        parse_reserve("10000", None)
