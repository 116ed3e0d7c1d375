"""Torch profiler traces (Chrome trace JSON, one file a rank) -> ``communication_trace``.

Of a trace only times and the classes of its events are kept: host names, paths and Python stacks stay out of the
record, and the file is named by its digest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.given import GivenFile
from moeplan.importers.trace_events import PARTS, part_of, step_names
from moeplan.importers.trace_file import GZIP, Span, read_trace
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import CommunicationTrace
from moeplan.model.series_rows import SeriesRow, series_table
from moeplan.units import BASIS_POINTS, ceil_div, format_basis_points
from moeplan.wire.observation import (
    MadeObservation,
    ObservationContext,
    SideFile,
    enclosing_interval,
    make_observation,
)

__all__ = ["RankTrace", "StepSample", "import_torch_trace", "read_rank"]

_VERSION = "1"
_SOURCE = "torch-profiler"
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_SHOWN = 5


@attrs.frozen
class StepSample:
    """One step: when it began, in ns since the epoch, and its nanoseconds in all and by part."""

    start_ns: int
    step_ns: int
    routing_ns: int
    all_to_all_ns: int
    collective_ns: int


@attrs.frozen
class RankTrace:
    """One rank's trace: its place in the world, its steps, and the names that took most of the rest."""

    rank: int
    world_size: int
    on_device: bool
    steps: tuple[StepSample, ...]
    unknown: tuple[tuple[str, int], ...]
    engine_version: str | None


