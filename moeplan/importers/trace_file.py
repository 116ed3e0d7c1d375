"""The file of a torch profiler trace: Chrome trace JSON, plain or gzip, read down to times, names and its rank."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape

__all__ = ["GZIP", "MAX_TRACE_BYTES", "Span", "TraceFile", "read_trace"]

MAX_TRACE_BYTES = 1 << 30
"""Cap on a trace in bytes, unpacked."""
GZIP = b"\x1f\x8b"
_MOST_RANKS = 100_000
_MOST_MICROSECONDS = 10**16


@attrs.frozen
class Span:
    """An event that lasts: nanoseconds since the epoch, and its name."""

    start: int
    end: int
    name: str


@attrs.frozen
class TraceFile:
    """One rank's trace: its place in the world, every lasting event with its category, the engine's version."""

    rank: int
    world_size: int
    spans: tuple[tuple[str, Span], ...]
    engine_version: str | None


def read_trace(data: bytes) -> TraceFile:
    """Return what is read of a trace; arguments of events, stacks and names of hosts are passed over.

    Exact: microseconds are read as decimals and rounded to the nanosecond.

    Raises:
        InputError: not a trace, cut off, too large, a time that is none, or nothing that tells its rank.
    """
    document = _decode(_unpacked(data))
    rank, world = _place(document.distributedInfo or {})
    origin = document.baseTimeNanoseconds or 0
    version = document.vllm_version
    named = type(version) is str and 0 < len(version) <= 64 and version.isprintable()
    return TraceFile(rank, world, tuple(_spans(document.traceEvents, origin)), version if named else None)


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(GZIP):
        return _capped(data)
    unpacking = zlib.decompressobj(wbits=31)
    try:
        made = unpacking.decompress(data, MAX_TRACE_BYTES + 1)
    except zlib.error:
        raise InputError(
            Issue("$", "invalid_gzip", "not gzip, or cut off", "a trace as the profiler wrote it")
        ) from None
    if not unpacking.eof and len(made) <= MAX_TRACE_BYTES:
        raise InputError(Issue("$", "partial_file", "the file is cut off", "a trace as the profiler wrote it"))
    return _capped(made)


def _capped(data: bytes) -> bytes:
    if len(data) > MAX_TRACE_BYTES:
        raise InputError(Issue("$", "too_large", "trace too large", f"at most {MAX_TRACE_BYTES} bytes unpacked"))
    return data


@lru_cache(maxsize=1)
def _shape() -> Any:
    """Return the type of what is read of a trace; anything else in it is passed over."""
    import msgspec

    event = msgspec.defstruct(
        "Event",
        [
            ("ph", str, ""),
            ("cat", str, ""),
            ("name", str, ""),
            ("ts", Decimal | None, None),
            ("dur", Decimal | None, None),
        ],
        gc=False,
    )
    return msgspec.defstruct(
        "Trace",
        [
            ("traceEvents", list[event]),  # type: ignore[valid-type]
            ("baseTimeNanoseconds", int | None, None),
            ("distributedInfo", dict[str, Any] | None, None),
            ("vllm_version", Any, None),
        ],
    )


def _decode(data: bytes) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(data, type=_shape())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        shown = escape(str(error), 160)
        raise InputError(
            Issue("$", "not_a_trace", f"not a trace of the torch profiler: {shown}", "Chrome trace JSON")
        ) from None


def _place(told: dict[str, Any]) -> tuple[int, int]:
    """Return rank and world size, as torch.distributed wrote them into the trace."""
    rank, world = told.get("rank"), told.get("world_size")
    if type(rank) is not int or type(world) is not int or not 0 <= rank < world <= _MOST_RANKS:
        message = "the trace does not say which rank of how many it is"
        step = "trace a process that has initialised torch.distributed, as vLLM's workers have"
        raise InputError(Issue("$.distributedInfo", "place_unknown", message, "rank and world_size", None, step))
    return rank, world


def _spans(events: Iterable[Any], origin: int) -> Iterator[tuple[str, Span]]:
    """Yield category and span of every event that lasts."""
    for event in events:
        if event.ph == "X" and event.ts is not None and event.dur is not None:
            start = origin + _nanoseconds(event.ts)
            yield event.cat, Span(start, start + _nanoseconds(event.dur), event.name)


def _nanoseconds(microseconds: Decimal) -> int:
    if not microseconds.is_finite() or not 0 <= microseconds < _MOST_MICROSECONDS:
        shown = escape(str(microseconds), 40)
        raise InputError(Issue("$.traceEvents", "out_of_range", "a time that is none", "microseconds", shown))
    return round(microseconds * 1000)
