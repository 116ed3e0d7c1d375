"""Tool JSON: exact decimals; what two readers could read differently is refused with its path."""

from __future__ import annotations

from decimal import Decimal

import pytest

from moeplan.errors import InputError
from moeplan.importers.tool_json import parse_tool_json


def test_fractions_are_the_decimals_written() -> None:
    value = parse_tool_json(b'{"a": [0.1, 1e-05, -2.50, 7], "b": null, "c": true}')
    assert value == {"a": [Decimal("0.1"), Decimal("1e-05"), Decimal("-2.50"), 7], "b": None, "c": True}
    assert type(value["a"][3]) is int


@pytest.mark.parametrize(
    ("data", "path", "code"),
    [
        (b'{"a": {"b": 1, "b": 2}}', "$.a.b", "duplicate_key"),
        (b'{"a": [1, NaN]}', "$.a[1]", "not_a_number"),
        (b'{"a": -Infinity}', "$.a", "not_a_number"),
        (b'{"a": 9007199254740992}', "$.a", "number_out_of_range"),
        (b'{"a": 1e999999999}', "$.a", "number_out_of_range"),
        (b'{"a": 0.' + b"1" * 100 + b"}", "$.a", "number_out_of_range"),
        (b"[" * 40 + b'"x"' + b"]" * 40, "$" + "[0]" * 33, "too_deep"),
        (b"[" * 100_000, "$", "too_deep"),
        (b'{"a": 1', "$", "invalid_json"),
        (b'{"a": 1}\n{"a": 2}', "$", "invalid_json"),
        (b'{"a": "\xff"}', "$", "wrong_encoding"),
        (b"\xef\xbb\xbf{}", "$", "wrong_encoding"),
    ],
)
def test_refused(data: bytes, path: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_tool_json(data)
    assert (caught.value.issues[0].path, caught.value.issues[0].code) == (path, code)


def test_size_is_capped() -> None:
    with pytest.raises(InputError, match="too large"):
        parse_tool_json(b"[1, 2, 3]", max_bytes=8)


def test_several_results_in_one_file_are_explained() -> None:
    with pytest.raises(InputError, match="append-result"):
        parse_tool_json(b'{"a": 1}\n{"a": 2}')
