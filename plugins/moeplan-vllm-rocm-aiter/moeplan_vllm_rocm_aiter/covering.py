"""Which facts of this runtime say the same as facts of vLLM in general, so that one cause is told once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from moeplan.model.plugin import PluginFinding

__all__ = ["COVERED", "told_once"]

COVERED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "C-DIV-001": ("R-ARG-004", "R-CHO-010"),
        "C-DIV-002": ("R-ARG-004",),
        "C-DIV-003": ("R-ARG-004",),
        "C-DIV-004": ("R-ARG-004", "R-ARG-026", "R-RES-003"),
        "C-DIV-011": ("R-ARG-004",),
        "C-ENV-003": ("R-ARG-029",),
        "C-ENV-010": ("R-IMG-008",),
        "C-NET-010": ("R-PD-007",),
        "C-PD-004": ("R-ARG-015", "R-ARG-016"),
        "C-PD-009": ("R-ARG-018", "R-ARG-019"),
        "C-PD-010": ("R-PD-021",),
        "C-PD-014": ("R-ARG-015", "R-ARG-020"),
        "C-PD-018": ("R-PD-003", "R-PD-004"),
        "C-SPC-003": ("R-ARG-006",),
        "C-SPC-004": ("R-ARG-006",),
        "C-SPC-009": ("R-ARG-007",),
        "C-SPC-010": ("R-ARG-007",),
        "C-SPC-011": ("R-ARG-007",),
        "C-TIM-002": ("R-PRB-001", "R-PRB-002", "R-PRB-003"),
    }
)
"""Fact of vLLM → facts of the recipes that cover its cause.

Some of the former are judged by other plugins alone; they stand here for the day they move into ``moeplan-vllm``.
"""


def told_once(findings: Iterable[PluginFinding]) -> list[PluginFinding]:
    """Return findings without those whose cause a fact of the recipes already tells as an error or a warning."""
    listed = list(findings)
    told = {one.id for one in listed if one.severity != "info"}
    return [one for one in listed if told.isdisjoint(COVERED.get(one.id, ()))]
