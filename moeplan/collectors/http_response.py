"""One HTTP/1.1 response, read as its bytes come in: every piece of the body keeps the moment it arrived.

Pure: takes bytes and a clock's reading, opens nothing. It does as little as it can when bytes arrive, because another
stream's bytes may be waiting; what the pieces mean is read later.

Source: RFC 9112 (HTTP/1.1), sections 4 to 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["MAX_BODY_BYTES", "MAX_HEAD_BYTES", "MAX_LINE_BYTES", "ResponseReader"]

MAX_HEAD_BYTES = 64 << 10
MAX_LINE_BYTES = 1 << 20
"""Longest line of an event stream; an engine's chunk takes a few hundred bytes."""
MAX_BODY_BYTES = 256 << 20

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\r\n]*)?", re.ASCII)
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?", re.ASCII)
_LONGEST_SIZE_LINE = 1024


class ResponseReader:
    """Reads one response.

    Attributes:
        status: the status code; None before the head is there.
        headers: lower-case names with the last value of each.
        pieces: arrival in ns and bytes of every piece of the body, in order.
        complete: whether the body ended as its framing says.
        fault: why the response cannot be read any further: ``malformed_http``, ``head_too_large``, ``line_too_long``,
            ``body_too_large``; None where nothing is wrong.
        marked_done: when a line ``data: [DONE]`` was seen, in ns.
        reusable: whether the connection may carry another request.
    """

    def __init__(self) -> None:
        """Begin before the first byte."""
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.pieces: list[tuple[int, bytes]] = []
        self.complete = False
        self.fault: str | None = None
        self.marked_done: int | None = None
        self.reusable = False
        self._waiting = bytearray()
        self._read: Callable[[int], bool] = self._read_head
        self._left = 0
        self._total = 0
        self._in_line = 0

    def feed(self, data: bytes, now: int) -> None:
        """Take bytes that arrived at ``now`` (ns)."""
        if self.complete:
            self.reusable = False  # bytes that nobody asked for
            return
        self._waiting += data
        while self._waiting and self.fault is None and not self.complete:
            if not self._read(now):
                return

    def end(self) -> None:
        """Take the end of the connection: it completes a body that has no other end."""
        if self.status is not None and self._read == self._read_rest and self.fault is None:
            self.complete = True
        self.reusable = False

    def _refuse(self, code: str) -> bool:
        self.fault, self.reusable = code, False
        return False

    def _read_head(self, _now: int) -> bool:
        stop = self._waiting.find(b"\r\n\r\n")
        if stop < 0:
            return self._refuse("head_too_large") if len(self._waiting) > MAX_HEAD_BYTES else False
        if stop > MAX_HEAD_BYTES:
            return self._refuse("head_too_large")
        lines = bytes(self._waiting[:stop]).split(b"\r\n")
        del self._waiting[: stop + 4]
        match = _STATUS.fullmatch(lines[0])
        if match is None:
            return self._refuse("malformed_http")
        status = int(match[2])
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            if not colon or not name or name != name.strip():
                return self._refuse("malformed_http")
            headers[name.decode("latin-1").lower()] = value.strip().decode("latin-1")
        if 100 <= status < 200:  # an interim response: the real head follows
            return True
        self.status, self.headers = status, headers
        return self._choose_framing(match[1] == b"1")

    def _choose_framing(self, persistent: bool) -> bool:
        connection = self.headers.get("connection", "").lower()
        self.reusable = persistent and "close" not in connection
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._read = self._read_size
        elif "content-length" in self.headers:
            length = self.headers["content-length"]
            if not re.fullmatch(r"[0-9]{1,12}", length, re.ASCII):
                return self._refuse("malformed_http")
            self._left = int(length)
            self._read = self._read_length
            self.complete = self._left == 0
        elif self.status in (204, 304):
            self.complete = True
        else:
            self._read, self.reusable = self._read_rest, False
        return True

    def _read_size(self, _now: int) -> bool:
        stop = self._waiting.find(b"\r\n")
        if stop < 0:
            return self._refuse("malformed_http") if len(self._waiting) > _LONGEST_SIZE_LINE else False
        match = _SIZE.fullmatch(self._waiting, 0, stop)
        if match is None:
            return self._refuse("malformed_http")
        self._left = int(match[1], 16)
        del self._waiting[: stop + 2]
        self._read = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self, now: int) -> bool:
        self._take_body(now)
        if self._left == 0:
            self._read = self._read_chunk_end
        return True

    def _read_chunk_end(self, _now: int) -> bool:
        if len(self._waiting) < 2:
            return False
        if self._waiting[:2] != b"\r\n":
            return self._refuse("malformed_http")
        del self._waiting[:2]
        self._read = self._read_size
        return True

    def _read_trailer(self, _now: int) -> bool:
        stop = self._waiting.find(b"\r\n")
        if stop < 0:
            return self._refuse("head_too_large") if len(self._waiting) > MAX_HEAD_BYTES else False
        del self._waiting[: stop + 2]
        if stop == 0:
            self.complete = True
            if self._waiting:
                self.reusable = False
        return True

    def _read_length(self, now: int) -> bool:
        self._take_body(now)
        if self._left == 0:
            self.complete = True
            if self._waiting:
                self.reusable = False
        return True

    def _read_rest(self, now: int) -> bool:
        self._left = len(self._waiting)
        self._take_body(now)
        return True

    def _take_body(self, now: int) -> None:
        piece = bytes(self._waiting[: self._left])
        del self._waiting[: len(piece)]
        self._left -= len(piece)
        self._total += len(piece)
        if b"data: [DONE]" in piece and (self._in_line == 0 or b"\ndata: [DONE]" in piece):
            self.marked_done = self.marked_done or now
        last = piece.rfind(b"\n")
        self._in_line = self._in_line + len(piece) if last < 0 else len(piece) - last - 1
        self.pieces.append((now, piece))
        if self._total > MAX_BODY_BYTES:
            self._refuse("body_too_large")
        elif self._in_line > MAX_LINE_BYTES or (len(piece) > MAX_LINE_BYTES and _longest(piece) > MAX_LINE_BYTES):
            self._refuse("line_too_long")


def _longest(piece: bytes) -> int:
    return max(map(len, piece.split(b"\n")))
