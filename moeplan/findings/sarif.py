"""Findings as a SARIF log, for code hosts and editors that show them beside the lines.

Source: OASIS SARIF 2.1.0: sections 3.14 (run), 3.27 (result), 3.35 (suppression), 3.49 (reportingDescriptor).
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from moeplan.findings.listed import Listed
from moeplan.model.plugin import PluginFinding
from moeplan.version import VERSION

__all__ = ["sarif_log"]

_LEVELS = {"info": "note", "warning": "warning", "error": "error"}


def sarif_log(listed: Listed) -> dict[str, Any]:
    """Return the findings as the JSON values of a SARIF 2.1.0 log; accepted ones are suppressed results."""
    accepted = [(one.finding, one.reason) for one in listed.suppressed]
    every = [*listed.findings, *(finding for finding, _ in accepted)]
    rules = {finding.id: _rule(finding) for finding in every}
    order = {name: number for number, name in enumerate(sorted(rules))}
    results = [_result(finding, order) for finding in listed.findings]
    results += [
        {**_result(finding, order), "suppressions": [{"kind": "inSource", "justification": reason}]}
        for finding, reason in accepted
    ]
    driver = {"name": "moeplan", "semanticVersion": VERSION, "rules": [rules[name] for name in sorted(rules)]}
    return {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _rule(finding: PluginFinding) -> dict[str, Any]:
    sources = "; ".join(" ".join(filter(None, (one.source, one.locator))) for one in finding.sources)
    return {
        "id": finding.id,
        "shortDescription": {"text": finding.consequence},
        "help": {"text": f"{finding.remedy} Sources: {sources}"},
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
    }


def _result(finding: PluginFinding, order: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "ruleIndex": order[finding.id],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. {finding.consequence} {finding.remedy}"},
        "properties": {"plugin": finding.plugin, "path": finding.path, "silent": finding.silent},
    }
    if finding.file is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.file)}}
        if finding.line is not None:
            place["region"] = {"startLine": finding.line}
            if finding.column is not None:
                place["region"]["startColumn"] = finding.column
        result["locations"] = [{"physicalLocation": place}]
    return result


def _uri(file: str) -> str:
    return quote(PurePath(file).as_posix(), safe="/:")
