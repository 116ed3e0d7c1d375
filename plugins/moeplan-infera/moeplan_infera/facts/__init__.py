"""What is known of Infera's operator, overlay, storage, RDMA and probes, as data with sources."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from moeplan.facts.model import FactSet, load_facts

__all__ = ["ORIGIN", "infera_facts"]

ORIGIN = "moeplan-infera"


@cache
def infera_facts() -> FactSet:
    """Return every fact of this library, in the order of its files' names."""
    found = sorted(entry.name for entry in files("moeplan_infera.facts").iterdir() if entry.name.endswith(".json"))
    sets = [load_facts(files("moeplan_infera.facts").joinpath(name).read_bytes(), ORIGIN) for name in found]
    return FactSet(ORIGIN, ()).joined(*sets)
