"""Hook arguments and results as JSON values and back; what a plugin gets is read-only and its own copy."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from moeplan.wire.converter import structure, unstructure

__all__ = [
    "freeze",
    "may_be_none",
    "prepare",
    "read_arguments",
    "result_type",
    "shape_fault",
    "thaw",
    "write_arguments",
]


def freeze(value: Any) -> Any:
    """Return JSON values with every object a read-only mapping and every array a tuple."""
    if isinstance(value, dict):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """Return frozen values, or an attrs instance, as plain JSON values."""
    if attrs.has(type(value)):
        return unstructure(value)
    if isinstance(value, Mapping):
        return {str(key): thaw(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [thaw(item) for item in value]
    return value


@cache
def _types(hook: str) -> dict[str, Any]:
    from moeplan.hooks import specs

    return get_type_hints(getattr(specs, hook))


def prepare(hooks: Iterable[str]) -> None:
    """Make what reading the arguments of these hooks takes, so that processes forked from this one have it."""
    from moeplan.wire.converter import prepare as prepare_classes

    _types("moeplan_runtime")  # which also imports what every plugin does
    kinds = {kind for hook in hooks for name, kind in _types(hook).items() if name != "return"}
    prepare_classes(*(kind for kind in kinds if _is_class(kind)))


def _is_class(kind: Any) -> bool:
    return inspect.isclass(kind) and attrs.has(kind)


def result_type(hook: str) -> Any:
    """Return the type that a hook's specification declares for its result."""
    return _types(hook)["return"]


def may_be_none(hook: str) -> bool:
    """Return whether None is an answer of the hook."""
    return NoneType in get_args(result_type(hook))


def write_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments as JSON values."""
    return {name: thaw(value) for name, value in arguments.items()}


def read_arguments(hook: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of :func:`write_arguments` as the types of the specification, all read-only."""
    kinds = _types(hook)
    return {
        name: structure(value, kinds[name]) if _is_class(kinds[name]) else freeze(value)
        for name, value in written.items()
    }


def shape_fault(hook: str, value: Any) -> str | None:
    """Return what was expected where a result is not exactly of the declared type, else None.

    Looks at the outermost type and, in a tuple, at each item's; no subclass will do.
    """
    kind = result_type(hook)
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        fits = type(value) is tuple and all(type(one) is item for one in value)
        return None if fits else f"a tuple of {item.__name__}"
    kinds = get_args(kind) or (kind,)
    return None if type(value) in kinds else " or ".join(one.__name__ for one in kinds)
