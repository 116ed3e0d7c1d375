"""Keys that are left out, mappings, a count or a list: what the site's model needs of the fields."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import jsonschema
import pytest

from moeplan.errors import InputError
from moeplan.model.fields import const, count_or_sequence, integer, integer_mapping, nested, text, text_mapping
from moeplan.wire.converter import structure, unstructure
from moeplan.wire.schemas import build_schema


@attrs.frozen(kw_only=True)
class Leaf:
    """A leaf."""

    name: str = text()
    size: int | None = integer(absent=True)


@attrs.frozen(kw_only=True)
class Tree:
    """A tree."""

    kind: str = const("tree")
    schema_version: str = const("1.0.0")
    leaves: int | tuple[Leaf, ...] | None = count_or_sequence(Leaf, le=9, absent=True)
    first: Leaf | None = nested(Leaf, absent=True)
    words: tuple[str, ...] | None = text(many=True, absent=True)
    images: Mapping[str, str] | None = text_mapping(keys="^[a-z]+$", pattern="^[a-z]+:[0-9]+$", absent=True)
    ports: Mapping[str, int] | None = integer_mapping(keys="^[a-z]+$", ge=1, le=9, absent=True)


HEAD = {"kind": "tree", "schemaVersion": "1.0.0"}


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"leaves": 2},
        {"leaves": [{"name": "a"}, {"name": "b", "size": 0}]},
        {"leaves": [], "words": []},
        {"first": {"name": "a"}, "images": {"b": "x:1", "a": "y:2"}, "ports": {}},
    ],
)
def test_what_is_left_out_stays_left_out(rest: dict[str, Any]) -> None:
    value = HEAD | rest
    jsonschema.validate(value, build_schema(Tree))
    assert unstructure(structure(value, Tree)) == value


def test_a_mapping_is_read_only() -> None:
    tree = structure(HEAD | {"ports": {"a": 1}}, Tree)
    assert tree.ports == {"a": 1}
    assert type(tree.ports) is MappingProxyType


@pytest.mark.parametrize(
    ("rest", "codes"),
    [
        ({"leaves": None}, [("wrong_type", "$.leaves")]),
        ({"leaves": 0}, [("invalid_value", "$.leaves")]),
        ({"leaves": True}, [("wrong_type", "$.leaves")]),
        ({"leaves": {}}, [("wrong_type", "$.leaves")]),
        ({"leaves": [{"size": 1}]}, [("missing_key", "$.leaves[0].name")]),
        ({"first": {"name": "a", "size": None}}, [("wrong_type", "$.first.size")]),
        ({"images": {"a": "x"}}, [("invalid_value", "$.images")]),
        ({"images": {"A": "x:1"}}, [("invalid_value", "$.images")]),
        ({"images": []}, [("wrong_type", "$.images")]),
        ({"ports": {"a": "1", "b": True}}, [("wrong_type", "$.ports.a"), ("wrong_type", "$.ports.b")]),
        ({"ports": {"a": 10}}, [("invalid_value", "$.ports")]),
        ({"ports": dict.fromkeys(map(str, range(65)), 1)}, [("invalid_value", "$.ports")]),
        ({"port": {}}, [("unknown_key", "$.port")]),
    ],
)
def test_what_is_wrong_is_refused_by_model_and_schema(rest: dict[str, Any], codes: list[tuple[str, str]]) -> None:
    value = HEAD | rest
    with pytest.raises(InputError) as caught:
        structure(value, Tree)
    assert [(issue.code, issue.path) for issue in caught.value.issues] == codes
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(build_schema(Tree)).validate(value)


def test_an_unknown_key_is_told_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean 'ports'"):
        structure(HEAD | {"prots": {}}, Tree)
    with pytest.raises(InputError) as caught:
        structure(HEAD | {"zzz": {}}, Tree)
    assert caught.value.issues[0].next is None


def test_only_keys_that_must_stand_are_required() -> None:
    schema = build_schema(Tree)
    assert schema["required"] == ["kind", "schemaVersion"]
    assert schema["$defs"]["Leaf"]["required"] == ["name"]
    assert schema["properties"]["leaves"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 9}
