"""Lines in either spacing are read fast; whatever two readers could read differently goes to the strict reader."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import pytest

from moeplan.errors import InputError
from moeplan.importers import streamed_lines
from moeplan.importers.streamed_lines import read_objects

RECORD = {"a, b": "c: d, e", "list": [0.5, 12.25, 3.2516749999999996], "ns": 1796056561320597887}


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_spaces_alone_do_not_make_a_line_slow(separators: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(text: bytes, number: int) -> None:
        raise AssertionError(f"line {number} was read strictly")

    monkeypatch.setattr(streamed_lines, "_strict", unexpected)
    data = json.dumps(RECORD, separators=separators).encode() + b"\n\n" + b'{"b": 1}\n'
    assert list(read_objects(data)) == [(1, RECORD), (3, {"b": 1})]
    assert list(read_objects(io.BytesIO(data))) == [(1, RECORD), (3, {"b": 1})]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": 0.50000000000000000001}', Decimal("0.50000000000000000001")),
        (b'{"a": 1.50}', Decimal("1.50")),
        (b'{"a": 1e-05}', Decimal("1e-05")),
        (b'{"a": "\\u00fc"}', "ü"),
    ],
)
def test_another_text_of_a_number_is_kept_exactly(text: bytes, value: object) -> None:
    ((_, found),) = read_objects(text)
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"a": 1, "a": 1}\n', "duplicate_key"),
        (b'{"a": {"b": 1, "b": 2}}\n', "duplicate_key"),
        (b'{"a": NaN}\n', "not_a_number"),
        (b'{"a": 1 2}\n', "invalid_json"),
        (b"[1]\n", "wrong_type"),
        (b'{"a": 1}\n{"a": ', "partial_file"),
    ],
)
def test_what_is_refused(text: bytes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        list(read_objects(text))
    assert caught.value.issues[0].code == code
