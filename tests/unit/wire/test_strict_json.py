"""Strict JSON: what ``json.loads`` lets through is refused with its place, and in linear time."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.wire.strict_json import MAX_DEPTH, check_value, child, parse_strict


def _faults(data: bytes, **rest: int) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        parse_strict(data, **rest)
    assert all(str(issue).isprintable() for issue in caught.value.issues)
    return [(issue.code, issue.path) for issue in caught.value.issues]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"{}", {}), (b" \t\r\n[1, -1]\n", [1, -1]), (b"null", None), (b"true", True), (b'"\\u0000"', "\0"),
        (b'"\\ud83d\\ude00"', "\U0001f600"), ('"é漢"'.encode(), "é漢"), (b"-0", 0),
        (b"9007199254740991", 2**53 - 1), (b"-9007199254740991", -(2**53) + 1),
        (b'{"":{"a":1},"a":1}', {"": {"a": 1}, "a": 1}),
        (b'"[[[[\\"{{{{"', '[[[["{{{{'), (b'{"a\\u0062":1}', {"ab": 1}),
    ],
)  # fmt: skip
def test_accepted(data: bytes, value: object) -> None:
    assert parse_strict(data) == value
    assert type(parse_strict(data)) is type(value)


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        (b'{"a":1,"a":1}', [("duplicate_key", "$.a")]),
        (b'{"x":[{"a":1,"\\u0061":2}]}', [("duplicate_key", "$.x[0].a")]),
        (b'{"a":1,"a":2,"a":3,"b":0,"b":0}', [("duplicate_key", "$.a"), ("duplicate_key", "$.b")]),
        (b"NaN", [("not_a_number", "$")]),
        (b'{"a":[1,NaN,Infinity,-Infinity]}', [("not_a_number", f"$.a[{n}]") for n in (1, 2, 3)]),
        (b"1.0", [("not_an_integer", "$")]),
        (b"[1e2,-0.0,1E400,0.1]", [("not_an_integer", f"$[{n}]") for n in range(4)]),
        (b"9007199254740992", [("integer_out_of_range", "$")]),
        (b"[-9007199254740992]", [("integer_out_of_range", "$[0]")]),
        (b"1" * 5000, [("integer_out_of_range", "$")]),
        (b'"\\ud800"', [("unpaired_surrogate", "$")]),
        (b'["\\ude00\\ud83d"]', [("unpaired_surrogate", "$[0]")]),
        (b'{"\\udc00":1}', [("unpaired_surrogate", '$["\\udc00"]')]),
        (b'"\xed\xa0\x80"', [("wrong_encoding", "$")]),
        (b'"\xff"', [("wrong_encoding", "$")]),
        (b'"\xc0\xaf"', [("wrong_encoding", "$")]),
        (b"\xef\xbb\xbf{}", [("wrong_encoding", "$")]),
        ("{}".encode("utf-16"), [("wrong_encoding", "$")]),
        ("{}".encode("utf-16-be"), [("invalid_json", "$")]),
        ("{}".encode("utf-32"), [("wrong_encoding", "$")]),
        (b"", [("invalid_json", "$")]), (b" ", [("invalid_json", "$")]), (b"{}x", [("invalid_json", "$")]),
        (b"{} {}", [("invalid_json", "$")]), (b"{}\0", [("invalid_json", "$")]), (b"[1,]", [("invalid_json", "$")]),
        (b"{'a':1}", [("invalid_json", "$")]), (b"[01]", [("invalid_json", "$")]), (b"[+1]", [("invalid_json", "$")]),
        (b"[.5]", [("invalid_json", "$")]), (b"// c\n1", [("invalid_json", "$")]), (b"\x0c1", [("invalid_json", "$")]),
        (b"\xc2\xa01", [("invalid_json", "$")]), (b'"a\nb"', [("invalid_json", "$")]),
        (b'"\x1b"', [("invalid_json", "$")]),
        (b'"\\x41"', [("invalid_json", "$")]), (b'"\\u12"', [("invalid_json", "$")]), (b'"', [("invalid_json", "$")]),
        (b"nul", [("invalid_json", "$")]), (b"True", [("invalid_json", "$")]), (b"1e", [("invalid_json", "$")]),
    ],
)  # fmt: skip
def test_refused(data: bytes, faults: list[tuple[str, str]]) -> None:
    assert _faults(data) == faults


def test_every_fault_is_told_but_at_most_a_hundred() -> None:
    assert _faults(b'{"a":1.5,"b":{"c":NaN},"b":{"d":"\\ud800"}}') == [
        ("duplicate_key", "$.b"), ("not_an_integer", "$.a"), ("unpaired_surrogate", "$.b.d")
    ]  # fmt: skip
    assert len(_faults(b"[" + b"0.5," * 5000 + b"1]")) == 100


def test_syntax_errors_name_line_and_column() -> None:
    with pytest.raises(InputError, match="line 2 column 3"):
        parse_strict(b"{\n  x: 1}")


def test_depth() -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        parse_strict(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH)
        assert _faults(opening * (MAX_DEPTH + 1) + b"1" + closing * (MAX_DEPTH + 1)) == [("too_deep", "$")]
    assert _faults(b"[" * 1_000_000) == [("too_deep", "$")]
    assert parse_strict(b"[[1]]", max_depth=2) == [[1]]
    assert _faults(b"[[1]]", max_depth=1) == [("too_deep", "$")]
    assert parse_strict(b'["' + b"[" * 500 + b'"]') == ["[" * 500]
    assert parse_strict(b"[" + b"[]," * 500 + b"1]")[-1] == 1


def test_size() -> None:
    assert parse_strict(b"[1]", max_bytes=3) == [1]
    assert _faults(b"[1] ", max_bytes=3) == [("too_large", "$")]


@pytest.mark.parametrize(
    "data",
    [
        b'"' + b'\\"' * 2_000_000, b'"' + b"a" * 4_000_000, b'"' + b"\\\\" * 2_000_000, b'["' * 1_000_000,
        b"[" + b'"",' * 500_000, b"9" * 4_000_000, b"[" + b"NaN," * 500_000 + b"1]",
        b"{" + b'"a":1,' * 500_000 + b'"a":1}', b"-" * 4_000_000, b"\\" * 4_000_000, b"]" * 4_000_000,
    ],
    ids=range(11),
)  # fmt: skip
def test_hostile_text_costs_linear_time(data: bytes) -> None:
    """Four megabytes; a quadratic scan would take hours, so the bound has room for any machine."""
    start = time.perf_counter()
    with pytest.raises(InputError):
        parse_strict(data)
    assert time.perf_counter() - start < 20


def test_paths() -> None:
    assert child("$", "a_B9") == "$.a_B9"
    assert child("$.a", 3) == "$.a[3]"
    assert child("$", "a b") == '$["a b"]'
    assert child("$", 'a"\n') == '$["a\\"\\n"]'
    assert child("$", "\x7f\u202e") == '$["\\u007f\\u202e"]'
    assert child("$", "k" * 80) == "$." + "k" * 80
    assert len(child("$", "k" * 100_000)) < 120
    assert child("$", "\x1b[2J").isprintable()


def test_check_value_takes_values_made_elsewhere() -> None:
    check_value({"a": [1, "x", None, True]})
    with pytest.raises(InputError):
        check_value(["\ud800"])


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES, st.booleans())
def test_every_exact_value_passes_unchanged(value: object, ascii_only: bool) -> None:
    assert parse_strict(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_named_error(data: bytes) -> None:
    try:
        parse_strict(data)
    except InputError as error:
        assert all(str(issue).isprintable() and issue.code for issue in error.issues)  # noqa: PT017
