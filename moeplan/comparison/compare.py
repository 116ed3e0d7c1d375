"""What differs between two plans or two verdicts: figures, limits and outcomes, not sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.model.plan import Plan
from moeplan.model.verdict import Verdict
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import identify

__all__ = ["Comparison", "ComparisonRow", "compare"]

Scalar = str | int | bool | None

_PLAN = (
    "generator",
    "registry",
    "artifact",
    "target",
    "workload",
    "deployment",
    "residency",
    "readiness",
    "nextAction",
    "validationGates",
)
_VERDICT = ("generator", "readiness", "at", "plan", "policy", "subject", "reasons", "gates", "evidence")
_WORDING = frozenset(
    (
        "acceptanceCriteria",
        "acceptanceSentences",
        "manifestUrl",
        "message",
        "method",
        "next",
        "objective",
        "requiredEvidence",
        "summary",
        "title",
    )
)
"""Keys that hold sentences, or what another row tells."""
_NAMES = ("id", "code", "role", "trial")
"""Keys by which items of a list are matched, whatever their order."""


@attrs.frozen
class ComparisonRow:
    """One figure in both documents; None where one does not have it or leaves it open."""

    path: str
    left: Scalar
    right: Scalar

    @property
    def differs(self) -> bool:
        """Return whether the two are not the same."""
        return (type(self.left), self.left) != (type(self.right), self.right)


@attrs.frozen
class Comparison:
    """Two documents of one kind, by digest, and every figure of either."""

    kind: str
    left: str
    right: str
    rows: tuple[ComparisonRow, ...]

    @property
    def differences(self) -> tuple[ComparisonRow, ...]:
        """Return the rows that differ."""
        return tuple(row for row in self.rows if row.differs)


def compare(left: Plan | Verdict, right: Plan | Verdict) -> Comparison:
    """Return two plans, or two verdicts, side by side.

    Rows are in the documents' order; items of lists are matched by id, code, role or trial.

    Raises:
        InputError: one is a plan and the other a verdict.
    """
    if type(left) is not type(right):
        message = "documents of two kinds cannot stand side by side"
        raise InputError(Issue("B", "kind_differs", message, left.kind, right.kind))
    roots = _PLAN if isinstance(left, Plan) else _VERDICT
    first, second = (dict(_leaves(unstructure(one), roots)) for one in (left, right))
    paths = _merged(list(first), list(second))
    rows = tuple(ComparisonRow(path, first.get(path), second.get(path)) for path in paths)
    return Comparison(left.kind, identify(left), identify(right), rows)


def _leaves(document: dict[str, Any], roots: tuple[str, ...]) -> Iterator[tuple[str, Scalar]]:
    for root in roots:
        yield from _below(root, document[root])


def _below(path: str, value: Any) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, dict):
        reason_of_readiness = path == "readiness"
        for key, item in value.items():
            if key not in _WORDING and not (key == "reason" and reason_of_readiness):
                yield from _below(f"{path}.{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            name = next((item[key] for key in _NAMES if key in item), index) if isinstance(item, dict) else index
            yield from _below(f"{path}[{name}]", item)
    else:
        yield path, value


def _merged(first: list[str], second: list[str]) -> list[str]:
    """Return the paths of both in the first's order, each path of the second alone after the one it follows there."""
    merged = list(first)
    places = {path: place for place, path in enumerate(merged)}
    at = -1
    for path in second:
        if path in places:
            at = places[path]
            continue
        at += 1
        merged.insert(at, path)
        places = {name: place for place, name in enumerate(merged)}
    return merged
