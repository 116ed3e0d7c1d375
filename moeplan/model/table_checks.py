"""Whether a trial's tables hold, by whole columns; where they do not, ``tables`` says how, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moeplan.model.columns import run_sums, view
from moeplan.units import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from moeplan.model.chunk_gaps import ChunkGapTable
    from moeplan.model.tables import RequestTable

__all__ = ["COUNTED", "gaps_hold", "requests_hold"]

COUNTED = ("start_ns", "queue_ns", "ttft_ns", "chunks", "input_tokens", "output_tokens")
"""Columns of a request table whose values are from 0 to 2^53 - 1."""
_NO_OVERFLOW = 1 << 62


def requests_hold(table: RequestTable, duration_ns: int, outcomes: Sequence[str]) -> bool:
    """Return whether every rule of a request table holds. Exact: sums of values below 2^53 fit into 64 bits."""
    import numpy as np

    count = len(table)
    if count == 0:
        return True
    columns = {name: view(getattr(table, name)) for name in COUNTED}
    if not all(int(column.min()) >= 0 and int(column.max()) <= MAX_SAFE_INTEGER for column in columns.values()):
        return False
    request, start, end, ttft = view(table.request), columns["start_ns"], view(table.end_ns), columns["ttft_ns"]
    later, same = start[1:] > start[:-1], start[1:] == start[:-1]
    return bool(
        np.array_equal(np.sort(request), np.arange(count))
        and (later | (same & (request[1:] > request[:-1]))).all()
        and int(end.max()) <= duration_ns
        and (start + ttft <= end).all()
        and not ttft[columns["chunks"] == 0].any()
        and np.isin(view(table.usage), (0, 1)).all()
        and len(table.outcome) == count
        and set(table.outcome) <= set(outcomes)
    )


def gaps_hold(requests: RequestTable, gaps: ChunkGapTable) -> bool:
    """Return whether gaps fit requests for which :func:`requests_hold`: their number, sign and sum. Exact."""
    import numpy as np

    gap, counts, asked = view(gaps.gap_ns), view(gaps.counts), view(gaps.requests)
    if gaps.disorder is not None or len(gap) != int(counts.sum()):
        return False
    row = view(requests.request)
    wanted, room = np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
    wanted[row] = np.maximum(view(requests.chunks) - 1, 0)
    if not np.array_equal(np.flatnonzero(wanted), asked) or not np.array_equal(wanted[asked], counts):
        return False
    if not len(gap):
        return True
    if int(gap.min()) < 0 or int(gap.max()) * int(counts.max()) >= _NO_OVERFLOW:
        return False
    room[row] = view(requests.end_ns) - view(requests.start_ns) - view(requests.ttft_ns)
    return bool((run_sums(gap, counts) <= room[asked]).all())
