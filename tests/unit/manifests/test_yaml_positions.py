"""YAML and JSON with positions: values, places, suppressions, and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.manifests.yaml_positions import ManifestFile, load_manifests
from moeplan.wire.strict_json import child


def read(text: str) -> ManifestFile:
    return load_manifests(text.encode())


def value(text: str) -> Any:
    return read(text).documents[0].value


def refused(data: bytes | str, max_bytes: int = 1 << 20) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        load_manifests(data.encode() if isinstance(data, str) else data, max_bytes=max_bytes)
    return caught.value.issues[0].code, str(caught.value)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("yes", True),
        ("No", False),
        ("on", True),
        ("y", True),
        ("yEs", "yEs"),
        ("~", None),
        ("", None),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("-0b11", -3),
        ("1_000", 1000),
        ("089", Decimal(89)),
        ("0.90", Decimal("0.90")),
        ("1e3", Decimal(1000)),
        ("1e999", "1e999"),
        ("1e-999", Decimal(0)),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("'8'", "8"),
        ("100Gi", "100Gi"),
        ("18446744073709551616", 2**64),
        ("9" * 500, "9" * 500),
    ],
)
def test_plain_words_mean_what_kubectl_takes_them_for(word: str, meant: object) -> None:
    got = value(f"a: {word}\n")["a"]
    assert got == meant
    assert type(got) is type(meant)


def test_positions_of_keys_values_and_items() -> None:
    document = read("a:\n  - x: 1\n    'y z': {k: v}\n").documents[0]
    assert document.value == {"a": [{"x": 1, "y z": {"k": "v"}}]}
    place = document.position('$.a[0]["y z"].k')
    assert (place.line, place.column, place.key_line, place.key_column) == (3, 16, 3, 13)
    item = document.position("$.a[0]")
    assert (item.line, item.column, item.key_line, item.key_column) == (2, 5, 2, 5)
    assert document.position("$.a[0].missing.more[3]") == item
    assert document.has_position("$.a[0].x")
    assert not document.has_position("$.a[0].missing")
    assert document.position("$.none").line == 1


def test_documents_and_lists_are_taken_apart() -> None:
    listed = read("---\na: 1\n---\n# nothing\n---\nkind: PodList\nitems:\n- kind: Pod\n  b: 2\n- kind: Job\n")
    assert [(d.value, d.number, d.root) for d in listed.documents] == [
        ({"a": 1}, 0, "$"),
        ({"kind": "Pod", "b": 2}, 2, "$.items[0]"),
        ({"kind": "Job"}, 2, "$.items[1]"),
    ]
    assert listed.documents[1].position("$.b").line == 9


def test_json_as_kubectl_prints_it() -> None:
    held = {"kind": "List", "items": [{"a": "\U0001f600 \\ud83d\\ude00", "b": ["yes", True, None, 2, "x/y"]}]}
    text = json.dumps(held, indent=4).replace("x/y", "x\\/y")
    document = read(text).documents[0]
    assert document.value == held["items"][0]
    place = document.position("$.b[1]")
    assert text.splitlines()[place.line - 1][place.column - 1 :] == "true,"


def test_a_key_given_twice_is_told_and_the_last_holds() -> None:
    found = read("a: 1\nb: 2\na: 3\n")
    assert found.documents[0].value == {"a": 3, "b": 2}
    (fault,) = found.faults
    assert (fault.code, fault.path) == ("duplicate_key", "$.a")
    assert "line 3 column 1" in fault.message


def test_anchors_aliases_and_merge_keys() -> None:
    text = "x: &x {a: 1, b: 2}\ny: &y {b: 5, c: 6}\nz:\n  b: 3\n  <<: [*x, *y]\nw: *x\n"
    document = read(text).documents[0]
    assert document.value["z"] == {"a": 1, "c": 6, "b": 3}
    assert document.value["w"] == {"a": 1, "b": 2}
    assert document.position("$.w.a").line == 6
    assert value('"<<": text\n') == {"<<": "text"}


def test_keys_become_text_as_for_kubectl() -> None:
    assert value("on: 1\n8: 2\n") == {"true": 1, "8": 2}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: !!binary x\n", "yaml_tag", "line 1 column 4"),
        ("a: *b\n", "unknown_alias", "line 1 column 4"),
        ("a: &a [*a]\n", "unknown_alias", "line 1 column 8"),
        ("a: [1\nb: 2\n", "invalid_yaml", "line 2"),
        ("a: {{ .Values.x }}\n", "key_not_text", "render it first"),
        ("1.5: x\n", "key_not_text", "line 1 column 1"),
        ("a: .inf\n", "not_a_number", "line 1 column 4"),
        ("<<: 1\n", "invalid_merge", "line 1 column 1"),
        ("a: b\n  \x01c\n", "invalid_character", "line 2 column 3"),
        ("a: " + "[" * 70 + "]" * 70, "too_deep", "line 1"),
        ("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40, "too_deep", "line 2"),
    ],
)
def test_what_is_refused_names_its_place(text: str, code: str, place: str) -> None:
    got, message = refused(text)
    assert got == code
    assert place in message


def test_bombs_and_bad_bytes_are_refused() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    assert refused(bomb)[0] == "too_many_values"
    merges = "a: &a {" + ", ".join(f"k{i}: 1" for i in range(3000)) + "}\nb:\n" + "- {<<: *a}\n" * 300
    assert refused(merges)[0] == "too_many_values"
    assert refused(b"a: 1\nb: \xff\n") == ("wrong_encoding", "$: not UTF-8 at line 2 byte 4; expected UTF-8")
    assert refused("a: 123\n", max_bytes=6)[0] == "too_large"
    assert read("a: 123\n").documents
    assert read("").documents == ()
    assert load_manifests(b"\xef\xbb\xbfa: 1\n").documents[0].value == {"a": 1}


SUPPRESSED = """\
# moeplan: ignore R-ONE because it is a test
# more words
spec:
  args: |  # moeplan: ignore R-TWO,R-THREE block
    # moeplan: ignore R-NOT this is the script's own text
    text
  b: "# moeplan: ignore R-NOT quoted"
  # moeplan: ignore R-FOUR
  c: x#moeplan:ignore R-NOT no comment
  list:
  # moeplan: ignore R-FIVE the item
  - name: a
    value: b

  - name: c
