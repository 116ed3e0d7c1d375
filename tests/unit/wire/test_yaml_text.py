"""YAML is read with JSON's types only. Values by the tables of YAML 1.2.2 section 10.3.2."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.wire.yaml_text import MAX_YAML_BYTES, parse_yaml_strict


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", {"a": "yes"}),
        ("a: off\nb: On", {"a": "off", "b": "On"}),
        ("a: True\nb: false\nc: 'true'", {"a": True, "b": False, "c": "true"}),
        ("a: 2026-11-30", {"a": "2026-11-30"}),
        ("a: 12:30:45", {"a": "12:30:45"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: 0o17\nb: 0x1F\nc: -7\nd: +7", {"a": 15, "b": 31, "c": -7, "d": 7}),
        ("a:\nb: ~\nc: null\nd: ''", {"a": None, "b": None, "c": None, "d": ""}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("[1, [2, {a: 3}]]", [1, [2, {"a": 3}]]),
        ("%YAML 1.2\n---\na: 1\n", {"a": 1}),
        ("'1': x", {"1": "x"}),
        ("a: 9007199254740991", {"a": 2**53 - 1}),
    ],
)
def test_accepted(text: str, value: Any) -> None:
    assert parse_yaml_strict(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "path", "code"),
    [
        ("a: {b: 1.5}", "$.a.b", "not_an_integer"),
        ("a: 1e3", "$.a", "not_an_integer"),
        ("a: .nan", "$.a", "not_a_number"),
        ("a: -.inf", "$.a", "not_a_number"),
        ("a: [1, 9007199254740992]", "$.a[1]", "integer_out_of_range"),
        ("a: 0x20000000000000", "$.a", "integer_out_of_range"),
        ("a: 010", "$.a", "ambiguous_number"),
        ("a: 1\nb: 2\na: 3", "$.a", "duplicate_key"),
        ("a: &x 1", "$.a", "yaml_alias"),
        ("a: &x [1]\nb: *x", "$.a", "yaml_alias"),
        ("a: !!int '3'", "$.a", "yaml_tag"),
        ("a: !evil x", "$.a", "yaml_tag"),
        ("1: x", "$", "key_not_text"),
        ("? [a]\n: x", "$", "key_not_text"),
        ("a: 1\n---\nb: 2", "$", "invalid_yaml"),
        ("", "$", "invalid_yaml"),
        ("a: [1", "$", "invalid_yaml"),
        ("a: \x01", "$", "invalid_yaml"),
        ("[" * 200 + "]" * 200, "$", "too_deep"),
    ],
)
def test_refused(text: str, path: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_yaml_strict(text.encode())
    assert (caught.value.issues[0].path, caught.value.issues[0].code) == (path, code)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xef\xbb\xbfa: 1", "wrong_encoding"),
        (b"a: \xff", "wrong_encoding"),
        ("a: 1".encode("utf-16"), "wrong_encoding"),
        (b"#" * (MAX_YAML_BYTES + 1), "too_large"),
    ],
)
def test_refused_bytes(data: bytes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_yaml_strict(data)
    assert caught.value.issues[0].code == code


def test_syntax_errors_name_line_and_column() -> None:
    with pytest.raises(InputError, match="line 2 column 4"):
        parse_yaml_strict(b"a: 1\nb: }\n")
