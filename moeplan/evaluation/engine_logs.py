"""What an engine's log, as rows, says of its start: states, fatal lines, the values of the deployment it shows."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.model.observations import EngineLog
from moeplan.model.series import SeriesTable
from moeplan.model.verified import VerifiedRecord
from moeplan.units import NS_PER_S, parse_instant

__all__ = [
    "FATAL_PREFIX",
    "Start",
    "engine_starts",
    "fatal_lines",
    "log_numbers",
    "log_payload",
    "log_words",
    "ready_seconds",
]

FATAL_PREFIX = "fatal_"
"""Metrics of rows that count fatal lines begin with it, and end with the cause."""


@attrs.frozen
class Start:
    """One start of an engine in a log: its last state, and when it began and said that it serves, where it did."""

    state: str
    began_ns: int | None
    ready_ns: int | None


def log_payload(item: VerifiedRecord) -> EngineLog:
    """Return the record's payload, which is an engine log."""
    assert isinstance(item.record.payload, EngineLog)
    return item.record.payload


def _series(item: VerifiedRecord) -> SeriesTable:
    assert item.series is not None
    return item.series


def _rows(item: VerifiedRecord) -> Iterator[tuple[str, str, int, str, int]]:
    """Yield subject, metric, value, text and time of what was read."""
    table = _series(item)
    columns = (table.subject, table.metric, table.value, table.text, table.time_ns, table.state)
    for subject, metric, value, text, time, state in zip(*columns, strict=True):
        if state == "measured":
            yield subject, metric, value, text, time


def engine_starts(item: VerifiedRecord) -> tuple[Start, ...]:
    """Return the starts in a log, in order; one of an unknown state where it says none.

    A process that says anew that it starts begins a new start; of others the word belongs to the same one. The log of
    a node without a server of its own (``headless``) has none.
    """
    if "headless" in log_words(item, "engine_state"):
        return ()
    found: list[list[tuple[str, str, int]]] = [[]]
    for subject, metric, _value, text, time in _rows(item):
        if metric != "engine_state":
            continue
        begun = [who for who, word, _at in found[-1] if word == "starting"]
        ended = any(word != "starting" for _who, word, _at in found[-1])
        if text == "starting" and found[-1] and (subject in begun or ended):
            found.append([])
        found[-1].append((subject, text, time))
    return tuple(_start(part) for part in found)


def _start(part: list[tuple[str, str, int]]) -> Start:
    began = [time for _who, word, time in part if word == "starting"]
    ready = [time for _who, word, time in part if word == "ready"]
    state = "ready" if ready else part[-1][1] if part else "unknown"
    return Start(state, min(began, default=None), min(ready, default=None))


def ready_seconds(item: VerifiedRecord) -> int | None:
    """Return whole seconds from start to ready, of the slowest start in the log, rounded up; None where not shown.

    The start is the earlier one of the record's engine start and the log's own first word of it. A log names whole
    seconds, so that one second is added.
    """
    starts = engine_starts(item)
    if not starts or any(start.began_ns is None or start.ready_ns is None for start in starts):
        return None
    lead = 0
    if item.record.engine_start is not None:
        lead = parse_instant(item.record.interval.start) - parse_instant(item.record.engine_start)
    slowest = 0
    for number, start in enumerate(starts):
        assert start.began_ns is not None
        assert start.ready_ns is not None
        began = min(start.began_ns, -lead * NS_PER_S) if number == 0 else start.began_ns
        slowest = max(slowest, (start.ready_ns - began) // NS_PER_S + 1)
    return slowest


def fatal_lines(item: VerifiedRecord) -> Iterator[tuple[str, int, int]]:
    """Yield cause, number of lines, and the second since the epoch in which they stand, of every fatal row."""
    origin = parse_instant(item.record.interval.start)
    for _subject, metric, value, _text, time in _rows(item):
        if metric.startswith(FATAL_PREFIX):
            yield metric.removeprefix(FATAL_PREFIX), value, origin + time // NS_PER_S


def log_words(item: VerifiedRecord, metric: str) -> set[str]:
    """Return the different words that the log says of a metric."""
    return {text for _subject, name, _value, text, _time in _rows(item) if name == metric and text}


def log_numbers(item: VerifiedRecord, metric: str) -> set[int]:
    """Return the different integers that the log says of a metric."""
    return {value for _subject, name, value, text, _time in _rows(item) if name == metric and not text}
