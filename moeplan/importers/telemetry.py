"""Telemetry in files -> ``memory_series``: nvidia-smi's CSV, pages of DCGM's exporter and of an engine.

A file shows what its tool saw. What it does not hold (the node's own memory, phases that nobody marked) is not made up:
the gate joins it with the records of the other tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.dcgm import dcgm_readings, is_dcgm
from moeplan.importers.device_rows import DeviceRows
from moeplan.importers.engine_page import EnginePages
from moeplan.importers.nvidia_smi import read_nvidia_smi
from moeplan.importers.scrapes import Scrape
from moeplan.importers.telemetry_times import local_instant
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import MemoryDevice, MemoryPhase, MemorySeries
from moeplan.model.pseudonyms import pseudonym
from moeplan.model.series_rows import SeriesRow, SeriesRows, series_table
from moeplan.units import NS_PER_S, format_instant
from moeplan.wire.observation import MadeObservation, ObservationContext, SideFile, enclosing_interval, make_observation
from moeplan.wire.prometheus_text import parse_exposition

__all__ = ["MAX_TELEMETRY_BYTES", "TelemetryInputs", "import_dcgm", "import_nvidia_smi", "import_vllm_metrics"]

MAX_TELEMETRY_BYTES = 1 << 29
_VERSION = "1"
Marked = tuple[str, int, int]


@attrs.frozen
class TelemetryInputs:
    """What the files do not say.

    Attributes:
        context: plan and deployment.
        node: pseudonym of the node whose devices they are.
        key: key of the pseudonyms of devices and processes.
        phases: phases that a person marked: name, first and last instant, nanoseconds since 1970.
    """

    context: ObservationContext
    node: str
    key: bytes
    phases: tuple[Marked, ...] = ()


def import_nvidia_smi(
    name: str, data: bytes, inputs: TelemetryInputs, *, utc_offset: int, columns: Sequence[str] | None = None
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the record of an output of ``nvidia-smi --query-gpu=timestamp,… --format=csv``.

    Args:
        name: the file's name.
        data: the file.
        inputs: what it does not say.
        utc_offset: seconds that the node's local time is ahead of UTC.
        columns: what was queried, where the output has no header.

    Raises:
        InputError: as :func:`read_nvidia_smi`; no line, or a line without an instant.
    """
    rows = SeriesRows("nvidia-smi")
    devices = DeviceRows(rows, inputs.key, inputs.node)
    times = set()
    for row in read_nvidia_smi(name, data, columns):
        at = local_instant(f"{escape(name, 200)}:{row.line}", row.timestamp, utc_offset)
        times.add(at)
        devices.one(at, row.reading)
    if not times:
        raise InputError(Issue(escape(name, 200), "nothing_to_import", "no line of a device", "at least one"))
    side = SideFile("tool_output", "nvidia-smi.csv", data, "csv", "text/csv", enclosed=False)
    return _made("nvidia-smi", rows.rows, devices.devices(), sorted(times), inputs, [side])


