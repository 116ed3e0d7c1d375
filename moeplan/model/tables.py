"""Raw observations as exact integer columns; a serving trial's times are nanoseconds from its start."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise

import attrs

from moeplan.errors import Issue
from moeplan.model.chunk_gaps import ChunkGapTable
from moeplan.model.columns import view
from moeplan.model.table_checks import COUNTED, gaps_hold, requests_hold
from moeplan.units import MAX_SAFE_INTEGER

__all__ = [
    "PREFLIGHT_STATES",
    "PREFLIGHT_UNITS",
    "REQUEST_OUTCOMES",
    "ChunkGapTable",
    "PreflightTable",
    "RequestTable",
    "preflight_faults",
    "request_faults",
    "table_faults",
]

REQUEST_OUTCOMES = ("complete", "error", "truncated")
"""complete: no error, and the tokens asked for; error: the tool or server reported one; truncated: the stream
ended without an error and without the tokens asked for."""

PREFLIGHT_STATES = ("measured", "failed")
"""measured: the value was obtained; failed: the tool tried and got none, and the value is 0."""
PREFLIGHT_UNITS = (
    "boolean",
    "bytes",
    "bytes_per_second",
    "count",
    "flop_per_second",
    "millidegrees_celsius",
    "version_number",
)
"""What an integer of a preflight table counts; a boolean is 0 or 1."""

_MOST_FAULTS = 20


@attrs.frozen(eq=False)
class RequestTable:
    """One row a request, in start order; every column has the same length.

    Attributes:
        request: the tool's own index of the request, each once, 0 to n - 1.
        start_ns: when it was sent, from the start of the trial.
        queue_ns: how long the client held it back before sending.
        ttft_ns: from sending to the first chunk; 0 where ``chunks`` is 0.
        end_ns: the last moment known of it, from the start of the trial.
        chunks: arrivals seen, the first included.
        input_tokens: prompt tokens; the server's count where ``usage`` is 1.
        output_tokens: generated tokens; the server's count where ``usage`` is 1.
        usage: 1 where both counts are the server's, 0 where they are the client's.
        outcome: one of :data:`REQUEST_OUTCOMES`.
    """

    request: array[int]
    start_ns: array[int]
    queue_ns: array[int]
    ttft_ns: array[int]
    end_ns: array[int]
    chunks: array[int]
    input_tokens: array[int]
    output_tokens: array[int]
    usage: array[int]
    outcome: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.request)


@attrs.frozen(eq=False)
class PreflightTable:
    """One row a raw value that a preflight tool measured on one host.

    Attributes:
        host: the host's name in the tool's file.
        probe: the tool's section.
        item: what was measured, such as ``gpu3``.
        metric: which quantity of it.
        unit: one of :data:`PREFLIGHT_UNITS`.
        value: exact integer in ``unit``; 0 where ``state`` is not ``measured``.
        state: one of :data:`PREFLIGHT_STATES`.
    """

    host: tuple[str, ...]
    probe: tuple[str, ...]
    item: tuple[str, ...]
    metric: tuple[str, ...]
    unit: tuple[str, ...]
    value: array[int]
    state: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.value)


def preflight_faults(table: PreflightTable) -> Iterator[Issue]:
    """Yield where a preflight table breaks its rules (at most 20 faults)."""
    yield from list(_preflight_faults(table))[:_MOST_FAULTS]


def _preflight_faults(table: PreflightTable) -> Iterator[Issue]:
    for row, (unit, value, state) in enumerate(zip(table.unit, table.value, table.state, strict=True)):
        at = f"preflight[{row}]"
        if unit not in PREFLIGHT_UNITS:
            yield Issue(f"{at}.unit", "invalid_value", "not a unit", ", ".join(PREFLIGHT_UNITS))
        if state not in PREFLIGHT_STATES:
            yield Issue(f"{at}.state", "invalid_value", "not a state", ", ".join(PREFLIGHT_STATES))
        if abs(value) > MAX_SAFE_INTEGER or (unit == "boolean" and value not in (0, 1)):
            yield Issue(f"{at}.value", "out_of_range", "value out of range", "a boolean 0 or 1; at most 2^53 - 1")
        if state != "measured" and value != 0:
            yield Issue(f"{at}.value", "not_measured", "a value that was not measured", "0", str(value))


def table_faults(requests: RequestTable, gaps: ChunkGapTable, duration_ns: int) -> Iterator[Issue]:
    """Yield where two tables contradict themselves, each other, or the trial's duration (at most 20 faults)."""
    if not requests_hold(requests, duration_ns, REQUEST_OUTCOMES):
        yield from list(_request_faults(requests, duration_ns))[:_MOST_FAULTS]
        yield from list(_gap_faults(requests, gaps))[:_MOST_FAULTS]
    elif not gaps_hold(requests, gaps):
        yield from list(_gap_faults(requests, gaps))[:_MOST_FAULTS]


