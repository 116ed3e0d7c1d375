"""What each finding of the preflight says whenever it is reported: the facts of ``rules.json``."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from moeplan.facts.model import Fact, FactSet, load_facts

__all__ = ["ORIGIN", "SHARED_IDS", "own_ids", "preflight_facts", "statement"]

ORIGIN = "moeplan-infera"
SHARED_IDS = ("R-CHO-006", "R-LOG-007", "R-PD-008", "R-PD-011")
"""Ids of facts that manifests, logs or people meet too: whoever has the facts declares them, and says more there."""


def _contents() -> bytes:
    return files("moeplan_infera.preflight").joinpath("rules.json").read_bytes()


@cache
def _every() -> FactSet:
    return load_facts(_contents(), ORIGIN)


def own_ids() -> tuple[str, ...]:
    """Return the ids of :func:`preflight_facts` without reading what the facts say."""
    return tuple(str(row["id"]) for row in json.loads(_contents()) if row["id"] not in SHARED_IDS)


def preflight_facts() -> FactSet:
    """Return the facts that the preflight alone defines; a plugin joins them to its own."""
    return FactSet(ORIGIN, tuple(fact for fact in _every().facts if fact.id not in SHARED_IDS))


def statement(rule: str) -> Fact:
    """Return what a finding of this id says of a host."""
    return _every()[rule]
