"""Placeholders such as ``<NODE>`` that were left in a manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene
from moeplan_infera.reading import place_of

__all__ = ["RULES"]

_PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")
_BRACKETS = re.compile(r"<[^<>]*>")
_Steps = tuple[str | int, ...]


def _texts(what: Any, steps: _Steps = ()) -> Iterator[tuple[_Steps, str]]:
    if isinstance(what, Mapping):
        for key, item in what.items():
            yield from _texts(item, (*steps, str(key)))
    elif isinstance(what, list | tuple):
        for index, item in enumerate(what):
            yield from _texts(item, (*steps, index))
    elif isinstance(what, str):
        yield steps, what


def _kind(steps: _Steps) -> str:
    """Return the id of the fact that a placeholder at ``steps`` breaks: a directory, a node, or anything else."""
    if "hostPath" in steps:
        return "R-PH-001"
    return "R-PH-002" if _chooses_a_node(steps) else "R-PH-003"


def _chooses_a_node(steps: _Steps) -> bool:
    return any(step in steps for step in ("nodeSelector", "nodeAffinity", "nodeName"))


def _left(fact: str, scene: Scene) -> Iterator[Hit]:
    for subject in scene.documents:
        for steps, text in _texts(None if subject.document is None else subject.document.value):
            # A label's value has no angle brackets, whatever stands between them.
            match = (_BRACKETS if _chooses_a_node(steps) else _PLACEHOLDER).search(text)
            if match is not None and _kind(steps) == fact:
                yield Hit(place_of(subject, *steps), f"placeholder {match[0]} was not filled in", subject)


RULES: Mapping[str, Rule] = {fact: partial(_left, fact) for fact in ("R-PH-001", "R-PH-002", "R-PH-003")}
"""Fact id → rule."""