def request_faults(table: RequestTable, duration_ns: int) -> Iterator[Issue]:
    """Yield where a request table alone contradicts itself or its duration (at most 20 faults)."""
    if not requests_hold(table, duration_ns, REQUEST_OUTCOMES):
        yield from list(_request_faults(table, duration_ns))[:_MOST_FAULTS]


def _request_faults(table: RequestTable, duration_ns: int) -> Iterator[Issue]:
    count = len(table)
    if sorted(table.request) != list(range(count)):
        yield Issue("requests.request", "rows_not_numbered", "not each of 0 to n-1 once", f"0 to {count - 1}")
    rows = list(zip(table.start_ns, table.request, strict=True))
    if any(left > right for left, right in pairwise(rows)):
        yield Issue("requests.start_ns", "rows_out_of_order", "rows are not in start order", "start_ns, then request")
    for name in COUNTED:
        if any(value < 0 for value in getattr(table, name)):
            yield Issue(f"requests.{name}", "negative", "negative value", "0 or more")
        if any(value > MAX_SAFE_INTEGER for value in getattr(table, name)):
            yield Issue(f"requests.{name}", "too_large", "value past 2^53 - 1", f"at most {MAX_SAFE_INTEGER}")
    for row in range(count):
        start, end = table.start_ns[row], table.end_ns[row]
        at = f"requests[{row}]"
        if not start <= end <= duration_ns:
            yield Issue(f"{at}.end_ns", "outside_interval", "outside the trial", f"{start} to {duration_ns}", str(end))
        if table.chunks[row] == 0 and table.ttft_ns[row] != 0:
            yield Issue(f"{at}.ttft_ns", "no_chunk", "a first chunk's time without a chunk", "0")
        if start + table.ttft_ns[row] > end:
            yield Issue(
                f"{at}.ttft_ns", "outside_request", "first chunk after the request's end", f"at most {end - start}"
            )
        if table.outcome[row] not in REQUEST_OUTCOMES:
            yield Issue(f"{at}.outcome", "invalid_value", "not an outcome", ", ".join(REQUEST_OUTCOMES))
        if table.usage[row] not in (0, 1):
            yield Issue(f"{at}.usage", "invalid_value", "not a flag", "0 or 1")


def _gap_faults(requests: RequestTable, gaps: ChunkGapTable) -> Iterator[Issue]:
    values = view(gaps.gap_ns)
    if len(values) and int(values.min()) < 0:
        yield Issue("chunk_gaps.gap_ns", "negative", "negative value", "0 or more")
    if gaps.disorder is not None:
        at = "chunk_gaps[{},{}]".format(*_first_out_of_order(*gaps.disorder))
        yield Issue(at, "rows_out_of_order", "rows are not by request, then 1, 2, 3 …", "sorted rows")
        return
    wanted = {request: max(chunks - 1, 0) for request, chunks in zip(requests.request, requests.chunks, strict=True)}
    room = {
        request: end - start - ttft
        for request, start, ttft, end in zip(
            requests.request, requests.start_ns, requests.ttft_ns, requests.end_ns, strict=True
        )
    }
    stops = list(accumulate(gaps.counts, initial=0))
    seen = {request: stops[row : row + 2] for row, request in enumerate(gaps.requests)}
    for request in sorted(set(wanted) | set(seen)):
        start, stop = seen.get(request, (0, 0))
        at = f"chunk_gaps[{request}]"
        if wanted.get(request, -1) != stop - start:
            expected, got = str(wanted.get(request)), str(stop - start)
            yield Issue(at, "gap_count", "gaps do not fit the request's chunks", expected, got)
        elif sum(gaps.gap_ns[start:stop]) > room[request]:
            yield Issue(at, "outside_request", "gaps last longer than the request", f"{room[request]} ns")


def _first_out_of_order(request: array[int], ordinal: array[int]) -> tuple[int, int]:
    """Return the first row that neither continues the request before it nor begins a later one."""
    last, seen = -1, 0
    for asked, place in zip(request, ordinal, strict=True):
        if asked < last or place != (seen + 1 if asked == last else 1):
            return asked, place
        last, seen = asked, place
    raise AssertionError("the rows are in order")
