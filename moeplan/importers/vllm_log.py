"""A vLLM server's log as evidence: what its lines tell as exact rows, the log itself by digest alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.fatal_signatures import FATAL_PREFIX, fatal_causes
from moeplan.importers.redaction import redact
from moeplan.importers.vllm_log_lines import LogClock, LogLine, log_lines
from moeplan.importers.vllm_log_rules import read_line
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import EngineLog
from moeplan.model.series_rows import SeriesRow, series_table
from moeplan.units import NS_PER_S, format_instant, parse_instant
from moeplan.wire.observation import (
    MadeObservation,
    ObservationContext,
    SideFile,
    enclosing_interval,
    make_observation,
)

__all__ = ["IMPORTER_VERSION", "MAX_LOG_BYTES", "LogInputs", "import_vllm_log"]

IMPORTER_VERSION = "1"
MAX_LOG_BYTES = 1 << 29
SOURCE = "vllm-log"
_LINES_BEFORE_START = 200
_MOST_ROWS = 1_000_000


@attrs.frozen
class LogInputs:
    """What a log does not say.

    Attributes:
        context: plan and deployment.
        role: the role of the deployment whose engine wrote it.
        clock: year and offset of its lines.
        engine_start: the engine's start, where another observation tells it.
        keep: enclose the log after redaction.
        hidden: names to take out of an enclosed log beside what its own form gives away.
        plugin_lines: what a plugin's signatures call fatal: first line and number of lines by ``<plugin>.<id>``.
    """

    context: ObservationContext
    role: str = "serve"
    clock: LogClock = attrs.field(factory=LogClock)
    engine_start: str | None = None
    keep: bool = False
    hidden: tuple[str, ...] = ()
    plugin_lines: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)


@attrs.define
class _Reading:
    """What was seen so far; fatal lines of one second, process and cause are one row."""

    rows: list[tuple[int, str, str, int, str, str]] = attrs.field(factory=list)
    fatal: dict[tuple[int, str, str], int] = attrs.field(factory=dict)
    first_ns: int | None = None
    last_ns: int = 0
    lines: int = 0
    started_at_line: int | None = None
    told_before_start: bool = False
    undated: int = 0

    def add(self, line: LogLine, by_plugin: Iterable[tuple[str, int]]) -> None:
        """Take in one line."""
        self.lines = line.number
        if line.time_ns is not None:
            self.first_ns = line.time_ns if self.first_ns is None else min(self.first_ns, line.time_ns)
            self.last_ns = max(self.last_ns, line.time_ns)
        at = line.time_ns if line.time_ns is not None else -1
        for found in read_line(line.text):
            if found.metric == "engine_state" and found.text in ("starting", "headless"):
                self.started_at_line = self.started_at_line or line.number
            elif found.metric != "engine_version":
                self.told_before_start |= self.started_at_line is None
            self.rows.append((at, line.process, found.metric, found.value, found.unit, found.text))
            if line.repeated:
                unseen = f"{found.metric}_unseen"
                self.rows.append((at, line.process, unseen, line.repeated, "count", ""))
        second = at if at < 0 else at // NS_PER_S * NS_PER_S
        for cause, count in (*((cause, 1) for cause in fatal_causes(line.text)), *by_plugin):
            self.fatal[second, line.process, cause] = self.fatal.get((second, line.process, cause), 0) + count

    @property
    def whole(self) -> bool:
        """Whether the engine's first words are in the log, and nothing an engine tells before them."""
        at = self.started_at_line
        return at is not None and at <= _LINES_BEFORE_START and not self.told_before_start

    def series(self, origin_ns: int) -> list[SeriesRow]:
        """Return the rows with times from the interval's start; what stands before any date is at the start."""
        rows = [
            SeriesRow(max(at - origin_ns, 0), SOURCE, subject, metric, value, unit, text)
            for at, subject, metric, value, unit, text in self.rows
        ]
        rows += [
            SeriesRow(max(at - origin_ns, 0), SOURCE, subject, f"{FATAL_PREFIX}{cause}", count, "count")
            for (at, subject, cause), count in self.fatal.items()
        ]
        return rows


