"""The converter takes values of the exact type and nothing else, and says where each fault lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.model.fields import boolean, camel, choice, const, integer, limit_value, nested, sequence, text
from moeplan.wire.converter import discriminators, structure, unstructure

VALID = Path(__file__).parents[2] / "conformance" / "corpus" / "valid"


@attrs.frozen
class Inner:
    some_count: int = integer()


@attrs.frozen
class Round:
    shape: str = const("round")
    radius: int = integer()


@attrs.frozen
class Square:
    shape: str = const("square")
    side: int = integer()


@attrs.frozen
class Outer:
    count: int = integer()
    maybe_count: int | None = integer(optional=True)
    word: str = text()
    flag: bool = boolean()
    kind: str = choice("a", "b")
    inner: Inner = nested(Inner)
    maybe_inner: Inner | None = nested(Inner, optional=True)
    inners: tuple[Inner, ...] = sequence(Inner)
    counts: tuple[int, ...] = integer(many=True)
    maybe_words: tuple[str, ...] | None = text(many=True, optional=True)
    limit: int | str | None = limit_value()
    either: Round | Square = nested((Round, Square))


GOOD: dict[str, Any] = {
    "count": 7, "maybeCount": None, "word": "w", "flag": False, "kind": "a", "inner": {"someCount": 1},
    "maybeInner": None, "inners": [{"someCount": 2}, {"someCount": 3}], "counts": [4, 5], "maybeWords": None,
    "limit": "x", "either": {"shape": "square", "side": 6},
}  # fmt: skip


def _faults(value: Any) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        structure(value, Outer)
    assert all(str(issue).isprintable() for issue in caught.value.issues)
    return [(issue.code, issue.path) for issue in caught.value.issues]


def test_good_values_become_exactly_what_they_say() -> None:
    made = structure(GOOD, Outer)
    assert made == Outer(
        count=7, maybe_count=None, word="w", flag=False, kind="a", inner=Inner(1), maybe_inner=None,
        inners=(Inner(2), Inner(3)), counts=(4, 5), maybe_words=None, limit="x", either=Square(side=6),
    )  # fmt: skip
    assert unstructure(made) == GOOD
    assert list(unstructure(made)) == list(GOOD)
    full = GOOD | {"maybeCount": 0, "maybeInner": {"someCount": 0}, "maybeWords": ["a"], "limit": -3}
    assert unstructure(structure(full, Outer)) == full
    assert structure(GOOD | {"limit": None, "inners": [], "counts": []}, Outer).limit is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("count", "7"), ("count", 3.9), ("count", 7.0), ("count", True), ("count", None), ("count", [7]), ("count", {}),
        ("maybeCount", "7"), ("maybeCount", False), ("maybeCount", 1.0), ("maybeCount", []),
        ("word", 7), ("word", None), ("word", ["w"]), ("word", True),
        ("flag", "false"), ("flag", 0), ("flag", 1), ("flag", None), ("flag", "true"), ("flag", []),
        ("kind", 1), ("kind", None), ("kind", ["a"]),
        ("inner", []), ("inner", None), ("inner", [1]), ("inner", "x"), ("inner", 1),
        ("maybeInner", []), ("maybeInner", False), ("maybeInner", 0),
        ("inners", {}), ("inners", None), ("inners", "ab"), ("inners", 1), ("inners", {"0": {"someCount": 1}}),
        ("counts", {}), ("counts", None), ("counts", "12"), ("counts", 1),
        ("maybeWords", "ab"), ("maybeWords", {}), ("maybeWords", 0),
        ("limit", True), ("limit", 1.5), ("limit", []), ("limit", {}),
        ("either", None), ("either", []), ("either", "square"), ("either", 0),
    ],
)  # fmt: skip
def test_nothing_is_coerced(key: str, value: object) -> None:
    assert _faults(GOOD | {key: value}) == [("wrong_type", f"$.{key}")]


@pytest.mark.parametrize(
    ("key", "value", "faults"),
    [
        ("count", -1, [("invalid_value", "$.count")]),
        ("count", 2**53, [("invalid_value", "$.count")]),
        ("word", "", [("invalid_value", "$.word")]),
        ("word", "a\nb", [("invalid_value", "$.word")]),
        ("kind", "c", [("invalid_value", "$.kind")]),
        ("inner", {}, [("missing_key", "$.inner.someCount")]),
        ("inner", {"someCount": 1, "x y": 2}, [("unknown_key", '$.inner["x y"]')]),
        ("inner", {"some_count": 1}, [("missing_key", "$.inner.someCount")]),
        ("inner", {"someCount": "1"}, [("wrong_type", "$.inner.someCount")]),
        ("inners", [{"someCount": 1}, 2, {"someCount": None}],
         [("wrong_type", "$.inners[1]"), ("wrong_type", "$.inners[2].someCount")]),
        ("counts", [1, "2", True, None], [("wrong_type", f"$.counts[{n}]") for n in (1, 2, 3)]),
        ("counts", [1, -2], [("invalid_value", "$.counts[1]")]),
        ("maybeWords", ["a", 1], [("wrong_type", "$.maybeWords[1]")]),
        ("maybeWords", [None], [("wrong_type", "$.maybeWords[0]")]),
        ("either", {"shape": "oval", "side": 1}, [("wrong_type", "$.either")]),
        ("either", {"shape": ["round"], "radius": 1}, [("wrong_type", "$.either")]),
        ("either", {"side": 1}, [("wrong_type", "$.either")]),
        ("either", {"shape": "round", "side": 1}, [("missing_key", "$.either.radius")]),
        ("either", {"shape": "round", "radius": 1, "side": 1}, [("unknown_key", "$.either.side")]),
    ],
)  # fmt: skip
def test_faults_are_named_by_their_path(key: str, value: object, faults: list[tuple[str, str]]) -> None:
    assert _faults(GOOD | {key: value}) == faults


def test_all_faults_of_a_document_are_told() -> None:
    found = _faults(GOOD | {"count": "7", "flag": 1, "inner": {"someCount": None}})
    assert found == [("wrong_type", "$.count"), ("wrong_type", "$.flag"), ("wrong_type", "$.inner.someCount")]
    assert _faults({"count": 1}) == [("missing_key", f"$.{camel(f.name)}") for f in attrs.fields(Outer)[1:]]
    assert _faults(GOOD | {"zzz": 1, "aaa": 2}) == [("unknown_key", "$.aaa"), ("unknown_key", "$.zzz")]


@pytest.mark.parametrize("value", [None, [], "x", 1, True, 1.5])
def test_a_document_is_an_object(value: object) -> None:
    assert _faults(value) == [("wrong_type", "$")]


def test_hostile_text_is_shown_escaped_and_cut() -> None:
    with pytest.raises(InputError) as caught:
        structure(GOOD | {"count": "\x1b[2J" + "x" * 10_000, "\x1b]0;title\x07": 1}, Outer)
    assert all(str(issue).isprintable() and len(str(issue)) < 500 for issue in caught.value.issues)


def test_subclasses_of_plain_types_are_not_the_plain_types() -> None:
    class Sneaky(int):
        pass

    class Text(str):
        __slots__ = ()

    assert _faults(GOOD | {"count": Sneaky(7)}) == [("wrong_type", "$.count")]
    assert _faults(GOOD | {"word": Text("w")}) == [("wrong_type", "$.word")]


def test_two_classes_that_nothing_tells_apart_are_a_defect_of_the_model() -> None:
    @attrs.frozen
    class Ambiguous:
        either: Inner | Outer = nested((Inner, Outer))

    Ambiguous.__annotations__["either"] = Inner | Outer
    attrs.resolve_types(Ambiguous, globals(), locals())
    with pytest.raises(TypeError, match="tells"):
        structure({"either": {}}, Ambiguous)


def test_discriminators() -> None:
    assert discriminators(Round) == {"shape": "round"}
    assert discriminators(Inner) == {}


@pytest.mark.parametrize("path", sorted(VALID.glob("*.json")), ids=lambda path: path.stem)
def test_every_number_of_every_document_is_exact(path: Path) -> None:
    """Turn each integer into text, a float and, where it is 0 or 1, a boolean: refused each time."""
    from moeplan.wire.documents import DOCUMENTS
    from moeplan.wire.schemas import head_of

    cls = {head_of(cls)[0]: cls for cls in DOCUMENTS}[path.name.split("-")[0]]
    value = json.loads(path.read_bytes())
    for holder, key in list(_integers(value)):
        number = holder[key]
        for other in (float(number), number + 0.5, bool(number), [number]):
            holder[key] = other
            with pytest.raises(InputError):
                structure(value, cls)
        holder[key] = number
    structure(value, cls)


def _integers(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if type(item) is int:
            yield value, key
        else:
            yield from _integers(item)
