"""Raw tables that contradict themselves, each other or the trial's duration."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from moeplan.model.tables import ChunkGapTable, RequestTable, table_faults


def _ints(*values: int) -> array[int]:
    return array("q", values)


def _requests() -> RequestTable:
    """Two requests: 0 sent at 10 with three chunks, 1 sent at 20 that failed before any."""
    return RequestTable(
        request=_ints(0, 1), start_ns=_ints(10, 20), queue_ns=_ints(0, 5), ttft_ns=_ints(30, 0), end_ns=_ints(100, 25),
        chunks=_ints(3, 0), input_tokens=_ints(8, 8), output_tokens=_ints(3, 0), usage=_ints(1, 0),
        outcome=("complete", "error"),
    )  # fmt: skip


def _gaps(**changed: array[int]) -> ChunkGapTable:
    return ChunkGapTable(**{"request": _ints(0, 0), "ordinal": _ints(1, 2), "gap_ns": _ints(25, 35), **changed})


def _codes(requests: RequestTable, gaps: ChunkGapTable, duration: int = 100) -> list[tuple[str, str]]:
    return [(issue.code, issue.path) for issue in table_faults(requests, gaps, duration)]


def test_sound_tables() -> None:
    assert _codes(_requests(), _gaps()) == []
    assert len(_requests()) == 2
    assert len(_gaps()) == 2


@pytest.mark.parametrize(
    ("column", "values", "code", "path"),
    [
        ("request", _ints(0, 0), "rows_not_numbered", "requests.request"),
        ("request", _ints(0, 2), "rows_not_numbered", "requests.request"),
        ("start_ns", _ints(21, 20), "rows_out_of_order", "requests.start_ns"),
        ("start_ns", _ints(-1, 20), "negative", "requests.start_ns"),
        ("queue_ns", _ints(0, -5), "negative", "requests.queue_ns"),
        ("input_tokens", _ints(-8, 8), "negative", "requests.input_tokens"),
        ("output_tokens", _ints(3, -1), "negative", "requests.output_tokens"),
        ("end_ns", _ints(101, 25), "outside_interval", "requests[0].end_ns"),
        ("end_ns", _ints(100, 19), "outside_interval", "requests[1].end_ns"),
        ("ttft_ns", _ints(30, 1), "no_chunk", "requests[1].ttft_ns"),
        ("ttft_ns", _ints(91, 0), "outside_request", "requests[0].ttft_ns"),
        ("ttft_ns", _ints(31, 0), "outside_request", "chunk_gaps[0]"),
        ("chunks", _ints(4, 0), "gap_count", "chunk_gaps[0]"),
        ("chunks", _ints(3, 2), "gap_count", "chunk_gaps[1]"),
        ("usage", _ints(1, 2), "invalid_value", "requests[1].usage"),
        ("outcome", ("complete", "fine"), "invalid_value", "requests[1].outcome"),
    ],
)
def test_a_request_column_that_does_not_hold(column: str, values: Any, code: str, path: str) -> None:
    assert (code, path) in _codes(attrs.evolve(_requests(), **{column: values}), _gaps())


@pytest.mark.parametrize(
    ("column", "values", "code", "path"),
    [
        ("gap_ns", _ints(25, -1), "negative", "chunk_gaps.gap_ns"),
        ("gap_ns", _ints(25, 36), "outside_request", "chunk_gaps[0]"),
        ("ordinal", _ints(1, 3), "rows_out_of_order", "chunk_gaps[0,3]"),
        ("ordinal", _ints(2, 1), "rows_out_of_order", "chunk_gaps[0,2]"),
        ("ordinal", _ints(1, 1), "rows_out_of_order", "chunk_gaps[0,1]"),
        ("request", _ints(1, 0), "rows_out_of_order", "chunk_gaps[0,2]"),
        ("request", _ints(0, 1), "rows_out_of_order", "chunk_gaps[1,2]"),
        ("request", _ints(0, 7), "rows_out_of_order", "chunk_gaps[7,2]"),
    ],
)
def test_a_gap_column_that_does_not_hold(column: str, values: Any, code: str, path: str) -> None:
    assert (code, path) in _codes(_requests(), _gaps(**{column: values}))


def test_gaps_of_a_request_that_is_not_there() -> None:
    gaps = ChunkGapTable(request=_ints(0, 0, 9), ordinal=_ints(1, 2, 1), gap_ns=_ints(1, 1, 1))
    assert ("gap_count", "chunk_gaps[9]") in _codes(_requests(), gaps)


def _many(make: Callable[[int], int]) -> array[int]:
    return _ints(*(make(row) for row in range(500)))


def test_faults_are_bounded() -> None:
    nothing = _many(lambda _row: 0)
    requests = RequestTable(
        request=_many(lambda row: row), start_ns=nothing, queue_ns=nothing, ttft_ns=nothing,
        end_ns=_many(lambda _row: 10**6), chunks=_many(lambda _row: 2), input_tokens=nothing, output_tokens=nothing,
        usage=nothing, outcome=("complete",) * 500,
    )  # fmt: skip
    found = _codes(requests, ChunkGapTable(_ints(), _ints(), _ints()))
    assert len(found) == 40