def import_vllm_log(data: bytes, inputs: LogInputs) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the record of one engine's log, and what a person should know of it. Pure: no path, no clock.

    No argument, path, host, address or other free text of the log enters the record.

    Raises:
        InputError: nothing in it, no line of vLLM's, no dated line, dates without year or offset, or too many rows.
    """
    reading = _read(data, inputs)
    if not reading.rows and not reading.fatal:
        message, expected = "no line of a vLLM server's log is in it", "the log of 'vllm serve'"
        raise InputError(Issue("LOG", "not_vllm_log", message, expected))
    if reading.first_ns is None:
        raise InputError(Issue("LOG", "undated_log", "no line has a time", "vLLM's own lines with month, day and time"))
    if len(reading.rows) + len(reading.fatal) > _MOST_ROWS:
        raise InputError(Issue("LOG", "too_large", "too many lines that tell something", f"at most {_MOST_ROWS}"))
    interval, origin = enclosing_interval(reading.first_ns, reading.last_ns + NS_PER_S)
    table = series_table(reading.series(origin))
    payload = EngineLog(
        role=inputs.role,
        engine="vllm",
        engine_version=_version(reading),
        whole=reading.whole,
        line_count=reading.lines,
        row_count=len(table),
    )
    made = make_observation(
        payload,
        {"series": table},
        context=inputs.context,
        collector=Collector("vllm", payload.engine_version, SOURCE, IMPORTER_VERSION),
        interval=interval,
        engine_start=inputs.engine_start,
        side_files=_side_files(data, inputs),
    )
    return made, tuple(_findings(reading, inputs))


def _read(data: bytes, inputs: LogInputs) -> _Reading:
    if not data.strip():
        raise InputError(Issue("LOG", "empty_file", "nothing in the file", "a server's log"))
    causes: dict[int, list[tuple[str, int]]] = {}
    for cause, (first, count) in inputs.plugin_lines.items():
        causes.setdefault(first, []).append((cause, count))
    reading = _Reading()
    for line in log_lines(data, inputs.clock):
        reading.add(line, causes.get(line.number, ()))
    return reading


def _version(reading: _Reading) -> str | None:
    versions = [text for _at, _who, metric, _value, _unit, text in reading.rows if metric.endswith("_version")]
    return versions[0] if versions else None


def _side_files(data: bytes, inputs: LogInputs) -> tuple[SideFile, ...]:
    """Return the log by digest under a name that tells nothing, and where it is to be kept what redaction leaves."""
    committed = SideFile("log", "engine.log", data, "log", enclosed=False)
    if not inputs.keep:
        return (committed,)
    kept = redact(data.decode("utf-8", "replace"), inputs.hidden)
    return (committed, SideFile("log", "engine-redacted.log", kept.encode(), "log"))


def _findings(reading: _Reading, inputs: LogInputs) -> Iterable[Finding]:
    if not reading.whole:
        message = "the log does not begin with the engine's first lines: that it holds no failure shows nothing"
        yield Finding("log_not_whole", "warning", message, None)
    states = [text for _at, _who, metric, _value, _unit, text in reading.rows if metric == "engine_state"]
    if "ready" not in states and "headless" not in states:
        yield Finding("engine_not_ready", "warning", "the engine does not say that it serves", None)
    counts: dict[str, int] = {}
    for (_at, _who, cause), count in reading.fatal.items():
        counts[cause] = counts.get(cause, 0) + count
    for cause in sorted(counts):
        yield Finding("fatal_line", "warning", f"{counts[cause]} line(s) of cause {cause}", None)
    if inputs.engine_start is not None and reading.first_ns is not None:
        late = parse_instant(inputs.engine_start) - reading.first_ns // NS_PER_S
        if late > 0:
            said = format_instant(reading.first_ns // NS_PER_S)
            yield Finding(
                "engine_start_differs", "warning", f"the log begins at {said}, before the stated engine start"
            )
