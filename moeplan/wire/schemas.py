"""JSON Schema 2020-12: made from the model, checked in under ``schemas/``, and applied strictly."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.fields import ABSENT, SCHEMA, camel
from moeplan.wire.strict_json import child, unknown_key

__all__ = ["SCHEMA_BASE", "build_schema", "check_schema", "head_of", "load_schema", "schema_name"]

SCHEMA_BASE = "https://moeplan.dev/schemas/"
"""Prefix of every schema's ``$id``. An identifier; nothing is fetched from it."""

_MOST_ISSUES = 100


def head_of(cls: type) -> tuple[str, str]:
    """Return the kind and schema version of a document class."""
    fields = attrs.fields_dict(cls)
    return str(fields["kind"].default), str(fields["schema_version"].default)


def schema_name(kind: str, version: str) -> str:
    """Return the file name of a kind's schema."""
    return f"{kind}-{version}.schema.json"


def build_schema(cls: type) -> dict[str, Any]:
    """Return the JSON Schema of a document class: every key required that may not be absent, no other key allowed."""
    definitions: dict[str, Any] = {}
    kind, version = head_of(cls)
    body = _object(cls, definitions)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_BASE + schema_name(kind, version),
        "title": kind,
    }
    return {**head, **body, "$defs": dict(sorted(definitions.items()))}


def _object(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    absent = {camel(field.name) for field in attrs.fields(cls) if field.metadata.get(ABSENT)}
    properties = {}
    for field in attrs.fields(cls):
        shape = _typed(hints[field.name], dict(field.metadata.get(SCHEMA, {})), definitions)
        properties[camel(field.name)] = _without_null(shape) if field.metadata.get(ABSENT) else shape
    doc = (cls.__doc__ or "").strip().splitlines()
    return {
        "description": doc[0] if doc else cls.__name__,
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in absent],
        "additionalProperties": False,
    }


def _without_null(shape: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of a key that is left out where there is no value."""
    shapes = [one for one in shape["anyOf"] if one != {"type": "null"}]
    return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}


def _typed(hint: Any, keywords: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        nullable = len(members) < len(get_args(hint))
        if len(members) == 1:
            shapes = [_typed(members[0], keywords, definitions)]
        else:
            whole = keywords and not any(get_origin(member) is tuple for member in members)
            apart = [_typed(member, _scalar(member, keywords), definitions) for member in members if not whole]
            shapes = [keywords] if whole else apart
        if nullable:
            shapes = [*shapes, {"type": "null"}]
        return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        array: dict[str, Any] = {key: keywords.pop(key) for key in ("minItems", "maxItems") if key in keywords}
        made: dict[str, Any] = {"type": "array", "items": _typed(item, keywords, definitions)}
        return {**made, **array}
    if attrs.has(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if keywords:
        return keywords
    raise TypeError(f"no schema for {hint}")


def _scalar(member: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords where a member of a union is the scalar that they are about."""
    return dict(keywords) if member in (int, str, bool) else {}


@cache
def load_schema(kind: str, version: str) -> dict[str, Any]:
    """Return the checked-in schema of a document kind."""
    import json

    name = schema_name(kind, version)
    packaged = resources.files("moeplan").joinpath("schemas", name)
    if packaged.is_file():
        found = packaged.read_text("utf-8")
    else:  # an editable install: the schemas lie beside the package
        found = (Path(__file__).parents[2] / "schemas" / name).read_text("utf-8")
    schema: dict[str, Any] = json.loads(found)
    return schema


@cache
def _validator(kind: str, version: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _checker, value: type(value) is int)
    strict = extend(Draft202012Validator, {"pattern": _pattern}, type_checker=types)  # type: ignore[no-untyped-call]
    return strict(load_schema(kind, version))


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Any:
    """Match as ECMA-262 does, where ``$`` does not let a trailing newline pass as Python's does."""
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError(f"does not match {pattern!r}")


def check_schema(value: Any, kind: str, version: str) -> None:
    """Refuse parsed JSON that its kind's schema refuses.

    Raises:
        InputError: with every fault and its JSON path, at most 100.
    """
    issues: list[Issue] = []
    for error in _validator(kind, version).iter_errors(value):
        issues += _explain(error)
        if len(issues) >= _MOST_ISSUES:
            break
    if issues:
        raise InputError(*sorted(dict.fromkeys(issues), key=lambda issue: issue.path)[:_MOST_ISSUES])


def _explain(error: Any) -> list[Issue]:
    path = "$"
    for key in error.absolute_path:
        path = child(path, key)
    word, wanted, value = error.validator, error.validator_value, error.instance
    if word == "required":
        missing = [key for key in wanted if key not in value]
        return [Issue(child(path, key), "missing_key", "key missing", f"the key {key!r}") for key in missing]
    if word == "additionalProperties":
        known = error.schema["properties"]
        return [unknown_key(path, key, known) for key in sorted(set(value) - set(known))]
    if word == "anyOf":
        closest = _closest(error)
        if closest:
            return [issue for inner in closest for issue in _explain(inner)]
        words = [inner for inner in error.context if inner.validator == "const" and len(inner.path) == 1]
        if type(value) is dict and len(words) == len(wanted):
            choices = ", ".join(str(inner.validator_value) for inner in words)
            at = child(path, words[0].path[0])
            return [Issue(at, "invalid_value", "value refused", f"one of {choices}", _shown(words[0].instance))]
        shapes = [shape.get("type") or shape.get("const") or "an object" for shape in wanted]
        return [
            Issue(
                path,
                "wrong_type",
                "none of the accepted shapes",
                " or ".join(dict.fromkeys(map(str, shapes))),
                _shown(value),
            )
        ]
    code = {"type": "wrong_type"}.get(word, "invalid_value")
    expected = {
        "type": f"{wanted}",
        "const": f"{wanted!r}",
        "enum": f"one of {', '.join(map(str, wanted))}" if word == "enum" else "",
        "pattern": f"text matching {wanted}",
        "minimum": f"at least {wanted}",
        "maximum": f"at most {wanted}",
        "minLength": f"at least {wanted} characters",
        "maxLength": f"at most {wanted} characters",
        "minItems": f"at least {wanted} items",
        "maxItems": f"at most {wanted} items",
    }.get(word, f"{word} {wanted}")
    return [Issue(path, code, "value refused", expected, _shown(value))]


def _closest(error: Any) -> list[Any]:
    """Return the faults of the one alternative whose type or discriminator fits the value."""
    by_shape: dict[int, list[Any]] = {}
    for inner in error.context:
        by_shape.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [
        faults
        for faults in by_shape.values()
        if not any(f.validator in ("type", "const") and len(f.path) <= 1 and _is_head(f) for f in faults)
    ]
    return fitting[0] if len(fitting) == 1 else []


def _is_head(fault: Any) -> bool:
    return fault.validator == "const" or not fault.path


def _shown(value: Any) -> str:
    return escape(repr(value), 80)
