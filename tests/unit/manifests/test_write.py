"""Written YAML: form, quotes, blocks, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.manifests.write import dump_documents, dump_yaml
from moeplan.manifests.yaml_positions import load_manifests


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("--port", "--port"),
        ("cp -a /p/. /o/", "cp -a /p/. /o/"),
        ("$(POD_IP)", "$(POD_IP)"),
        ("^lo,docker", "^lo,docker"),
        ("http://a:80/b#c", "http://a:80/b#c"),
        ("v0.27.1", "v0.27.1"),
        ("1.1.0", "1.1.0"),
        ("8", "'8'"),
        ("0.88", "'0.88'"),
        ("1e3", "'1e3'"),
        ("1:30", "'1:30'"),
        ("0o7", "'0o7'"),
        ("1_000", "'1_000'"),
        ("2026-01-02", "'2026-01-02'"),
        ("yes", "'yes'"),
        ("Off", "'Off'"),
        ("NULL", "'NULL'"),
        ("", "''"),
        ("<<", "'<<'"),
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("a:", "'a:'"),
        ("- a", "'- a'"),
        ("-", "'-'"),
        ("---", "'---'"),
        ("it's", "it's"),
        ("'x", "'''x'"),
        ("{a}", "'{a}'"),
        (" a", "' a'"),
        ("a\tb", '"a\\tb"'),
        ("a\x00\u2028", '"a\\0\\u2028"'),
        ("\U000e0001", '"\\U000E0001"'),
        ("x" * 5000 + " y", "x" * 5000 + " y"),
    ],
)
def test_quotes_stand_only_where_needed(text: str, written: str) -> None:
    assert dump_yaml({"a": text}) == f"a: {written}\n"


def test_form() -> None:
    value = {
        "b": [{"x": 1, "y": ["p", []]}, {}, [[True, None]]],
        "a": {"s": "one\n  two\n", "t": "x\ny", "u": "x\ny\n\n", "v": Decimal("0.50"), "w": Decimal(3)},
        "yes": "\nx",
    }
    expected = """\
b:
- x: 1
  'y':
  - p
  - []
- {}
- - - true
    - null
a:
  s: |
    one
      two
  t: |-
    x
    y
  u: |+
    x
    y

  v: 0.50
  w: 3.0
'yes': "\\nx"
"""
    assert dump_yaml(value) == expected
    assert load_manifests(expected.encode()).documents[0].value == value
    assert dump_documents([{"a": 1}, {"b": 2}]) == "a: 1\n---\nb: 2\n"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"a": 0.5}, "not_plain"),
        ({"a": {1, 2}}, "not_plain"),
        ({"a": Decimal("NaN")}, "not_plain"),
        ({"a": Decimal("1e999")}, "not_plain"),
        ({1: "a"}, "key_not_text"),
        ({"k" * 1001: 1}, "key_too_long"),
        ({"a": "\ud800"}, "unpaired_surrogate"),
        (nested(64), "too_deep"),
    ],
)
def test_what_is_not_plain_is_refused(value: Any, code: str) -> None:
    with pytest.raises(InputError) as caught:
        dump_yaml(value)
    assert caught.value.issues[0].code == code


@pytest.mark.shared
def test_shared_cases_are_written_as_they_stand(shared_dir: Path) -> None:
    for path in sorted((shared_dir / "cases" / "lint").glob("*.yaml")):
        data = path.read_bytes()
        assert dump_documents(d.value for d in load_manifests(data).documents).encode() == data
