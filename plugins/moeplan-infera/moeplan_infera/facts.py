"""What is known of Infera's operator, overlay, storage, RDMA and probes: facts as data, and rules in code."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from types import MappingProxyType

from moeplan.facts.judge import Rule
from moeplan.facts.model import FactSet, load_facts
from moeplan_infera import deployment, placeholders, placement, schema, storage

__all__ = ["ORIGIN", "RULES", "infera_facts"]

ORIGIN = "moeplan-infera"
_FILES = ("operator", "placeholders", "weights", "overlay", "disaggregation", "resources", "kvd", "ports")


@cache
def infera_facts() -> FactSet:
    """Return every fact of this library."""
    folder = files("moeplan_infera").joinpath("facts")
    first, *others = (load_facts(folder.joinpath(f"{name}.json").read_bytes(), ORIGIN) for name in _FILES)
    return first.joined(*others)


RULES: MappingProxyType[str, Rule] = MappingProxyType(
    {**placeholders.RULES, **placement.RULES, **storage.RULES, **deployment.RULES, **schema.RULES}
)
"""Fact id → the rule that judges it."""
