"""The error tree: shapes other programs read, and text that is safe on a terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeplan.errors import (
    InputError,
    Issue,
    MoeplanError,
    PluginError,
    StoreError,
    UnsupportedError,
    VerificationError,
    escape,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202eevil", "\\u202eevil"),
        ("\u2028\u200b\ufeff", "\\u2028\\u200b\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("", ""),
    ],
)
def test_escape(text: str, shown: str) -> None:
    assert escape(text) == shown


@given(st.text(st.characters(), max_size=400), st.integers(1, 300))
def test_escaped_text_is_printable_and_bounded(text: str, limit: int) -> None:
    shown = escape(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit + 1
    assert shown == text or not text.isprintable() or len(text) > limit


def test_escape_cuts_long_text() -> None:
    assert escape("a" * 200) == "a" * 200
    assert escape("a" * 201) == "a" * 200 + "…"
    assert escape("\n" * 10, 5) == "\\n\\n\\…"


def test_an_issue_says_where_what_expected_got_and_next() -> None:
    issue = Issue("$.gates[2].limit", "wrong_type", "no integer", "integer nanoseconds", "'800ms'", "write 800000000")
    assert str(issue) == "$.gates[2].limit: no integer; expected integer nanoseconds, got '800ms'; write 800000000"
    assert str(Issue("$", "x", "wrong")) == "$: wrong"


def test_an_issue_moves_under_a_prefix() -> None:
    assert Issue("$.a", "x", "m").under("$.b[0]").path == "$.b[0].a"
    assert Issue("$", "x", "m").under("f.json").path == "f.json"


def test_json_of_an_error() -> None:
    one, two = Issue("$.a", "x", "m"), Issue("$.b", "y", "n", "e", "g", "do")
    plain = {"path": "$.a", "code": "x", "message": "m", "expected": None, "got": None, "next": None}
    assert InputError(one).to_json() == {"error": plain}
    both = InputError(one, two, source="f").to_json()
    assert both["error"]["source"] == "f"
    assert [issue["code"] for issue in both["error"]["issues"]] == ["x", "y"]
    assert json.loads(json.dumps(both)) == both


def test_the_tree() -> None:
    assert issubclass(UnsupportedError, InputError)
    for cls in (InputError, VerificationError, PluginError, StoreError):
        assert cls.__bases__ == (MoeplanError,)
        error = cls.at("$", "x", "m", got="1")
        assert type(error) is cls
        assert str(error) == "$: m, got 1"
    with pytest.raises(TypeError):
        InputError()