def import_dcgm(
    scrapes: Sequence[Scrape], inputs: TelemetryInputs, sides: Sequence[SideFile] = ()
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the record of pages of NVIDIA's DCGM exporter.

    Raises:
        InputError: a page is malformed, or none of DCGM's.
    """
    rows = SeriesRows("dcgm-exporter")
    devices = DeviceRows(rows, inputs.key, inputs.node)
    for scrape in scrapes:
        samples = parse_exposition(scrape.page)
        if not is_dcgm(samples):
            message = "no field of DCGM on the page"
            raise InputError(Issue(escape(scrape.where, 200), "not_dcgm", message, "DCGM_FI_DEV_FB_USED and others"))
        devices.read(scrape.time_ns, dcgm_readings(samples))
    times = sorted({scrape.time_ns for scrape in scrapes})
    return _made("dcgm-exporter", rows.rows, devices.devices(), times, inputs, sides)


def import_vllm_metrics(
    scrapes: Sequence[Scrape], inputs: TelemetryInputs, *, role: str | None = None, sides: Sequence[SideFile] = ()
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the record of an engine's pages, in order of time: its gauges, its counters with their resets.

    Phases warm and loaded are those that its gauges tell; a page in which a scrape failed ends one.

    Raises:
        InputError: a page is malformed, or none of an engine's.
    """
    rows = SeriesRows("vllm-metrics")
    pages = EnginePages(rows, pseudonym(inputs.key, "process", f"{inputs.node}/{role or 'engine'}"), role)
    told: list[tuple[int, str]] = []
    starts = set()
    for scrape in scrapes:
        state = pages.read(scrape.time_ns, parse_exposition(scrape.page))
        if state.in_flight is None:
            message = "no gauge of an engine on the page"
            raise InputError(
                Issue(escape(scrape.where, 200), "not_engine_metrics", message, "vllm:num_requests_running")
            )
        told.append((scrape.time_ns, "loaded" if state.in_flight else "warm"))
        if state.started_ns is not None:
            starts.add(state.started_ns)
    marked = inputs.phases or tuple(_runs(told))
    start = starts.pop() if len(starts) == 1 else None
    node = MemoryDevice(inputs.node, "host", None)
    times = [time for time, _phase in told]
    return _made("vllm-metrics", rows.rows, [node], times, attrs.evolve(inputs, phases=marked), sides, start)


def _runs(told: Iterable[tuple[int, str]]) -> Iterable[Marked]:
    """Yield each phase from its first moment to the first one of the next."""
    begun: tuple[int, str] | None = None
    last = 0
    for time, phase in told:
        if begun is not None and begun[1] != phase:
            yield begun[1], begun[0], time
            begun = None
        begun, last = begun or (time, phase), time
    if begun is not None and last > begun[0]:
        yield begun[1], begun[0], last


def _made(
    tool: str,
    rows: Sequence[SeriesRow],
    devices: Sequence[MemoryDevice],
    times: Sequence[int],
    inputs: TelemetryInputs,
    sides: Sequence[SideFile],
    start_ns: int | None = None,
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    if not devices:
        step = "query memory.used, or export DCGM_FI_DEV_FB_USED"
        raise InputError(Issue("FILE", "nothing_to_import", "no device's memory in it", "at least one", None, step))
    interval, origin = enclosing_interval(times[0], times[-1])
    end = max(row.time_ns for row in rows) - origin
    payload = MemorySeries(
        poll_interval_ns=_beat(times),
        phases=tuple(_phases(inputs.phases, origin, end)),
        devices=tuple(sorted(devices, key=lambda device: device.id)),
        row_count=len(rows),
    )
    made = make_observation(
        payload,
        {"series": series_table([attrs.evolve(row, time_ns=row.time_ns - origin) for row in rows])},
        context=inputs.context,
        collector=Collector(tool, None, tool, _VERSION),
        interval=interval,
        engine_start=None if start_ns is None else format_instant(start_ns // NS_PER_S),
        side_files=sides,
    )
    return made, tuple(_findings(payload, rows))


def _phases(marked: Sequence[Marked], origin_ns: int, end_ns: int) -> Iterable[MemoryPhase]:
    """Yield the phases as far as the record reaches."""
    for name, first, last in sorted(marked, key=lambda one: one[1]):
        start, stop = max(0, first - origin_ns), min(end_ns, last - origin_ns)
        if start < stop:
            yield MemoryPhase(name, start, stop)


def _beat(times: Sequence[int]) -> int:
    """Return the middle one of the gaps between moments; lines of one poll are milliseconds apart."""
    gaps = sorted(right - left for left, right in pairwise(times) if right - left >= NS_PER_S // 20)
    return gaps[len(gaps) // 2] if gaps else NS_PER_S


def _findings(payload: MemorySeries, rows: Sequence[SeriesRow]) -> Iterable[Finding]:
    resets = sum(row.state == "reset" for row in rows)
    if resets:
        yield Finding("counter_reset", "warning", f"{resets} counter(s) stand lower than before: restarted", None)
    unread = sum(row.state in ("failed", "not_exposed") for row in rows)
    if unread:
        yield Finding("not_read", "warning", f"{unread} value(s) were asked for and not told", None)
    if not payload.phases:
        message = "no phase is marked; another record's phases, or --phase NAME=FROM/TO, must tell them"
        yield Finding("no_phases", "info", message, None)
