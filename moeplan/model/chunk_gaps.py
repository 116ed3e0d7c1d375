"""The gaps between chunks of a trial: a hundred million fit into memory, because only the gaps themselves are held."""

from __future__ import annotations

from array import array
from typing import Self

import attrs

from moeplan.errors import InputError, Issue
from moeplan.model.columns import NARROW, WIDE, column_of, view

__all__ = ["ChunkGapTable"]


@attrs.frozen(eq=False, init=False)
class ChunkGapTable:
    """One row a gap between two consecutive chunks of one request, sorted by request, then by position.

    As rows, ``request``, ``ordinal`` (1 for the gap after the first chunk, then 2, 3 …) and ``gap_ns``; held as one
    count a request, because in order both other columns follow from it.

    Attributes:
        requests: the requests that have gaps, ascending; indexes as in ``RequestTable``.
        counts: how many gaps each of ``requests`` has, 1 or more.
        gap_ns: the gaps, in 32-bit integers where all fit and else in 64-bit ones.
        disorder: the columns ``request`` and ``ordinal`` of rows that are not in order, which no sound table is;
            ``requests`` and ``counts`` are then empty.
    """

    requests: array[int]
    counts: array[int]
    gap_ns: array[int]
    disorder: tuple[array[int], array[int]] | None

    def __init__(self, request: array[int], ordinal: array[int], gap_ns: array[int]) -> None:
        """Take the table row by row.

        Raises:
            InputError: columns of different length, or not of 64-bit (``gap_ns`` also 32-bit) integers.
        """
        for name, column in (("request", request), ("ordinal", ordinal), ("gap_ns", gap_ns)):
            _require_column(name, column, len(request))
        runs = _runs(request, ordinal)
        if runs is None:
            self.__attrs_init__(array(WIDE), array(WIDE), gap_ns, (request, ordinal))
        else:
            self.__attrs_init__(*runs, gap_ns, None)

    @classmethod
    def of_counts(cls, requests: array[int], counts: array[int], gap_ns: array[int]) -> Self:
        """Return the table of gaps that stand in order, ``counts`` of them for each of ``requests``.

        Raises:
            InputError: requests that do not ascend, a count below 1, or counts that do not add up to the gaps.
        """
        asked, told = view(requests), view(counts)
        _require_column("counts", counts, len(requests))
        if len(asked) and (bool((asked[1:] <= asked[:-1]).any()) or int(told.min()) < 1):
            raise InputError(Issue("$.requests", "rows_out_of_order", "requests do not ascend", "each once, with gaps"))
        _require_column("gap_ns", gap_ns, int(told.sum()))
        made = cls.__new__(cls)
        made.__attrs_init__(requests, counts, gap_ns, None)
        return made

    @property
    def request(self) -> array[int]:
        """The request of each row: a new column as long as the table."""
        if self.disorder is not None:
            return self.disorder[0]
        import numpy as np

        return column_of(np.repeat(view(self.requests), view(self.counts)))

    @property
    def ordinal(self) -> array[int]:
        """The position of each row within its request, from 1: a new column as long as the table."""
        if self.disorder is not None:
            return self.disorder[1]
        import numpy as np

        counts = view(self.counts)
        before = np.cumsum(counts) - counts
        return column_of(np.arange(1, len(self) + 1) - np.repeat(before, counts))

    def __len__(self) -> int:
        return len(self.gap_ns)


def _require_column(name: str, column: array[int], rows: int) -> None:
    if len(column) != rows:
        raise InputError(Issue(f"$.{name}", "row_count", "column of another length", str(rows), str(len(column))))
    if column.typecode not in ((NARROW, WIDE) if name == "gap_ns" else (WIDE,)):
        expected = "array('q')" if name != "gap_ns" else "array('q') or array('i')"
        raise InputError(Issue(f"$.{name}", "wrong_column_type", "column of another type", expected, column.typecode))


def _runs(request: array[int], ordinal: array[int]) -> tuple[array[int], array[int]] | None:
    """Return the requests and how many rows each has; None where rows are not by request, then 1, 2, 3 …"""
    import numpy as np

    asked, place = view(request), view(ordinal)
    starts = np.flatnonzero(np.concatenate(([True], asked[1:] != asked[:-1])) if len(asked) else asked)
    counts = np.diff(np.append(starts, len(asked)))
    ordered = bool((asked[1:] >= asked[:-1]).all())
    if not ordered or not np.array_equal(place, np.arange(1, len(asked) + 1) - np.repeat(starts, counts)):
        return None
    return column_of(asked[starts]), column_of(counts)
