"""RFC 8785: the published vectors against our canonical form. The form handles floats; our documents hold none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeplan.errors import InputError
from moeplan.wire.canonical import canonical_bytes, canonical_line
from moeplan.wire.strict_json import parse_strict

VECTORS = Path(__file__).resolve().parents[2].parent / "shared/vectors/jcs"
NAMES = ("arrays", "french", "structures", "unicode", "values", "weird")

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not VECTORS.is_dir(), reason="the shared RFC 8785 vectors are not beside the repository"),
]


def test_no_vector_is_left_out() -> None:
    assert sorted(path.stem for path in (VECTORS / "input").glob("*.json")) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_canonical_form(name: str) -> None:
    value = json.loads((VECTORS / f"input/{name}.json").read_text("utf-8"))
    expected = bytes.fromhex((VECTORS / f"outhex/{name}.txt").read_text("ascii"))
    assert (VECTORS / f"output/{name}.json").read_bytes().rstrip(b"\n") == expected
    assert canonical_bytes(value) == expected
    assert canonical_line(value) == expected + b"\n"


@pytest.mark.parametrize("name", ["french", "unicode", "weird"])
def test_strict_parse_keeps_the_form(name: str) -> None:
    expected = bytes.fromhex((VECTORS / f"outhex/{name}.txt").read_text("ascii"))
    assert canonical_bytes(parse_strict((VECTORS / f"input/{name}.json").read_bytes())) == expected
    assert canonical_bytes(parse_strict(expected)) == expected


def test_floats_are_refused_by_the_strict_parse() -> None:
    with pytest.raises(InputError) as caught:
        parse_strict((VECTORS / "input/values.json").read_bytes())
    assert {issue.code for issue in caught.value.issues} == {"not_an_integer"}
