"""Field makers: one declaration gives the attrs validator and the JSON Schema keywords, so the two cannot drift."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.units import MAX_SAFE_INTEGER, parse_instant

__all__ = [
    "ABSENT",
    "DIGEST_PATTERN",
    "ID_PATTERN",
    "PLUGIN_PATTERN",
    "SCHEMA",
    "VERSION_PATTERN",
    "boolean",
    "camel",
    "choice",
    "const",
    "count_or_sequence",
    "digest",
    "identifier",
    "instant",
    "integer",
    "integer_mapping",
    "limit_value",
    "nested",
    "sequence",
    "text",
    "text_mapping",
]

SCHEMA = "moeplan.schema"
"""attrs metadata key under which a field's JSON Schema keywords stand."""
ABSENT = "moeplan.absent"
"""attrs metadata key of a field whose key is left out on the wire where the value is None; ``null`` is refused.

Every maker takes ``absent=True``. For documents that people write and leave things out of; elsewhere each key is
required and what is not known is an explicit null.
"""

DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"
ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,127}$"
PLUGIN_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""A plugin's name. With ``@`` and the version it fits ``Criterion.contributed_by``."""
VERSION_PATTERN = r"^[a-z0-9][a-z0-9._+-]{0,62}$"
"""A plugin's version."""
_PLAIN_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]*$"
_INSTANT_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"

Check = Callable[[Any], str | None]
"""Returns what was expected when a value is refused, else None."""


