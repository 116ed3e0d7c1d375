"""What is known of Infera's operator, overlay, storage, RDMA and probes, as data with sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moeplan.facts.files import read_fact_files

if TYPE_CHECKING:
    from moeplan.facts.model import FactSet

__all__ = ["ORIGIN", "PACKAGE", "infera_facts"]

ORIGIN = "moeplan-infera"
"""The distribution these facts belong to."""
PACKAGE = "moeplan_infera.facts"
"""The package that holds their files."""


def infera_facts() -> FactSet:
    """Return every fact of this library."""
    return read_fact_files(PACKAGE, ORIGIN)
