"""Findings with what was judged: the form that ``check``, ``lint`` and ``preflight`` print as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from moeplan.model.plugin import PluginFailure, PluginFinding
from moeplan.wire.converter import unstructure

__all__ = ["SEVERITIES", "Listed", "Suppressed"]

SEVERITIES = ("info", "warning", "error")
"""From the mildest to the worst."""


@attrs.frozen
class Suppressed:
    """A finding that the file's author has accepted, with the comment's reason and line."""

    finding: PluginFinding
    reason: str
    line: int


@attrs.frozen
class Listed:
    """The findings of one command.

    Attributes:
        findings: those that stand, in the order of files and lines.
        suppressed: those that a comment accepts.
        judged: how many documents and scripts each plugin judged.
        not_judged: what no plugin judged, each with the reason.
        failures: plugins that failed.
    """

    findings: tuple[PluginFinding, ...]
    suppressed: tuple[Suppressed, ...] = ()
    judged: Mapping[str, int] = attrs.field(factory=dict)
    not_judged: tuple[tuple[str, str], ...] = ()
    failures: tuple[PluginFailure, ...] = ()

    def count(self, severity: str) -> int:
        """Return how many findings of a severity stand."""
        return sum(1 for finding in self.findings if finding.severity == severity)

    def to_json(self) -> dict[str, Any]:
        """Return ``{"findings": […], "suppressed": […], "summary": {…}}`` as JSON values."""
        summary = {
            **{severity: self.count(severity) for severity in SEVERITIES},
            "suppressed": len(self.suppressed),
            "judged": dict(sorted(self.judged.items())),
            "notJudged": [{"what": what, "why": why} for what, why in self.not_judged],
            "failures": [unstructure(failure) for failure in self.failures],
        }
        return {
            "findings": [finding_json(finding) for finding in self.findings],
            "suppressed": [
                {**finding_json(one.finding), "reason": one.reason, "commentLine": one.line} for one in self.suppressed
            ],
            "summary": summary,
        }


def finding_json(finding: PluginFinding) -> dict[str, Any]:
    """Return a finding as JSON values."""
    made: dict[str, Any] = unstructure(finding)
    return made