def import_torch_trace(
    files: Sequence[GivenFile], context: ObservationContext, *, step_name: str | None = None, engine_start: str | None
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the record of the traces of one world's ranks, and what a person should know of it. Pure.

    Args:
        files: one trace a rank, plain or gzip.
        context: plan and deployment.
        step_name: what the names of steps begin with, where the engine's are not known here.
        engine_start: the instant the engine started, where it is known.

    Raises:
        InputError: no trace, a trace without its place in the world or without steps, a rank given twice, or traces of
            different worlds.
    """
    traces = []
    for file in files:
        try:
            traces.append(read_rank(file.data, step_name))
        except InputError as error:
            error.source = escape(file.name)
            raise
    _require_one_world(traces)
    first = min(sample.start_ns for trace in traces for sample in trace.steps)
    last = max(sample.start_ns + sample.step_ns for trace in traces for sample in trace.steps)
    interval, origin = enclosing_interval(first, last)
    table = series_table([row for trace in traces for row in _rows(trace, origin)])
    version = next((trace.engine_version for trace in traces if trace.engine_version), None)
    made = make_observation(
        CommunicationTrace(world_size=traces[0].world_size, row_count=len(table)),
        {"series": table},
        context=context,
        collector=Collector("torch-profiler", version, "torch-trace", _VERSION),
        interval=interval,
        engine_start=engine_start,
        side_files=[_committed(file, trace) for file, trace in zip(files, traces, strict=True)],
    )
    return made, tuple(_findings(traces))


def _committed(file: GivenFile, trace: RankTrace) -> SideFile:
    """Return the trace by digest under a name that tells nothing: it holds names of hosts and paths."""
    media_type = "application/gzip" if file.data.startswith(GZIP) else "application/json"
    return SideFile("trace", f"rank-{trace.rank}.trace", file.data, "json", media_type, enclosed=False)


def _require_one_world(traces: Sequence[RankTrace]) -> None:
    worlds = sorted({trace.world_size for trace in traces})
    if len(worlds) != 1:
        raise InputError(Issue("FILE", "worlds_differ", "traces of different worlds", "one world size", str(worlds)))
    ranks = [trace.rank for trace in traces]
    if len(set(ranks)) < len(ranks):
        raise InputError(
            Issue("FILE", "rank_repeated", "two traces of one rank", "one file a rank", str(sorted(ranks)))
        )


def _rows(trace: RankTrace, origin: int) -> Iterable[SeriesRow]:
    for sample in trace.steps:
        for metric in ("step_ns", *PARTS):
            value = getattr(sample, metric)
            yield SeriesRow(sample.start_ns - origin, _SOURCE, f"rank-{trace.rank}", metric, value, "ns")


def read_rank(data: bytes, step_name: str | None = None) -> RankTrace:
    """Return one rank's steps. Exact: microseconds are read as decimals and rounded to the nanosecond.

    A step's device events are those that run between its begin and its end on the device, where the trace has both;
    else the events of all threads of the process within the step. A part's time is the time during which at least one
    of its events goes on, whatever goes on beside it, so communication that computation hides counts as well.

    Raises:
        InputError: no trace of the torch profiler, no place in the world, or no step.
    """
    trace = read_trace(data)
    events = trace.spans
    is_step = step_names(step_name)
    on_device = any(category == "gpu_user_annotation" and is_step(span.name) for category, span in events)
    kind = "gpu_user_annotation" if on_device else "user_annotation"
    steps = _outermost([span for category, span in events if category == kind and is_step(span.name)])
    if not steps:
        message, step = "no step of an engine in it", "name what its steps begin with: --step-name"
        raise InputError(Issue("$.traceEvents", "no_steps", message, "steps as vLLM names them", None, step))
    inner = [
        span
        for category, span in events
        if not is_step(span.name)
        and (category in _DEVICE if on_device else category not in ("Trace", "gpu_user_annotation"))
    ]
    busy = {part: _merged(span for span in inner if part_of(span.name) == part) for part in PARTS}
    return RankTrace(
        rank=trace.rank,
        world_size=trace.world_size,
        on_device=on_device,
        steps=tuple(_sample(step, busy) for step in steps),
        unknown=_unknown(steps, inner),
        engine_version=trace.engine_version,
    )


def _outermost(spans: Sequence[Span]) -> list[Span]:
    """Return spans one after another; one that begins before the last has ended is left out."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.end > span.start and (not kept or span.start >= kept[-1].end):
            kept.append(span)
    return kept


def _merged(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Return the time that spans cover, as stretches one after another."""
    merged: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], span.end))
        else:
            merged.append((span.start, span.end))
    return merged


def _within(stretches: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    first = max(bisect_right(stretches, (start, start)) - 1, 0)
    found = []
    for left, right in stretches[first:]:
        if left >= end:
            break
        if right > start:
            found.append((max(left, start), min(right, end)))
    return found


def _sample(step: Span, busy: dict[str, list[tuple[int, int]]]) -> StepSample:
    """Return a step's time by part; where two parts go on at once, the first of ``PARTS`` has the time."""
    spent: dict[str, int] = {}
    taken: list[tuple[int, int]] = []
    for part in PARTS:
        here = _within(busy[part], step.start, step.end)
        together = _merged(Span(left, right, "") for left, right in (*taken, *here))
        spent[part] = _length(together) - _length(taken)
        taken = together
    return StepSample(step.start, step.end - step.start, **spent)


def _length(stretches: Iterable[tuple[int, int]]) -> int:
    return sum(right - left for left, right in stretches)


def _unknown(steps: Sequence[Span], inner: Sequence[Span]) -> tuple[tuple[str, int], ...]:
    """Return the names of no part that took most of the steps' time, each with its nanoseconds.

    Events that hold others are counted with them, so these are hints for people and no sums.
    """
    starts = [step.start for step in steps]
    took: Counter[str] = Counter()
    for span in inner:
        place = bisect_right(starts, span.start) - 1
        if place >= 0 and span.end <= steps[place].end and part_of(span.name) is None:
            took[span.name] += span.end - span.start
    return tuple(took.most_common(_SHOWN))


Share = Callable[[StepSample], int]


def _share(traces: Sequence[RankTrace], take: Share) -> str:
    total = sum(sample.step_ns for trace in traces for sample in trace.steps)
    taken = sum(take(sample) for trace in traces for sample in trace.steps)
    return format_basis_points(ceil_div(BASIS_POINTS * taken, max(total, 1)))


def _findings(traces: Sequence[RankTrace]) -> Iterable[Finding]:
    count, world = sum(len(trace.steps) for trace in traces), traces[0].world_size
    parts = ", ".join(
        f"{label} {_share(traces, take)}"
        for label, take in (
            ("routing", lambda sample: sample.routing_ns),
            ("all-to-all", lambda sample: sample.all_to_all_ns),
            ("other collectives", lambda sample: sample.collective_ns),
        )
    )
    yield Finding("steps_read", "info", f"{count} steps of {len(traces)} of {world} rank(s): {parts}", None)
    if len(traces) < world:
        yield Finding("ranks_missing", "warning", f"{world - len(traces)} rank(s) of the world are not traced", None)
    if world == 1:
        yield Finding("one_rank", "info", "a world of one rank: nothing is exchanged, the share is exactly 0", None)
    names: Counter[str] = Counter()
    for trace in traces:
        names.update(dict(trace.unknown))
    shown = ", ".join(escape(name, 80) for name, _time in names.most_common(_SHOWN))
    rest = _share(
        traces, lambda sample: sample.step_ns - sample.routing_ns - sample.all_to_all_ns - sample.collective_ns
    )
    if shown:
        yield Finding("rest", "info", f"{rest} of the time belongs to none of them; most of it to {shown}", None)
    if not any(sample.routing_ns for trace in traces for sample in trace.steps):
        message = "no routing event was recognised: the kernels may do it inside a fused one"
        yield Finding("routing_not_seen", "warning", message, None)