"""


def test_suppressions_cover_what_begins_on_their_line() -> None:
    found = read(SUPPRESSED)
    assert [(s.id, s.line, s.first_line, s.last_line) for s in found.suppressions] == [
        ("R-ONE", 1, 3, 15),
        ("R-TWO", 4, 4, 6),
        ("R-THREE", 4, 4, 6),
        ("R-FIVE", 11, 12, 13),
    ]
    assert found.suppressions[0].reason == "because it is a test"
    five = found.suppressions[3]
    assert [five.covers("R-FIVE", line) for line in (11, 12, 13, 14)] == [False, True, True, False]
    assert not five.covers("R-ONE", 12)
    (fault,) = found.faults
    assert fault.code == "suppression_without_reason"
    assert "line 8 column 3" in fault.message


def test_many_comments_are_read_in_linear_time() -> None:
    found = read("# moeplan: ignore X y\n" * 50_000 + "a: 1\n").suppressions
    assert len(found) == 50_000
    assert {s.first_line for s in found} == {50_001}


@pytest.mark.shared
def test_shared_cases_have_every_position(shared_dir: Path) -> None:
    listed = sorted((shared_dir / "cases" / "lint").glob("*.yaml"))
    assert len(listed) == 15
    for path in listed:
        data = path.read_bytes()
        found = load_manifests(data, source=path.name)
        assert found.faults == ()
        assert found.suppressions == ()
        lines = data.decode().splitlines()
        for document in found.documents:
            _check(document, document.value, "$", lines)


def _check(document: Any, held: Any, path: str, lines: list[str]) -> None:
    assert document.has_position(path)
    place = document.position(path)
    if isinstance(held, dict):
        for key, inner in held.items():
            below = document.position(child(path, key))
            assert lines[below.key_line - 1][below.key_column - 1 :].startswith(f"{key}:")
            _check(document, inner, child(path, key), lines)
    elif isinstance(held, list):
        for index, inner in enumerate(held):
            _check(document, inner, f"{path}[{index}]", lines)
    elif isinstance(held, str):
        assert held.replace("'", "''") in lines[place.line - 1][place.column - 1 :]
