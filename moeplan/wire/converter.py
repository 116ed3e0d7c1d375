"""A cattrs converter that is strict by exact type: no coercion, no unknown key, no missing key.

cattrs' default converter turns ``"7"`` and ``true`` into integers and drops unknown keys; none of that here.
cattrs is imported when something is structured, not before: writing a document needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.fields import ABSENT, SCHEMA, camel
from moeplan.wire.strict_json import child, unknown_key

if TYPE_CHECKING:
    import cattrs

__all__ = ["prepare", "structure", "unstructure"]

T = TypeVar("T")


class _Mismatch(Exception):
    """A value of another type than the model wants."""

    def __init__(self, expected: str, value: object) -> None:
        self.expected = expected
        self.got = escape(repr(value), 80)
        super().__init__(expected)


def _exact(kind: type, name: str) -> Callable[[Any, Any], Any]:
    def hook(value: Any, _type: Any) -> Any:
        if type(value) is not kind:
            raise _Mismatch(name, value)
        return value

    return hook


def discriminators(cls: type) -> dict[str, str]:
    """Return the attributes of ``cls`` whose value is constant, with that value."""
    found = ((field.name, field.metadata.get(SCHEMA, {}).get("const")) for field in attrs.fields(cls))
    return {name: value for name, value in found if value is not None}


@cache
def _converter() -> cattrs.Converter:
    import cattrs

    made = cattrs.Converter(detailed_validation=True, forbid_extra_keys=True)
    made.register_structure_hook(int, _exact(int, "an integer"))
    made.register_structure_hook(str, _exact(str, "text"))
    made.register_structure_hook(bool, _exact(bool, "true or false"))
    made.register_structure_hook_factory(_is_tuple, lambda kind: _tuple_hook(made, kind))
    made.register_structure_hook_factory(_is_mapping, lambda kind: _mapping_hook(made, kind))
    made.register_structure_hook_factory(_is_union, lambda kind: _union_hook(made, kind))
    made.register_structure_hook_factory(attrs.has, lambda cls: _class_hook(made, cls))
    return made


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _tuple_hook(made: cattrs.Converter, kind: Any) -> Callable[[Any, Any], Any]:
    item_type = get_args(kind)[0]
    listed = list[item_type]  # type: ignore[valid-type]

    def hook(value: Any, _type: Any) -> Any:
        if type(value) is not list:
            raise _Mismatch("an array", value)
        return tuple(made.structure(value, listed))

    return hook


def _mapping_hook(made: cattrs.Converter, kind: Any) -> Callable[[Any, Any], Any]:
    item_type = get_args(kind)[1]

    def hook(value: Any, _type: Any) -> Any:
        if type(value) is not dict:
            raise _Mismatch("an object", value)
        issues: list[Issue] = []
        items: dict[str, Any] = {}
        for key, item in value.items():
            try:
                items[key] = made.structure(item, item_type)
            except _Mismatch as error:
                issues += _issues(error, child("$", key))
        if issues:
            raise InputError(*issues)
        return MappingProxyType(items)

    return hook


def _union_hook(made: cattrs.Converter, kind: Any) -> Callable[[Any, Any], Any]:
    members = [member for member in get_args(kind) if member is not NoneType]
    optional = len(members) < len(get_args(kind))
    plain = {member for member in members if member in (int, str, bool)}
    classes = [member for member in members if attrs.has(member)]
    arrays = [member for member in members if _is_tuple(member)]
    key, by_word = _discriminate(classes)
    names = ["array" if member in arrays else member.__name__ for member in members]
    wanted = " or ".join(names + (["null"] if optional else []))

    def hook(value: Any, _type: Any) -> Any:
        if value is None and optional:
            return None
        if type(value) in plain:
            return value
        if len(classes) == 1 and not plain:
            return made.structure(value, classes[0])
        if len(members) == 1 and not plain:
            return made.structure(value, members[0])
        if len(arrays) == 1 and type(value) is list:
            return made.structure(value, arrays[0])
        if by_word and type(value) is dict:
            word = value.get(key)
            cls = by_word.get(word) if type(word) is str else None
            if cls is None:
                raise _Mismatch(f"{key} to be one of {', '.join(sorted(by_word))}", word)
            return made.structure(value, cls)
        raise _Mismatch(wanted, value)

    return hook


def _discriminate(classes: list[type]) -> tuple[str, dict[str, type]]:
    if len(classes) < 2:
        return "", {}
    names = set.intersection(*(set(discriminators(cls)) for cls in classes))
    for name in sorted(names):
        by_word = {discriminators(cls)[name]: cls for cls in classes}
        if len(by_word) == len(classes):
            return camel(name), by_word
    raise TypeError(f"no constant tells {classes} apart")


def _class_hook(made: cattrs.Converter, cls: type) -> Callable[[Any, Any], Any]:
    from cattrs.gen import make_dict_structure_fn, override

    renamed = {field.name: override(rename=camel(field.name)) for field in attrs.fields(cls)}
    inner: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, made, **renamed)  # type: ignore[arg-type]
    keys = [camel(field.name) for field in attrs.fields(cls) if not field.metadata.get(ABSENT)]
    absent = [camel(field.name) for field in attrs.fields(cls) if field.metadata.get(ABSENT)]

    def hook(value: Any, kind: Any) -> Any:
        if type(value) is not dict:
            raise _Mismatch("an object", value)
        missing = [key for key in keys if key not in value]
        if missing:
            raise InputError(*(Issue(f"$.{key}", "missing_key", "key missing", f"the key {key!r}") for key in missing))
        nulls = [key for key in absent if key in value and value[key] is None]
        if nulls:
            told = ("wrong_type", "value of the wrong type", "a value, or no such key", "None")
            raise InputError(*(Issue(f"$.{key}", *told) for key in nulls))
        return inner(value, kind)

    return hook


def prepare(*classes: type) -> None:
    """Make what structuring these classes takes, before the first document comes; it changes no result."""
    for cls in classes:
        _converter().get_structure_hook(cls)


def structure(value: Any, cls: type[T]) -> T:
    """Return ``value``, parsed JSON, as an instance of the attrs class ``cls``.

    Raises:
        InputError: with every fault and its JSON path; nothing is coerced.
    """
    from cattrs.errors import ClassValidationError, IterableValidationError

    try:
        return _converter().structure(value, cls)
    except (ClassValidationError, IterableValidationError, InputError, _Mismatch) as error:
        raise InputError(*_issues(error, "$")) from None


def _issues(error: BaseException, path: str) -> list[Issue]:
    from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError

    if isinstance(error, InputError):
        return [issue.under(path) for issue in error.issues]
    if isinstance(error, _Mismatch):
        return [Issue(path, "wrong_type", "value of the wrong type", error.expected, error.got)]
    if isinstance(error, ForbiddenExtraKeysError):
        return [
            unknown_key(path, str(key), (camel(field.name) for field in attrs.fields(error.cl)))
            for key in sorted(error.extra_fields, key=str)
        ]
    found: list[Issue] = []
    if isinstance(error, ClassValidationError):
        noted, others = error.group_exceptions()
        for inner, class_note in noted:
            found += _issues(inner, child(path, camel(class_note.name)))
    elif isinstance(error, IterableValidationError):
        indexed, others = error.group_exceptions()
        for inner, index_note in indexed:
            found += _issues(inner, child(path, index_note.index))
    else:
        raise error
    for inner in others:
        found += _issues(inner, path)
    return found


def unstructure(value: Any) -> Any:
    """Return an attrs instance as plain JSON values with camelCase keys, in the order of declaration."""
    if attrs.has(type(value)):
        made = {key: unstructure(getattr(value, name)) for name, key in _keys(type(value))}
        for key in _LEFT_OUT.get(type(value), ()):
            if made[key] is None:
                del made[key]
        return made
    if type(value) is tuple:
        return [unstructure(item) for item in value]
    return dict(value) if type(value) is MappingProxyType else value


_KEYS: dict[type, tuple[tuple[str, str], ...]] = {}
_LEFT_OUT: dict[type, tuple[str, ...]] = {}
"""Of classes that have any: the keys that are left out where there is no value."""


def _keys(cls: type) -> tuple[tuple[str, str], ...]:
    if cls not in _KEYS:
        absent = tuple(camel(field.name) for field in attrs.fields(cls) if field.metadata.get(ABSENT))
        if absent:
            _LEFT_OUT[cls] = absent
        _KEYS[cls] = tuple((field.name, camel(field.name)) for field in attrs.fields(cls))
    return _KEYS[cls]
