"""The table of chunk gaps <-> Parquet, a row group at a time: as rows in the file, as counts and gaps in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.model.chunk_gaps import ChunkGapTable
from moeplan.model.columns import NARROW, WIDE, append, column_of, view
from moeplan.wire.closed_table import GROUP_ROWS, INTEGER, TableSchema, dump_groups, load_table, read_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MAX_GAPS", "chunk_gap_pieces", "dump_chunk_gaps", "load_chunk_gaps"]

MAX_GAPS = 200_000_000


@attrs.frozen(eq=False)
class _Rows:
    """The table as it lies in the file."""

    request: array[int]
    ordinal: array[int]
    gap_ns: array[int]


CHUNK_GAPS = TableSchema(_Rows, {"request": INTEGER, "ordinal": INTEGER, "gap_ns": INTEGER}, MAX_GAPS)


def dump_chunk_gaps(table: ChunkGapTable) -> bytes:
    """Return the table as Parquet, three int64 columns; otherwise as :func:`moeplan.wire.tables.dump_requests`."""
    return b"".join(chunk_gap_pieces(table))


def chunk_gap_pieces(table: ChunkGapTable) -> list[bytes]:
    """Return what :func:`dump_chunk_gaps` returns, in pieces: a large table's file need not be in memory twice."""
    return dump_groups(CHUNK_GAPS, _groups(table))


def _groups(table: ChunkGapTable) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Yield the table's rows as they lie in the file, a row group at a time; one empty group of an empty table."""
    import numpy as np

    gaps, count = view(table.gap_ns), len(table)
    asked, stops = view(table.requests), np.cumsum(view(table.counts))
    starts = stops - view(table.counts)
    for start in range(0, max(count, 1), GROUP_ROWS):
        stop = min(start + GROUP_ROWS, count)
        if table.disorder is not None:
            request, ordinal = (view(column)[start:stop] for column in table.disorder)
        else:
            these = slice(np.searchsorted(stops, start, "right"), np.searchsorted(stops, stop, "left") + 1)
            rows = np.minimum(stops[these], stop) - np.maximum(starts[these], start)
            request = np.repeat(asked[these], rows)
            ordinal = np.arange(start + 1, stop + 1) - np.repeat(starts[these], rows)
        yield request, ordinal, gaps[start:stop].astype(np.int64)


def load_chunk_gaps(data: bytes) -> ChunkGapTable:
    """Return the chunk-gap table in ``data``, or refuse it as :func:`moeplan.wire.tables.load_requests` does."""
    reading = _Reading()
    for batch in read_batches(CHUNK_GAPS, data):
        columns = [batch.column(name).to_numpy() for name in CHUNK_GAPS.columns]
        if not reading.take(*columns):
            rows = load_table(CHUNK_GAPS, data)
            return ChunkGapTable(rows.request, rows.ordinal, rows.gap_ns)
    return reading.table()


class _Reading:
    """Rows in order become counts and gaps."""

    def __init__(self) -> None:
        self._asked, self._starts, self._gaps = array(WIDE), array(WIDE), array(NARROW)
        self._last: tuple[int, int] | None = None

    def take(self, request: NDArray[Any], ordinal: NDArray[Any], gap: NDArray[Any]) -> bool:
        """Add rows; False where they are not in order: by request, then 1, 2, 3 …"""
        import numpy as np

        if not len(gap):
            return True
        opens = np.empty(len(gap), bool)
        opens[0] = self._last is None or int(request[0]) != self._last[0]
        np.not_equal(request[1:], request[:-1], out=opens[1:])
        if not self._in_order(request, ordinal, opens):
            return False
        starts = np.flatnonzero(opens)
        append(self._asked, request[starts])
        append(self._starts, starts + len(self._gaps))
        self._append(gap)
        self._last = int(request[-1]), int(ordinal[-1])
        return True

    def _in_order(self, request: NDArray[Any], ordinal: NDArray[Any], opens: NDArray[Any]) -> bool:
        import numpy as np

        wanted = np.empty(len(ordinal), np.int64)
        wanted[0] = 1 if opens[0] or self._last is None else self._last[1] + 1
        np.add(ordinal[:-1], 1, out=wanted[1:])
        wanted[opens] = 1
        ascends = self._last is None or int(request[0]) >= self._last[0]
        return ascends and bool((request[1:] >= request[:-1]).all()) and np.array_equal(ordinal, wanted)

    def _append(self, gap: NDArray[Any]) -> None:
        most = (1 << 31) - 1
        if self._gaps.typecode == NARROW and not (-most <= int(gap.min()) and int(gap.max()) <= most):
            self._gaps = column_of(view(self._gaps), WIDE)
        append(self._gaps, gap)

    def table(self) -> ChunkGapTable:
        """Return the table of all rows taken."""
        import numpy as np

        counts = np.diff(view(self._starts), append=len(self._gaps))
        return ChunkGapTable.of_counts(self._asked, column_of(counts), self._gaps)
