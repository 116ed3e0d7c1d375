"""A response read piece by piece: the same however it is cut, and refused where it is none."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeplan.collectors.http_response import MAX_HEAD_BYTES, MAX_LINE_BYTES, ResponseReader

BODY = b"data: one\n\ndata: [DONE]\n\n"
CHUNKED = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n"
    b"b;ext=1\r\ndata: one\n\n\r\nE\r\ndata: [DONE]\n\n\r\n0\r\nTrailer: x\r\n\r\n"
)
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: 25\r\nConnection: close\r\n\r\n" + BODY
UNTIL_CLOSE = b"HTTP/1.0 200 OK\r\n\r\n" + BODY


def read(data: bytes, cuts: list[int], end: bool = False) -> ResponseReader:
    reader = ResponseReader()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for number, (start, stop) in enumerate(pairwise(places)):
        if stop > start:
            reader.feed(data[start:stop], number)
    if end:
        reader.end()
    return reader


@pytest.mark.parametrize(
    ("data", "end", "reusable"), [(CHUNKED, False, True), (LENGTH, False, False), (UNTIL_CLOSE, True, False)]
)
@given(cuts=st.lists(st.integers(0, 1000), max_size=12))
def test_cuts_change_nothing(data: bytes, end: bool, reusable: bool, cuts: list[int]) -> None:
    reader = read(data, cuts, end)
    assert (reader.status, reader.complete, reader.fault, reader.reusable) == (200, True, None, reusable)
    assert b"".join(piece for _, piece in reader.pieces) == BODY


def test_a_piece_keeps_the_moment_it_came() -> None:
    reader = ResponseReader()
    reader.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", 10)
    reader.feed(b"de\r\n", 20)
    reader.feed(b"e\r\ndata: [DONE]\n\n\r\n", 30)
    assert reader.pieces == [(10, b"abc"), (20, b"de"), (30, b"data: [DONE]\n\n")]
    assert reader.marked_done is None  # it stands in the middle of a line
    assert not reader.complete


def test_the_mark_of_the_end_is_seen_at_a_lines_start() -> None:
    reader = ResponseReader()
    reader.feed(b"HTTP/1.1 200 OK\r\n\r\ndata: a\n\n", 10)
    reader.feed(b"data: [DONE]\n\n", 20)
    assert reader.marked_done == 20


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"SSH-2.0-x\r\n\r\n", "malformed_http"),
        (b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "malformed_http"),
        (b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", "malformed_http"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "malformed_http"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n", "malformed_http"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", "malformed_http"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, "malformed_http"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n", "head_too_large"),
        (b"x" * (MAX_HEAD_BYTES + 1), "head_too_large"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MAX_LINE_BYTES + 1), "line_too_long"),
    ],
)
def test_what_is_no_response_is_refused(data: bytes, fault: str) -> None:
    assert read(data, []).fault == fault
    assert read(data, list(range(0, len(data), max(len(data) // 20, 1)))).fault == fault


def test_a_body_cut_short_is_not_complete() -> None:
    assert not read(CHUNKED[:-20], [], end=True).complete
    assert not read(LENGTH[:-1], [], end=True).complete
    assert not read(b"", [], end=True).complete


@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    read(b"HTTP/1.1 200 OK\r\n" + data, [7, 30], end=True)
