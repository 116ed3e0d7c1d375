"""Findings as lines of text: for a terminal, and as the annotations GitHub Actions shows."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.findings.listed import SEVERITIES, Listed
from moeplan.model.plugin import PluginFinding

__all__ = ["github_lines", "text_lines"]

_COMMANDS = {"info": "notice", "warning": "warning", "error": "error"}


def text_lines(listed: Listed) -> Iterator[str]:
    """Yield what a person reads: each finding with place, consequence and remedy, then the count."""
    for finding in listed.findings:
        silent = {"yes": " (silently)", "partly": " (partly silently)", "no": ""}[finding.silent]
        yield f"{_place(finding)}: {finding.severity} {finding.id}: {finding.message}"
        yield f"    ignored{silent}: {finding.consequence}"
        yield f"    remedy: {finding.remedy}"
        yield f"    source: {finding.sources[0].source}"
    for one in listed.suppressed:
        yield f"{_place(one.finding)}: suppressed {one.finding.id} by the comment at line {one.line}: {one.reason}"
    for what, why in listed.not_judged:
        yield f"{what}: not judged: {why}"
    counted = ", ".join(f"{listed.count(severity)} {severity}" for severity in reversed(SEVERITIES))
    by = ", ".join(f"{number} by {name}" for name, number in sorted(listed.judged.items())) or "none"
    yield f"{counted}; {len(listed.suppressed)} suppressed; judged: {by}"


def _place(finding: PluginFinding) -> str:
    if finding.file is None or finding.line is None:
        return " ".join(part for part in (finding.file, finding.path) if part)
    return f"{finding.file}:{finding.line}:{finding.column or 1}"


def github_lines(listed: Listed) -> Iterator[str]:
    """Yield workflow commands, one a finding; messages and places are escaped as GitHub's toolkit does it.

    Source: GitHub Docs, Workflow commands for GitHub Actions; actions/toolkit, packages/core, command.ts.
    """
    for finding in listed.findings:
        fields = {"file": finding.file, "line": finding.line, "col": finding.column, "title": finding.id}
        shown = ",".join(f"{key}={_property(str(value))}" for key, value in fields.items() if value is not None)
        text = f"{finding.message}. {finding.consequence} Remedy: {finding.remedy}"
        yield f"::{_COMMANDS[finding.severity]} {shown}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
