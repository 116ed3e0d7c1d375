"""A controlled failure as it was written down, request by request -> ``failure_timeline``.

Two forms are read: what ``moeplan collect restart`` writes, and JSON Lines with ``ev`` and ``t`` in seconds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import attrs

from moeplan.errors import InputError, escape
from moeplan.evaluation.failures import Failure, read_failure
from moeplan.importers.given import GivenFile
from moeplan.importers.restart_forms import TimedEvent, Timeline, TimelineRequest, read_timeline
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import FailureTimeline
from moeplan.model.series_rows import SeriesRow, series_table
from moeplan.model.tables import RequestTable, request_faults
from moeplan.units import format_ns
from moeplan.wire.observation import (
    MadeObservation,
    ObservationContext,
    SideFile,
    enclosing_interval,
    make_observation,
)

__all__ = ["TimelineInputs", "import_restart_timeline"]

_VERSION = "1"
_UNITS = {"health_status": "http_status"}


@attrs.frozen
class TimelineInputs:
    """What the file may not hold.

    Attributes:
        context: plan and deployment.
        engine_start: the instant the engine that failed had started, where it is known.
        requested_output_tokens: tokens each request asked for; needed where the file does not tell.
        fault: ``kill``, ``signal`` or ``command``; None takes the file's word.
        target: what failed, as a pseudonym; None takes the file's word.
        enclose: whether the file lies beside the record; only a collector's own holds nothing else than times.
    """

    context: ObservationContext
    engine_start: str | None = None
    requested_output_tokens: int | None = None
    fault: str | None = None
    target: str | None = None
    enclose: bool = False


def import_restart_timeline(file: GivenFile, inputs: TimelineInputs) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the record of one failure, and what a person should know of it. Pure: no clock, no path.

    Raises:
        InputError: not such a file, cut off, contradicting itself, or a value that is neither in it nor stated.
    """
    try:
        timeline = read_timeline(file.data, inputs.requested_output_tokens)
    except InputError as error:
        error.source = escape(file.name)
        raise
    interval, origin = enclosing_interval(timeline.started_ns, timeline.started_ns + timeline.wall_ns)
    shift = timeline.started_ns - origin
    requests = _requests(timeline.requests, shift)
    target = inputs.target or timeline.target
    events = series_table([_row(event, target, timeline.source, shift) for event in timeline.events])
    duration = shift + timeline.wall_ns
    faults = tuple(request_faults(requests, duration))
    if faults:
        raise InputError(*faults, source=escape(file.name))
    payload = FailureTimeline(
        fault=inputs.fault or timeline.fault,
        target=target,
        requested_output_tokens=timeline.requested_output_tokens,
        duration_ns=duration,
        request_count=len(requests),
        row_count=len(events),
    )
    made = make_observation(
        payload,
        {"requests": requests, "series": events},
        context=inputs.context,
        collector=Collector(timeline.source, None, "restart-timeline", _VERSION),
        interval=interval,
        engine_start=inputs.engine_start,
        side_files=[SideFile("tool_output", "timeline.jsonl", file.data, "jsonl", "application/jsonl", inputs.enclose)],
    )
    return made, tuple(_findings(read_failure(requests, events), timeline))


def _requests(requests: Sequence[TimelineRequest], shift: int) -> RequestTable:
    ordered = sorted(requests, key=lambda row: (row.start_ns, row.index))
    return RequestTable(
        request=array("q", (row.index for row in ordered)),
        start_ns=array("q", (shift + row.start_ns for row in ordered)),
        queue_ns=array("q", [0] * len(ordered)),
        ttft_ns=array("q", (row.ttft_ns if row.chunks else 0 for row in ordered)),
        end_ns=array("q", (shift + row.end_ns for row in ordered)),
        chunks=array("q", (row.chunks for row in ordered)),
        input_tokens=array("q", (row.input_tokens for row in ordered)),
        output_tokens=array("q", (row.output_tokens for row in ordered)),
        usage=array("q", (int(row.usage) for row in ordered)),
        outcome=tuple(row.outcome for row in ordered),
    )


def _row(event: TimedEvent, target: str, source: str, shift: int) -> SeriesRow:
    unit = _UNITS.get(event.metric, "count")
    return SeriesRow(shift + event.time_ns, source, target, event.metric, event.value, unit)


def _findings(failure: Failure, timeline: Timeline) -> Iterable[Finding]:
    if not failure.whole:
        names = ("fault_ns", "last_good_ns", "first_bad_ns", "ready_ns", "first_good_ns")
        absent = ", ".join(name.removesuffix("_ns") for name in names if getattr(failure, name) is None)
        yield Finding("timeline_incomplete", "warning", f"the timeline lacks: {absent.replace('_', ' ')}", None)
    else:
        gap = format_ns(failure.longest_gap_ns or 0)
        message = f"ready again after {failure.restart_seconds} s, no request completed for {gap}"
        yield Finding("failure_read", "info", f"{message}, {failure.lost} request(s) lost", None)
    if timeline.interrupted:
        yield Finding("interrupted", "warning", "the run was interrupted before its end", None)
