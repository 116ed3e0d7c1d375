"""What each finding of the preflight says whenever it is reported: the facts of ``rules.json``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from moeplan.facts.model import Fact, FactSet, load_facts

__all__ = ["ORIGIN", "preflight_facts", "statement"]

ORIGIN = "moeplan-infera"
OWN = "PRE-"
"""Ids that begin so are defined here; the others are facts of Infera that a preflight shows too."""


@cache
def _every() -> FactSet:
    return load_facts(files("moeplan_infera.preflight").joinpath("rules.json").read_bytes(), ORIGIN)


def preflight_facts() -> FactSet:
    """Return the facts that the preflight alone defines; a plugin joins them to its own."""
    return FactSet(ORIGIN, tuple(fact for fact in _every().facts if fact.id.startswith(OWN)))


def statement(rule: str) -> Fact:
    """Return what a finding of this id says."""
    return _every()[rule]
