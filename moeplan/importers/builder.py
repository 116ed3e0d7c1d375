"""A trial's raw tables, put together request by request in whatever order a tool's file gives them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from moeplan.errors import InputError
from moeplan.model.columns import NARROW, WIDE
from moeplan.model.tables import ChunkGapTable, RequestTable, table_faults

__all__ = ["TrialBuilder"]

_COLUMNS = ("request", "start_ns", "queue_ns", "ttft_ns", "end_ns", "chunks", "input_tokens", "output_tokens", "usage")


class TrialBuilder:
    """Collects requests; a hundred million gaps take 0.4 GB. Times are integer ns, ``start_ns`` on any one clock."""

    def __init__(self) -> None:
        """Begin a trial without requests."""
        self._columns = {name: array(WIDE) for name in _COLUMNS}
        self._outcome: list[str] = []
        self._gap_counts = array(WIDE)
        self._gaps = array(NARROW)

    def __len__(self) -> int:
        return len(self._outcome)

    def add(
        self,
        request: int,
        start_ns: int,
        queue_ns: int,
        ttft_ns: int,
        gaps: Iterable[int],
        end_ns: int,
        input_tokens: int,
        output_tokens: int,
        usage: bool,
        outcome: str,
        *,
        chunks: int | None = None,
    ) -> None:
        """Add one request; the arguments are the columns of :class:`moeplan.model.tables.RequestTable`.

        Args:
            request: the tool's own index of it; over all requests each of 0 to n - 1 once, in any order.
            start_ns: when it was sent, on the clock of the tool.
            queue_ns: how long the client held it back before.
            ttft_ns: from sending to the first chunk; 0 where no chunk came.
            gaps: ns between consecutive chunks, in order.
            end_ns: the last moment known of it, on the same clock as ``start_ns``.
            input_tokens: prompt tokens.
            output_tokens: generated tokens.
            usage: whether both counts are the server's.
            outcome: one of :data:`moeplan.model.tables.REQUEST_OUTCOMES`.
            chunks: arrivals seen; None takes one more than the gaps, or 0 where there are neither gaps nor a TTFT.
        """
        count = self._add_gaps(gaps)
        if chunks is None:
            chunks = count + 1 if count or ttft_ns else 0
        values = (request, start_ns, queue_ns, ttft_ns, end_ns, chunks, input_tokens, output_tokens, int(usage))
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        self._gap_counts.append(count)
        self._outcome.append(outcome)

    def _add_gaps(self, gaps: Iterable[int]) -> int:
        listed = gaps if isinstance(gaps, Sequence) else list(gaps)
        try:
            self._gaps.extend(array(self._gaps.typecode, listed))
        except OverflowError:
            if self._gaps.typecode == WIDE:
                raise
            self._gaps = array(WIDE, self._gaps)
            self._gaps.extend(array(WIDE, listed))
        return len(listed)

    def tables(
        self, duration_ns: int | None = None, *, origin_ns: int | None = None
    ) -> tuple[RequestTable, ChunkGapTable]:
        """Return the two tables, rows in start order, checked by :func:`moeplan.model.tables.table_faults`.

        Args:
            duration_ns: the trial's duration; None takes the last request's end.
            origin_ns: the start of the trial on the tool's clock; None takes the first request's start.

        Raises:
            InputError: the rows contradict themselves, each other or the duration.
        """
        origin = min(self._columns["start_ns"], default=0) if origin_ns is None else origin_ns
        starts, numbers = self._columns["start_ns"], self._columns["request"]
        order = sorted(range(len(self)), key=lambda row: (starts[row], numbers[row]))
        columns = {name: array(WIDE, (column[row] for row in order)) for name, column in self._columns.items()}
        for name in ("start_ns", "end_ns"):
            columns[name] = array(WIDE, (value - origin for value in columns[name]))
        requests = RequestTable(**columns, outcome=tuple(self._outcome[row] for row in order))
        gaps = self._gap_table()
        last = max(requests.end_ns, default=0)
        faults = tuple(table_faults(requests, gaps, last if duration_ns is None else duration_ns))
        if faults:
            raise InputError(*faults)
        return requests, gaps

    def _gap_table(self) -> ChunkGapTable:
        """Return the gaps by request; their column is only built anew where requests did not come in their order."""
        numbers, counts, gaps = self._columns["request"], self._gap_counts, self._gaps
        order: Sequence[int] = range(len(self))
        if any(numbers[row] <= numbers[row - 1] for row in order[1:]):
            starts = _starts(counts)
            order = sorted(order, key=numbers.__getitem__)
            gaps = array(gaps.typecode)
            for row in order:
                gaps.extend(self._gaps[starts[row] : starts[row] + counts[row]])
        rows = [row for row in order if counts[row]]
        return ChunkGapTable.of_counts(
            array(WIDE, (numbers[row] for row in rows)), array(WIDE, (counts[row] for row in rows)), gaps
        )


def _starts(counts: array[int]) -> array[int]:
    made, at = array(WIDE), 0
    for count in counts:
        made.append(at)
        at += count
    return made
