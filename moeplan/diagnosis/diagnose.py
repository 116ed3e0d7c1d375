"""Read logs and say which known signatures their lines bear."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from moeplan.diagnosis.lines import LineCount, whole_lines, without_colours
from moeplan.diagnosis.logs import BLOCK_BYTES, Log, OpenLog, check_log, open_log
from moeplan.diagnosis.result import Diagnosis, LogFinding, ReadLog
from moeplan.diagnosis.tally import SEVERITIES, Tally, expected_tallies, finding_tallies
from moeplan.diagnosis.watch import WatchList, watch_list
from moeplan.errors import InputError, Issue
from moeplan.model.plugin import LogSignature

__all__ = ["UNNAMED", "Progress", "diagnose"]

UNNAMED = "caller"
"""Stands for the plugin of signatures that come without one."""

Progress = Callable[[OpenLog, int], None]
"""Called now and then with the log being read and the lines read of it."""


def diagnose(
    logs: Iterable[Log] | Log,
    signatures: Mapping[str, Sequence[LogSignature]] | Sequence[LogSignature],
    *,
    versions: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Diagnosis:
    """Return what the logs' lines say by the signatures; memory does not grow with the logs or their lines.

    A line is what LF ends. Terminal escapes are taken out of it and only its first 64 KiB are looked at. Patterns are
    searched under ``re.ASCII`` in the line, and where it is a JSON object in each text of it.

    Args:
        logs: paths, ``-`` for standard input, or binary streams; gzip is recognised. Each is read once.
        signatures: those of each plugin by its name, or signatures of no plugin.
        versions: the plugins' versions, for the failures.
        progress: is told how far the reading is.
        block_bytes: bytes read at a time; the result does not depend on it.

    Raises:
        InputError: no log, standard input twice, or a log that is neither text nor gzip.
        StoreError: a log is missing, a directory or cannot be read.
    """
    listed = _listed(logs)
    named = signatures if isinstance(signatures, Mapping) else {UNNAMED: signatures}
    watched = watch_list(named, versions or {})
    expected = expected_tallies(watched.watches)
    findings: list[LogFinding] = []
    read: list[ReadLog] = []
    try:
        for log in listed:
            tallies = finding_tallies(watched.watches)
            with open_log(log) as opened:
                read.append(_read(opened, watched, [*tallies, *expected], progress, block_bytes))
            findings += _findings(tallies, watched, read[-1])
    finally:
        watched.close()
    return Diagnosis(
        tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))),
        tuple(tally.expected(watched.watches) for tally in expected),
        tuple(read),
        sum(watch.failure is None for watch in watched.watches),
        tuple(failure for watch in watched.watches for failure in watch.failures()),
    )


def _listed(logs: Iterable[Log] | Log) -> list[Log]:
    single = isinstance(logs, str | os.PathLike) or hasattr(logs, "read")
    listed = [cast(Log, logs)] if single else list(cast(Iterable[Log], logs))
    if not listed:
        raise InputError(Issue("LOG", "no_log", "no log is named", "a path, or - for standard input"))
    if listed.count("-") > 1:
        raise InputError(Issue("LOG", "stdin_twice", "standard input is named twice", "- at most once"))
    for log in listed:
        check_log(log)
    return listed


def _read(
    opened: OpenLog, watched: WatchList, tallies: Sequence[Tally], progress: Progress | None, block_bytes: int
) -> ReadLog:
    count = LineCount()
    counted_by: dict[int, list[Tally]] = {}
    for tally in tallies:
        for index in tally.members:
            counted_by.setdefault(index, []).append(tally)
    for piece in whole_lines(opened.blocks(block_bytes), count):
        plain = without_colours(piece)
        hits = watched.scan(plain)
        for tally in {id(tally): tally for index in hits for tally in counted_by[index]}.values():
            tally.add(hits, watched.watches, opened.name, count.lines, plain)
        count.lines += plain.count(b"\n")
        if progress is not None:
            progress(opened, count.lines)
    return ReadLog(opened.name, opened.size, opened.digest, count.lines, count.cut)


def _findings(tallies: Sequence[Tally], watched: WatchList, log: ReadLog) -> list[LogFinding]:
    made = (tally.finding(watched.watches, log) for tally in tallies)
    found = [finding for finding in made if finding is not None]
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), finding.first_line, finding.id))
