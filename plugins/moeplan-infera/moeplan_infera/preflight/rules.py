"""What each finding of the preflight says whenever it is reported: the facts of ``rules.json``, and Infera's own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from moeplan.facts.model import Fact, FactSet, load_facts
from moeplan_infera.facts import ORIGIN, infera_facts

__all__ = ["FACTS_OF_INFERA", "preflight_facts", "statement"]

FACTS_OF_INFERA = ("R-CHO-006", "R-LOG-007", "R-PD-008", "R-PD-011")
"""Facts of :func:`moeplan_infera.facts.infera_facts` that a preflight shows too."""


@cache
def preflight_facts() -> FactSet:
    """Return the facts that the preflight alone defines; a plugin joins them to its own."""
    return load_facts(files("moeplan_infera.preflight").joinpath("rules.json").read_bytes(), ORIGIN)


def statement(rule: str) -> Fact:
    """Return what a finding of this id says."""
    return (infera_facts() if rule in FACTS_OF_INFERA else preflight_facts())[rule]
