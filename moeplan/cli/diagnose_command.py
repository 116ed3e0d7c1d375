"""``moeplan diagnose``: what is known of the lines of a log."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from moeplan.cli.output import emit_json, emit_text, note, table
from moeplan.cli.plugin_options import add_plugin, note_failures

if TYPE_CHECKING:
    from moeplan.diagnosis.logs import OpenLog
    from moeplan.diagnosis.result import Diagnosis, ExpectedLine, LogFinding
    from moeplan.model.plugin import PluginFailure

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan diagnose engine.log --runtime vllm"

_EXITS = {"errors": 1, "nothing_judged": 3, "clear": 0}
_NOTE_EVERY_NS = 5 * 10**9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help="a log, also compressed with gzip; - for standard input")
    add_plugin(parser)
    parser.add_argument(
        "--runtime", metavar="R", help="only what plugins of this runtime know: an engine or a plugin's name"
    )
    parser.add_argument("--json", action="store_true", help="print findings, what was expected, and what was read")


def run(args: argparse.Namespace) -> int:
    """Read the logs and print what is found; 1 for errors, 3 where nothing, or not all, could be judged."""
    from moeplan.diagnosis.diagnose import diagnose
    from moeplan.workflows.diagnose import known_signatures

    known = known_signatures(args.plugin, args.runtime)
    made = diagnose(args.logs, known.signatures, versions=known.versions, progress=_Progress())
    failures = known.failures + made.failures
    if args.json:
        emit_json(_json(made, failures))
    else:
        _print(made)
    _notes(made, failures)
    if failures and made.outcome == "clear":  # what a plugin would have said of the logs is not known
        return 3
    return _EXITS[made.outcome]


class _Progress:
    """Says on stderr every five seconds how far the reading is."""

    def __init__(self) -> None:
        self.last = time.monotonic_ns()

    def __call__(self, log: OpenLog, lines: int) -> None:
        now = time.monotonic_ns()
        if now - self.last < _NOTE_EVERY_NS:
            return
        from moeplan.units import format_bytes, format_count

        self.last = now
        whole = "" if log.total is None else f" of {format_bytes(log.total)}"
        note(f"{log.name}: read {format_bytes(log.size)}{whole}, {format_count(lines)} lines")


def _json(made: Diagnosis, failures: tuple[PluginFailure, ...]) -> dict[str, Any]:
    from moeplan.wire.converter import unstructure

    return {
        "findings": [unstructure(finding) for finding in made.findings],
        "expected": [unstructure(row) for row in made.expected],
        "logs": [unstructure(log) for log in made.logs],
        "signatures": made.signatures,
        "outcome": made.outcome,
        "failures": [unstructure(failure) for failure in failures],
    }


def _print(made: Diagnosis) -> None:
    for finding in made.findings:
        _print_finding(finding)
    absent = [row for row in made.expected if row.expectation == "must_be_zero" and row.holds]
    rows = [_expected_row(row) for row in made.expected if row not in absent]
    if rows:
        emit_text(table(("expected", "count", "holds", "plugin", "first line"), rows))
    if absent:
        emit_text(f"{len(absent)} kind(s) of line that must not be there: none is")


def _print_finding(finding: LogFinding) -> None:
    count = f"{'' if finding.complete else 'at least '}{finding.count} line{'s' if finding.count != 1 else ''}"
    source = finding.sources[0]
    place = f", {source.locator}" if source.locator else ""
    emit_text(
        f"{finding.file}:{finding.first_line}: {finding.severity}: {finding.id} ({finding.plugin}), {count}\n"
        f"  line:     {finding.excerpt}\n"
        f"  cause:    {finding.cause}\n"
        f"  remedy:   {finding.remedy}\n"
        f"  source:   {source.source}{place}\n"
        f"  evidence: {_evidence(finding)}"
    )


def _evidence(finding: LogFinding) -> str:
    rule = ", must be 0" if finding.evidence.comparator == "eq" else ""
    return f"{finding.evidence.observation} {finding.evidence.value}{rule} in {finding.evidence.log}"


def _expected_row(row: ExpectedLine) -> tuple[object, ...]:
    wanted = "0" if row.expectation == "must_be_zero" else "1 or more"
    holds = {True: "yes", False: "no", None: "unknown"}[row.holds]
    place = "-" if row.file is None else f"{row.file}:{row.first_line}"
    return f"{row.id}: {wanted}", row.count, holds, row.plugin, place


def _notes(made: Diagnosis, failures: tuple[PluginFailure, ...]) -> None:
    note_failures(failures)
    for log in made.logs:
        if log.cut_lines:
            note(f"{log.file}: {log.cut_lines} line(s) longer than 64 KiB; only that much of each was looked at")
        if not log.lines:
            note(f"{log.file}: the log is empty")
    for row in made.expected:
        if row.expectation == "must_be_present" and row.holds is False:
            note(f"{row.id}: no line says so, which proves nothing unless the logs are whole: {row.cause}")
    if not made.signatures:
        note("nothing was judged: no plugin that was asked knows any line of a log")
    elif not made.findings and made.outcome == "clear":
        note(f"no known line; {made.signatures} signatures were looked for, which is no proof of health")