def camel(name: str) -> str:
    """Return the wire key of a Python attribute: ``target_ttft_ms`` → ``targetTtftMs``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _refuse(name: str, expected: str, value: object) -> InputError:
    return InputError(Issue(f"$.{camel(name)}", "invalid_value", "value refused", expected, escape(repr(value), 80)))


_REMEMBERED = 1024
"""Accepted texts a field remembers: the same identifiers come again, and a look-up is cheaper than a match."""


Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def _field(
    schema: dict[str, Any],
    check: Check,
    *,
    optional: bool = False,
    many: bool = False,
    absent: bool = False,
    quick: Callable[[Validator], Validator] | None = None,
    **rest: Any,
) -> Any:
    """Return an attrs field; ``quick`` may put a cheaper acceptance of common values before the validator."""
    if absent:
        optional = True
        rest.setdefault("default", None)

    accepted: set[str] = set()

    def validate(_instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        expected = check(value)
        if expected is not None and not (optional and value is None):
            raise _refuse(attribute.name, expected, value)

    def validate_many(_instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if optional and value is None:
            return
        if type(value) is not tuple:
            raise _refuse(attribute.name, "a tuple", value)
        for index, item in enumerate(value):
            if type(item) is str and item in accepted:
                continue
            expected = check(item)
            if expected is not None:
                raise _refuse(f"{attribute.name}[{index}]", expected, item)
            if type(item) is str and len(accepted) < _REMEMBERED and len(item) < _REMEMBERED:
                accepted.add(item)

    validator: Validator = validate_many if many else validate if quick is None else quick(validate)
    return attrs.field(validator=validator, metadata={SCHEMA: schema, ABSENT: absent}, **rest)


def _remembering(validate: Validator) -> Validator:
    """Return a validator that does not look again at a text it accepted before."""
    accepted: set[str] = set()

    def remembered(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is str and value in accepted:
            return
        validate(instance, attribute, value)
        if type(value) is str and len(accepted) < _REMEMBERED and len(value) < _REMEMBERED:
            accepted.add(value)

    return remembered


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.removeprefix("^").removesuffix("$"))


def _encodable(value: str) -> bool:
    """Return whether text has no unpaired surrogate, as file names and arguments that are not UTF-8 have."""
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def text(
    *,
    pattern: str = _PLAIN_PATTERN,
    min_length: int = 1,
    max_length: int = 4096,
    optional: bool = False,
    many: bool = False,
    **rest: Any,
) -> Any:
    """Declare text without control characters; ``many`` makes it a tuple of such text."""
    compiled = _compiled(pattern)
    wanted = f"text of {min_length} to {max_length} characters" + (
        " without control characters" if pattern is _PLAIN_PATTERN else f" matching {pattern}"
    )

    plain = pattern is _PLAIN_PATTERN

    def check(value: Any) -> str | None:
        if type(value) is not str or not min_length <= len(value) <= max_length:
            return wanted
        # Printable ASCII always fits the plain pattern; asking that first is ten times faster than the match.
        if plain and value.isascii() and value.isprintable():
            return None
        return None if compiled.fullmatch(value) and _encodable(value) else wanted

    schema = {"type": "string", "minLength": min_length, "maxLength": max_length, "pattern": pattern}
    return _field(schema, check, optional=optional, many=many, quick=_remembering, **rest)


def digest(*, optional: bool = False, many: bool = False, **rest: Any) -> Any:
    """Declare a ``sha256:…`` digest."""
    return text(pattern=DIGEST_PATTERN, min_length=71, max_length=71, optional=optional, many=many, **rest)


def identifier(*, optional: bool = False, many: bool = False, **rest: Any) -> Any:
    """Declare an identifier of lower-case letters, digits, ``.``, ``_`` and ``-``."""
    return text(pattern=ID_PATTERN, max_length=128, optional=optional, many=many, **rest)


def instant(*, optional: bool = False, **rest: Any) -> Any:
    """Declare an instant: RFC 3339 UTC in whole seconds."""

    def check(value: Any) -> str | None:
        try:
            parse_instant(value)
        except (InputError, TypeError):
            return "an instant in UTC such as 2026-11-30T17:29:49Z"
        return None

    return _field({"type": "string", "pattern": _INSTANT_PATTERN}, check, optional=optional, **rest)


def integer(*, ge: int = 0, le: int = MAX_SAFE_INTEGER, optional: bool = False, many: bool = False, **rest: Any) -> Any:
    """Declare an exact integer from ``ge`` to ``le``."""

    wanted = f"an integer from {ge} to {le}"

    def check(value: Any) -> str | None:
        return None if type(value) is int and ge <= value <= le else wanted

    def quick(validate: Validator) -> Validator:
        def accept(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
            if type(value) is not int or not ge <= value <= le:
                validate(instance, attribute, value)

        return accept

    schema = {"type": "integer", "minimum": ge, "maximum": le}
    return _field(schema, check, optional=optional, many=many, quick=quick, **rest)


def boolean(**rest: Any) -> Any:
    """Declare true or false."""
    return _field({"type": "boolean"}, lambda value: None if type(value) is bool else "true or false", **rest)


def choice(*values: str, optional: bool = False, many: bool = False, **rest: Any) -> Any:
    """Declare one of a closed list of words."""
    wanted = "one of " + ", ".join(values)

    def check(value: Any) -> str | None:
        return None if type(value) is str and value in values else wanted

    schema = {"type": "string", "enum": list(values)}
    return _field(schema, check, optional=optional, many=many, quick=_remembering, **rest)


def const(value: str) -> Any:
    """Declare a field that always holds ``value``: a document's kind, a union's discriminator."""

    def check(got: Any) -> str | None:
        return None if got == value and type(got) is str else f"{value!r}"

    return _field({"type": "string", "const": value}, check, default=value, kw_only=True)


def limit_value(*, optional: bool = True, **rest: Any) -> Any:
    """Declare a criterion's limit or an observation: an exact integer or short text."""
    plain = _compiled(_PLAIN_PATTERN)

    def check(value: Any) -> str | None:
        if type(value) is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return None
        if type(value) is str and len(value) <= 4096 and plain.fullmatch(value) and _encodable(value):
            return None
        return "an integer or text"

    def quick(validate: Validator) -> Validator:
        def accept(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
            if type(value) is not int or not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                validate(instance, attribute, value)

        return accept

    schema = {
        "anyOf": [
            {"type": "integer", "minimum": -MAX_SAFE_INTEGER, "maximum": MAX_SAFE_INTEGER},
            {"type": "string", "maxLength": 4096, "pattern": _PLAIN_PATTERN},
        ]
    }
    return _field(schema, check, optional=optional, quick=quick, **rest)


def nested(cls: type | tuple[type, ...], *, optional: bool = False, **rest: Any) -> Any:
    """Declare a field that holds an instance of the attrs class ``cls``."""

    names = cls.__name__ if isinstance(cls, type) else " or ".join(c.__name__ for c in cls)

    def check(value: Any) -> str | None:
        return None if isinstance(value, cls) else f"a {names}"

    def quick(validate: Validator) -> Validator:
        def accept(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
            if not isinstance(value, cls):
                validate(instance, attribute, value)

        return accept

    return _field({}, check, optional=optional, quick=quick, **rest)


def sequence(cls: type | tuple[type, ...], *, min_items: int = 0, max_items: int | None = None, **rest: Any) -> Any:
    """Declare a tuple of instances of ``cls``."""
    names = cls.__name__ if isinstance(cls, type) else " or ".join(c.__name__ for c in cls)

    def check(value: Any) -> str | None:
        if type(value) is not tuple or len(value) < min_items or (max_items is not None and len(value) > max_items):
            return f"a tuple of {min_items} or more {names}"
        return None if all(isinstance(item, cls) for item in value) else f"items of type {names}"

    schema: dict[str, Any] = {"minItems": min_items} if min_items else {}
    if max_items is not None:
        schema["maxItems"] = max_items
    return _field(schema, check, **rest)


def count_or_sequence(cls: type, *, ge: int = 1, le: int = MAX_SAFE_INTEGER, **rest: Any) -> Any:
    """Declare a tuple of instances of ``cls``, or only how many there are."""
    wanted = f"an integer from {ge} to {le}, or a tuple of {cls.__name__}"

    def check(value: Any) -> str | None:
        if type(value) is tuple:
            return None if all(isinstance(item, cls) for item in value) else wanted
        return None if type(value) is int and ge <= value <= le else wanted

    return _field({"type": "integer", "minimum": ge, "maximum": le}, check, **rest)


def text_mapping(*, keys: str, pattern: str = _PLAIN_PATTERN, max_length: int = 1024, **rest: Any) -> Any:
    """Declare a read-only mapping of names matching ``keys`` to text matching ``pattern``."""
    compiled = _compiled(pattern)

    def check(value: Any) -> bool:
        return type(value) is str and 1 <= len(value) <= max_length and compiled.fullmatch(value) is not None

    item = {"type": "string", "minLength": 1, "maxLength": max_length, "pattern": pattern}
    return _mapping(keys, item, check, f"text matching {pattern}", **rest)


def integer_mapping(*, keys: str, ge: int = 0, le: int = MAX_SAFE_INTEGER, **rest: Any) -> Any:
    """Declare a read-only mapping of names matching ``keys`` to integers from ``ge`` to ``le``."""

    def check(value: Any) -> bool:
        return type(value) is int and ge <= value <= le

    item = {"type": "integer", "minimum": ge, "maximum": le}
    return _mapping(keys, item, check, f"an integer from {ge} to {le}", **rest)


_MOST_NAMES = 64


def _mapping(keys: str, item: dict[str, Any], fits: Callable[[Any], bool], wanted: str, **rest: Any) -> Any:
    names = _compiled(keys)

    def check(value: Any) -> str | None:
        if type(value) is not MappingProxyType or len(value) > _MOST_NAMES:
            return f"a mapping of at most {_MOST_NAMES} names"
        if not all(type(name) is str and names.fullmatch(name) for name in value):
            return f"names matching {keys}"
        return None if all(map(fits, value.values())) else f"values that are {wanted}"

    schema = {
        "type": "object",
        "propertyNames": {"pattern": keys},
        "additionalProperties": item,
        "maxProperties": _MOST_NAMES,
    }
    return _field(schema, check, **rest)
