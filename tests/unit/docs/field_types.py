"""How docs/formats.md writes a field's type, from the field's JSON Schema."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import attrs

from moeplan.model.attestation import EvidencePredicate, IndexPredicate, VerdictPredicate
from moeplan.model.fields import DIGEST_PATTERN, ID_PATTERN
from moeplan.model.finding import Finding
from moeplan.units import MAX_SAFE_INTEGER
from moeplan.wire.documents import DOCUMENTS
from moeplan.wire.schemas import _object

_INSTANT = "[0-9]{4}-[0-9]{2}-[0-9]{2}T"

ROOTS: tuple[type, ...] = (*DOCUMENTS, EvidencePredicate, IndexPredicate, VerdictPredicate, Finding)
"""Classes that stand in a file or a statement of their own."""


def documented() -> dict[str, type]:
    """Return every class that some root holds, by name."""
    found: dict[str, type] = {}
    waiting: list[Any] = list(ROOTS)
    while waiting:
        hint = waiting.pop()
        if attrs.has(hint) and hint.__name__ not in found:
            found[hint.__name__] = hint
            waiting += get_type_hints(hint).values()
        waiting += get_args(hint)
    return dict(sorted(found.items()))


def rows(cls: type) -> dict[str, str]:
    """Return wire key to type, in the order of declaration."""
    properties = _object(cls, {})["properties"]
    return {key: shown(schema) for key, schema in properties.items()}


def shown(schema: dict[str, Any]) -> str:
    """Return a field's type in words."""
    if "anyOf" in schema:
        return " or ".join(shown(shape) for shape in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    kind = schema["type"]
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return f"mapping of names to {shown(schema['additionalProperties'])}"
    if kind == "integer":
        return _integer(schema["minimum"], schema["maximum"])
    return _text(schema) if kind == "string" else str(kind)


def _array(schema: dict[str, Any]) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    count = f"{least} " if least == most else f"{least} or more " if least else ""
    return f"list of {count}{shown(schema['items'])}"


def _integer(least: int, most: int) -> str:
    if least == -most:
        return "integer"
    return f"integer from {least}" + (f" to {most}" if most < MAX_SAFE_INTEGER else "")


def _text(schema: dict[str, Any]) -> str:
    pattern = schema.get("pattern", "")
    if pattern == DIGEST_PATTERN:
        return "digest"
    if pattern == ID_PATTERN:
        return "id"
    if _INSTANT in pattern:
        return "instant"
    return f"text to {schema['maxLength']}" if "maxLength" in schema else "text"
