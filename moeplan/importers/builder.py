"""A trial's raw tables, put together request by request in whatever order a tool's file gives them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError
from moeplan.model.columns import NARROW, WIDE, column_of, view
from moeplan.model.tables import ChunkGapTable, RequestTable, table_faults

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TrialBuilder"]

_COLUMNS = (
    "request", "start_ns", "queue_ns", "ttft_ns", "end_ns", "chunks", "input_tokens", "output_tokens", "usage", "gaps",
)  # fmt: skip
"""The columns of a request table but its outcomes, and the number of gaps."""


class TrialBuilder:
    """Collects requests; a hundred million gaps take 0.4 GB. Times are integer ns, ``start_ns`` on any one clock."""

    def __init__(self) -> None:
        """Begin a trial without requests."""
        self._rows = array(WIDE)
        self._outcome: list[str] = []
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
        self._rows.extend(
            (request, start_ns, queue_ns, ttft_ns, end_ns, chunks, input_tokens, output_tokens, int(usage), count)
        )
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
        import numpy as np

        rows = view(self._rows).reshape(-1, len(_COLUMNS))
        columns = dict(zip(_COLUMNS, rows.T, strict=True))
        gaps = self._gap_table(columns["request"], columns["gaps"])
        order = np.lexsort((columns["request"], columns["start_ns"]))
        first = 0 if not len(rows) else int(columns["start_ns"].min()) if origin_ns is None else origin_ns
        made = {name: column[order] for name, column in columns.items() if name != "gaps"}
        for name in ("start_ns", "end_ns"):
            made[name] = made[name] - first
        outcome = tuple(map(self._outcome.__getitem__, order.tolist()))
        requests = RequestTable(**{name: column_of(column) for name, column in made.items()}, outcome=outcome)
        last = max(requests.end_ns, default=0)
        faults = tuple(table_faults(requests, gaps, last if duration_ns is None else duration_ns))
        if faults:
            raise InputError(*faults)
        return requests, gaps

    def _gap_table(self, numbers: NDArray[Any], counts: NDArray[Any]) -> ChunkGapTable:
        """Return the gaps by request; their column is only built anew where requests did not come in their order."""
        import numpy as np

        order, gaps = np.arange(len(numbers)), self._gaps
        if bool((numbers[1:] <= numbers[:-1]).any()):
            stops = np.cumsum(counts)
            order = np.argsort(numbers, kind="stable")
            gaps = array(gaps.typecode)
            for row in order.tolist():
                gaps.extend(self._gaps[int(stops[row] - counts[row]) : int(stops[row])])
        kept = order[counts[order] > 0]
        return ChunkGapTable.of_counts(column_of(numbers[kept]), column_of(counts[kept]), gaps)
