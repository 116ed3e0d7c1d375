"""Read the hosts' files, judge each again, compare them, and say where the tool's own level differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moeplan.errors import InputRefusedError, Issue, escape
from moeplan.model.plugin import PluginFinding
from moeplan.model.preflight import (
    Imported,
    ImportedClaim,
    ImportedHost,
    ImportedRow,
    ImportedSection,
    ImportRequest,
)
from moeplan_infera.preflight.against_site import compare_with_site
from moeplan_infera.preflight.directions import compare_directions
from moeplan_infera.preflight.fleet import FleetFinding, compare_hosts
from moeplan_infera.preflight.judgement import Judge, Judgement
from moeplan_infera.preflight.link_sections import judge_fabric, judge_mooncake, judge_mori, judge_netperf
from moeplan_infera.preflight.node_sections import (
    judge_firmware,
    judge_gpu,
    judge_host,
    judge_network,
    judge_storage,
)
from moeplan_infera.preflight.rows import claims_of, rows_of
from moeplan_infera.preflight.rules import statement
from moeplan_infera.preflight.speed_sections import judge_compute, judge_hbm, judge_p2p, judge_topology
from moeplan_infera.preflight.tool_file import HostReport, Malformed, ToolFinding, read_host

__all__ = ["JUDGES", "read_files"]

JUDGES: dict[str, Judge] = {
    "host": judge_host,
    "gpu": judge_gpu,
    "network": judge_network,
    "firmware": judge_firmware,
    "storage": judge_storage,
    "compute": judge_compute,
    "hbm": judge_hbm,
    "p2p": judge_p2p,
    "topology": judge_topology,
    "fabric": judge_fabric,
    "netperf": judge_netperf,
    "mooncake": judge_mooncake,
    "mori": judge_mori,
}
"""What judges each section of the tool. Source: ``cli.py`` ``PROBES`` and the three coordinated tests."""

_SEVERITIES = {"info": "info", "warn": "warning", "fail": "error"}
_WORDS = {"info": "ok", "warn": "warning", "fail": "error"}
_ORDER = ("not_judged", "ok", "warning", "error")


def read_files(request: ImportRequest, site: Mapping[str, Any]) -> Imported:
    """Return what the files say: hosts, rows, claims, findings and comparisons.

    Args:
        request: one file for each host.
        site: what the site says of its nodes; ``{}`` where there is none.

    Raises:
        InputRefusedError: files that are not what the tool writes, and hosts of which there are two files.
    """
    reports: list[HostReport] = []
    issues: list[Issue] = []
    for file in request.files:
        try:
            report = read_host(file.name, file.text)
            list(rows_of(report))
            list(_judged(report))
            list(compare_hosts([report]))
            reports.append(report)
        except Malformed as error:
            issues.append(error.issue(file.name))
    issues += _twice(reports)
    if issues:
        raise InputRefusedError(*issues)
    return _imported(sorted(reports, key=lambda report: report.host), site)


def _twice(reports: Sequence[HostReport]) -> Iterator[Issue]:
    seen: dict[str, str] = {}
    for report in reports:
        if report.host in seen:
            message = f"a second file of host {report.host}"
            yield Issue(
                f"{escape(report.file, 200)}: $.host",
                "host_repeated",
                message,
                "one file for each host",
                f"also {escape(seen[report.host], 200)}",
                "leave out the older file",
            )
        seen.setdefault(report.host, report.file)


def _imported(reports: Sequence[HostReport], site: Mapping[str, Any]) -> Imported:
    findings: list[PluginFinding] = []
    hosts: list[ImportedHost] = []
    rows: list[ImportedRow] = []
    claims: list[ImportedClaim] = []
    for report in reports:
        judged = {name: tuple(judgements) for name, judgements in _judged(report)}
        sections = tuple(_section(name, report.sections[name], judged[name]) for name in report.sections)
        hosts.append(ImportedHost(report.host, report.file, report.image, report.generated, sections))
        rows += rows_of(report)
        claims += claims_of(report)
        for name, tool_findings in report.sections.items():
            findings += _findings(report, name, tool_findings, judged[name])
    compared = [*compare_hosts(reports), *compare_directions(reports)]
    for _, found in compared:
        findings += map(_fleet_finding, found)
    findings += map(_fleet_finding, compare_with_site(reports, site) if site else ())
    return Imported(
        hosts=tuple(hosts),
        rows=tuple(rows),
        claims=tuple(claims),
        findings=tuple(findings),
        comparisons=tuple(comparison for comparison, _ in compared),
    )


def _judged(report: HostReport) -> Iterator[tuple[str, tuple[Judgement, ...]]]:
    for name, findings in report.sections.items():
        crashed = [one for one in findings if one.message == f"{name} probe crashed"]
        if crashed:
            yield name, tuple(_crash(finding) for finding in crashed)
        elif name in JUDGES:
            yield name, tuple(JUDGES[name](report, findings))
        else:
            yield name, ()


def _crash(finding: ToolFinding) -> Judgement:
    error = escape(str(finding.details.get("error", "no error was given")), 400)
    message = f"{finding.message}: {error}"
    return Judgement(says=finding.message, level="fail", path=finding.path, rule="PRE-CRASHED", message=message)


def _section(name: str, findings: tuple[ToolFinding, ...], judged: tuple[Judgement, ...]) -> ImportedSection:
    claimed = max((_WORDS[finding.level] for finding in findings), key=_ORDER.index, default="not_judged")
    measured = [one for one in judged if one.level in _WORDS]
    skips = [one for one in judged if one.level == "skipped"]
    found = max((_WORDS[one.level] for one in measured), key=_ORDER.index, default="not_judged")
    if found == "ok" and skips:
        found = "not_judged"
    return ImportedSection(name, claimed, found)


def _findings(
    report: HostReport, name: str, findings: tuple[ToolFinding, ...], judged: tuple[Judgement, ...]
) -> Iterator[PluginFinding]:
    if name not in JUDGES:
        told = f"section {name} is none that is known here: its values are not judged"
        yield _finding("PRE-UNKNOWN-PROBE", report.file, f"$.sections.{name}", told)
    claimed = {(finding.message, finding.level) for finding in findings}
    explained = {one.says for one in judged if one.rule is not None or one.level == "info"}
    for one in judged:
        if one.rule is not None:
            yield _finding(one.rule, report.file, one.path, f"{report.host}: {one.message}", one.severity)
        if one.level in ("warn", "fail") and (one.says, one.level) not in claimed:
            told = (
                f"{report.host}: its own values give {one.level} ({escape(one.says, 200)}), which the tool does not say"
            )
            severity = _SEVERITIES[one.level]
            yield _finding("PRE-LEVEL-DIFFERS", report.file, one.path, told, severity)
    for finding in findings:
        if finding.level != "info" and (finding.message not in explained or _milder(finding, judged)):
            told = f"{report.host}: the tool says {finding.level}: {escape(finding.message, 400)}"
            yield _finding("PRE-REPORTED", report.file, finding.path, told, _SEVERITIES[finding.level])


def _milder(finding: ToolFinding, judged: tuple[Judgement, ...]) -> bool:
    """Return whether the tool's level is worse than what the values under the same words give."""
    levels = [one.level for one in judged if one.says == finding.message]
    return bool(levels) and all(level == "info" or (level, finding.level) == ("warn", "fail") for level in levels)


def _fleet_finding(found: FleetFinding) -> PluginFinding:
    return _finding(found.rule, found.file, found.path, found.message, found.severity)


def _finding(rule: str, file: str, path: str, message: str, severity: str | None = None) -> PluginFinding:
    fact = statement(rule)
    return PluginFinding(
        id=rule,
        severity=severity or fact.severity,
        path=escape(path, 4000),
        file=file,
        message=escape(message, 4000),
        consequence=fact.consequence,
        silent=fact.silent,
        remedy=fact.remedy,
        sources=fact.sources,
        valid_for=fact.valid_for,
    )
