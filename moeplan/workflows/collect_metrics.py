"""Poll an engine's metrics, its devices and its node through a run, and write what was seen as evidence."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from moeplan.collectors.endpoint_address import parse_address
from moeplan.collectors.endpoint_target import tls_context
from moeplan.collectors.journal import Journal
from moeplan.collectors.metrics_poll import Answer, CommandSource, PageSource, Poll, Source, poll
from moeplan.errors import InputError, Issue
from moeplan.importers.given import StoredFile
from moeplan.importers.probe_memory import probe_memory_rows
from moeplan.importers.probe_record import MAX_RECORD_BYTES, ProbeRecord, check_group, read_probe_record
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import MEMORY_PHASES, MemorySeries
from moeplan.model.run_manifest import RunObservation
from moeplan.model.series_rows import SeriesRow, series_table
from moeplan.units import NS_PER_S, format_instant
from moeplan.version import VERSION
from moeplan.wire.observation import MadeObservation, ObservationContext, enclosing_interval, made_run, make_observation
from moeplan.workflows.collect_endpoint import run_until_stopped
from moeplan.workflows.collected import CollectedObservation
from moeplan.workflows.metrics_reader import MetricsReader, PageOf, Watched

__all__ = ["MetricsRun", "collect_metrics"]

_TYPE = "memory_series"
_SAY_EVERY_NS = 10 * NS_PER_S
_SAME_START_NS = 3 * NS_PER_S
"""A process's start is told to two seconds: the kernel's time of boot is in whole seconds. Source: proc_stat(5)."""


@attrs.frozen
class MetricsRun:
    """What is polled, and until when.

    Attributes:
        endpoints: role, or None, and URL of each page.
        watched: this node and the engine's processes on it.
        gpu_command: the words of the tool that tells of devices, and its form, ``nvidia`` or ``amd``; None without.
        interval_ns: the beat.
        most_ns: the end at the latest.
        end_file: the run is over once this file is there.
        probe: directory of the probe in the engine, whose lines of memory are read at the end.
        key: sent to the endpoints; never recorded.
        ca_file: certificates that https endpoints are checked with.
    """

    endpoints: tuple[tuple[str | None, str], ...]
    watched: Watched
    gpu_command: tuple[str, tuple[str, ...]] | None = None
    interval_ns: int = NS_PER_S
    most_ns: int = 3600 * NS_PER_S
    end_file: Path | None = None
    probe: Path | None = None
    key: str | None = None
    ca_file: str | None = None


def collect_metrics(
    run: MetricsRun,
    context: ObservationContext,
    output: Path | str,
    say: Callable[[str], None] = lambda _text: None,
) -> CollectedObservation:
    """Poll until the engine is gone after it served, ``end_file`` is there, or the time is over; write the record.

    The run's manifest is written first and says that a series is being made: one that leaves no record cannot be
    passed over. Ctrl-C or SIGTERM writes what was seen and leaves the run open.

    Args:
        run: what is polled, and until when.
        context: plan and deployment that the record names.
        output: directory to make; missing or empty.
        say: told how far it is.

    Raises:
        InputError: a URL is malformed.
        StoreError: the directory cannot be written, or a file cannot be read.
    """
    return run_until_stopped(_collect(run, context, output, say))


async def _collect(
    run: MetricsRun, context: ObservationContext, output: Path | str, say: Callable[[str], None]
) -> CollectedObservation:
    sources, pages = _sources(run)
    reader = MetricsReader(run.watched, pages, None if run.gpu_command is None else run.gpu_command[0])
    begun = RunObservation(_TYPE, None, ())
    manifest, _, _ = made_run(f"run-{secrets.token_hex(6)}", context, [begun], announced=True, state="open")
    journal = Journal(output, manifest)
    first, interrupted = time.time_ns(), False
    try:
        await poll(sources, Poll(run.interval_ns, run.most_ns, reader.begin, _told(reader, say), _over(run, reader)))
    except asyncio.CancelledError:
        interrupted = True
    finally:
        for source in sources:
            source.close()
    made, findings = _record(run, reader, context, first)
    journal.manifest = attrs.evolve(journal.manifest, observations=())
    journal.add_observation(made.listed(), {path: (data,) for path, data in made.files.items()})
    if not interrupted:
        journal.close()
    return CollectedObservation(made, journal.manifest, findings)


def _sources(run: MetricsRun) -> tuple[list[Source], list[PageOf]]:
    sources: list[Source] = []
    pages = []
    for role, url in run.endpoints:
        address = parse_address(url, "--endpoint")
        path = "" if address.path.endswith("/metrics") else "/metrics"
        sources.append(PageSource(address, path, run.key, tls_context(address, run.ca_file)))
        pages.append(PageOf(address.origin + address.path, role))
    if run.gpu_command is not None:
        sources.append(CommandSource(run.gpu_command[1]))
    return sources, pages


def _over(run: MetricsRun, reader: MetricsReader) -> Callable[[], bool]:
    return lambda: reader.gone or (run.end_file is not None and run.end_file.exists())


def _told(reader: MetricsReader, say: Callable[[str], None]) -> Callable[[int, Mapping[int, Answer]], None]:
    """Return what takes the answers and says each change of phase, and now and then that it goes on."""
    said, at = "", 0

    def take(time_ns: int, answers: Mapping[int, Answer]) -> None:
        nonlocal said, at
        reader.take(time_ns, answers)
        phase = reader.marks.current or "no phase: the engine starts, ends or is half there"
        if phase != said or time_ns - at > _SAY_EVERY_NS:
            seen = [name for name in MEMORY_PHASES if name in reader.marks.seen]
            say(f"{phase}; seen so far: {', '.join(seen) or 'none'}")
            said, at = phase, time_ns

    return take


def _record(
    run: MetricsRun, reader: MetricsReader, context: ObservationContext, first_ns: int
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    rows = reader.rows()
    last = max((row.time_ns for row in rows), default=first_ns)
    interval, origin = enclosing_interval(min([first_ns, *(row.time_ns for row in rows)]), max(last, first_ns))
    start = next(iter(reader.starts.values())) if len(reader.starts) == 1 else None
    length = (last - origin) if rows else 0
    told = [attrs.evolve(row, time_ns=row.time_ns - origin) for row in rows]
    findings = _findings(reader)
    try:
        told += [row for row in _probe_rows(run, origin, start) if 0 <= row.time_ns <= length]
    except InputError as error:
        findings += [Finding(issue.code, "error", issue.message, issue.path) for issue in error.issues]
    payload = MemorySeries(
        poll_interval_ns=run.interval_ns,
        phases=reader.marks.phases(origin),
        devices=tuple(reader.devices()),
        row_count=len(told),
    )
    made = make_observation(
        payload,
        {"series": series_table(told)},
        context=context,
        collector=Collector("moeplan-collect-metrics", VERSION, "moeplan", VERSION),
        interval=interval,
        engine_start=None if start is None else format_instant(start // NS_PER_S),
    )
    return made, tuple(findings)


def _probe_rows(run: MetricsRun, origin_ns: int, start_ns: int | None) -> list[SeriesRow]:
    """Return the rows of the probe's lines of memory, of every rank of the engine start that was polled."""
    if run.probe is None:
        return []
    found = []
    for path in sorted(run.probe.glob("memory-*.jsonl")):
        record = read_probe_record(path.name, StoredFile(str(path), MAX_RECORD_BYTES).data)
        if start_ns is None or record.engine_start_ns is None or _same(record, start_ns):
            found.append(record)
    if not found:
        step = "start the engine with MOEPLAN_PROBE_DIR and one of the probe's switches"
        message = "no record of memory of the engine start that was polled"
        raise InputError(Issue("--probe-dir", "missing_record", message, "files memory-*.jsonl", None, step))
    records = check_group(found, "memory")
    alone = len(records) == 1 and run.watched.cpu_engine
    rows: list[SeriesRow] = []
    for record in records:
        subject = run.watched.cpu if alone else f"{run.watched.node}-{record.rank}"
        rows += probe_memory_rows(record, origin_ns, subject).rows
    return rows


def _same(record: ProbeRecord, start_ns: int) -> bool:
    assert record.engine_start_ns is not None
    return abs(record.engine_start_ns - start_ns) <= _SAME_START_NS


def _findings(reader: MetricsReader) -> list[Finding]:
    found = [
        Finding("source_failed", "warning", f"{kind}: {count} time(s)", None)
        for kind, count in sorted(reader.failures.items())
    ]
    absent = [name for name in MEMORY_PHASES if name not in reader.marks.seen]
    if absent:
        message = f"never seen: {', '.join(absent)}; begin before the engine starts, and go on while it is loaded"
        found.append(Finding("phase_not_seen", "warning", message, None))
    if len(reader.starts) > 1:
        found.append(Finding("engine_restarted", "warning", f"{len(reader.starts)} engine starts were seen", None))
    return found
