"""Python's own parse of a pattern, opened up."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import attrs

__all__ = ["Node", "parse_pattern", "walk"]


@attrs.frozen
class Node:
    """One element of a pattern: the parser's name and value for it, and the flags in force there."""

    name: str
    value: Any
    flags: int


@cache
def _parser() -> Any:
    return import_module("re._parser")  # without stubs; the same module that re itself compiles with


def parse_pattern(pattern: str) -> tuple[Any, int]:
    """Return the items of a pattern's tree and its flags; classes such as ``\\d`` hold ASCII alone.

    Raises:
        re.error: no pattern.
        ValueError: it asks for Unicode classes with ``(?u)``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sets that a later Python may read otherwise
        tree = _parser().parse(pattern, re.ASCII)
    return tree, tree.state.flags


def walk(items: Iterable[Any], flags: int) -> Iterator[Node]:
    """Yield the elements of a sequence in order; what stands in groups counts as if it stood without them."""
    for name, value in items:
        if name.name == "SUBPATTERN":
            _group, added, removed, inner = value
            yield from walk(inner, (flags | added) & ~removed)
        else:
            yield Node(name.name, value, flags)
