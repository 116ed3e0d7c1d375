"""A Python pattern written for RE2, which takes time in proportion to the text whatever the pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from moeplan.diagnosis.pattern_tree import Node, parse_pattern, walk

__all__ = ["Untranslatable", "linear_pattern"]

_LAST = 0x10FFFF
_CLASSES = {
    "DIGIT": ((0x30, 0x39),),
    "SPACE": ((0x09, 0x0D), (0x20, 0x20)),
    "WORD": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
}
"""``\\d``, ``\\s`` and ``\\w`` under re.ASCII. RE2's own ``\\s`` lacks the vertical tab."""
_UPPER, _LOWER, _SHIFT = (0x41, 0x5A), (0x61, 0x7A), 0x20
_PLACES = {
    "AT_BEGINNING": (r"\A", "(?m:^)"),
    "AT_BEGINNING_STRING": (r"\A", r"\A"),
    "AT_END": (r"\z", "(?m:$)"),
    "AT_END_STRING": (r"\z", r"\z"),
    "AT_BOUNDARY": (r"\b", r"\b"),
}
"""Without and with re.MULTILINE; ``$`` is the end because no text that is searched ends with LF."""

Ranges = tuple[tuple[int, int], ...]


class Untranslatable(Exception):
    """RE2 has nothing that means the same: look-around, back references, possessive repeats."""


def linear_pattern(pattern: str) -> str:
    """Return a pattern that RE2 finds in exactly the texts in which Python finds ``pattern`` under re.ASCII.

    Whether it is found is all that is kept; where, and what groups hold, is not.

    Raises:
        Untranslatable: there is none.
        re.error: no pattern.
        ValueError: it asks for Unicode classes with ``(?u)``.
    """
    return _sequence(*parse_pattern(pattern))


def _sequence(items: Iterable[Any], flags: int) -> str:
    return "".join(_node(node) for node in walk(items, flags))


def _node(node: Node) -> str:
    if node.name in ("LITERAL", "NOT_LITERAL"):
        return _set(((node.value, node.value),), node.flags, node.name == "NOT_LITERAL")
    if node.name == "ANY":
        return "(?s:.)" if node.flags & re.DOTALL else r"[^\n]"
    if node.name == "IN":
        return _in(node)
    if node.name == "BRANCH":
        return "(?:" + "|".join(_sequence(branch, node.flags) for branch in node.value[1]) + ")"
    if node.name in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeat(node)
    if node.name == "AT" and node.value.name in _PLACES:
        return _PLACES[node.value.name][bool(node.flags & re.MULTILINE)]
    raise Untranslatable(node.name)


def _repeat(node: Node) -> str:
    least, most, inner = node.value
    bound = "" if hasattr(most, "name") else most  # MAXREPEAT has a name: no bound
    return f"(?:{_sequence(inner, node.flags)}){{{least},{bound}}}"


def _in(node: Node) -> str:
    ranges: list[tuple[int, int]] = []
    negated = False
    for name, value in node.value:
        if name.name == "NEGATE":
            negated = True
        elif name.name == "LITERAL":
            ranges.append((value, value))
        elif name.name == "RANGE":
            ranges.append(value)
        elif name.name == "CATEGORY":
            ranges += _category(value.name.removeprefix("CATEGORY_"))
        else:
            raise Untranslatable(name.name)
    return _set(tuple(ranges), node.flags, negated)


def _category(name: str) -> Ranges:
    if name.startswith("NOT_"):
        return _others(_CLASSES[name.removeprefix("NOT_")])
    return _CLASSES[name]


def _others(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for pair in ranges for edge in pair), _LAST + 1]
    return tuple((edges[i] + 1, edges[i + 1] - 1) for i in range(0, len(edges), 2) if edges[i] + 1 < edges[i + 1])


def _set(ranges: Ranges, flags: int, negated: bool) -> str:
    if flags & re.IGNORECASE:
        ranges += _swapped(ranges, _UPPER, _SHIFT) + _swapped(ranges, _LOWER, -_SHIFT)
    shown = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges)
    return f"[{'^' if negated else ''}{shown}]"


def _swapped(ranges: Ranges, letters: tuple[int, int], shift: int) -> Ranges:
    """Return the part of the ranges that are these letters, in the other case; re.ASCII folds no others."""
    parts = ((max(low, letters[0]), min(high, letters[1])) for low, high in ranges)
    return tuple((low + shift, high + shift) for low, high in parts if low <= high)
