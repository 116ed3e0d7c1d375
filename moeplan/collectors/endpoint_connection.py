"""Connections to one endpoint: a request goes out, and the bytes of its response come in with their times.

A lean HTTP/1.1 client over asyncio: what arrives is stamped before anything else is done with it, and no deadline is
passed over. It follows no redirect, asks for no compression, and repeats nothing by itself.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from time import perf_counter_ns

import attrs

from moeplan.collectors.endpoint_address import Address
from moeplan.collectors.http_response import ResponseReader
from moeplan.units import NS_PER_S

__all__ = ["Connections", "Deadlines", "Exchange"]

_IDLE_NS = NS_PER_S
"""A connection that lay idle for longer is not used again: servers close theirs after a few seconds (uvicorn: 5)."""
_AFTER_DONE_S = 1.0
"""How long the end of the response may come after ``[DONE]``."""


@attrs.frozen
class Deadlines:
    """In nanoseconds, each from the moment the request is to be sent; nothing of it runs on afterwards."""

    connect_ns: int = 10 * NS_PER_S
    first_byte_ns: int = 120 * NS_PER_S
    total_ns: int = 600 * NS_PER_S


@attrs.frozen
class Exchange:
    """One request and its response. Times are ``perf_counter_ns``.

    Attributes:
        sent_ns: when the client set out to send it, connecting included.
        end_ns: arrival of the body's last piece, or the moment it was given up.
        status: of the response; None where none came.
        headers: of the response, names in lower case.
        pieces: the body as it arrived.
        fault: what went wrong in transport: ``connect_failed``, ``connect_deadline``, ``first_byte_deadline``,
            ``total_deadline``, ``reset``, ``ended_early``, or a fault of :class:`ResponseReader`.
    """

    sent_ns: int
    end_ns: int
    status: int | None
    headers: dict[str, str]
    pieces: list[tuple[int, bytes]]
    fault: str | None


class _Connection(asyncio.Protocol):
    """One connection; it carries one exchange at a time."""

    def __init__(self) -> None:
        self.reader = ResponseReader()
        self.ended: asyncio.Future[str | None] | None = None
        self.first_byte: asyncio.TimerHandle | None = None
        self.idle_since = 0
        self.open = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.open = transport, True

    def data_received(self, data: bytes) -> None:
        now = perf_counter_ns()  # before anything else
        if self.first_byte is not None:
            self.first_byte.cancel()
            self.first_byte = None
        reader = self.reader
        reader.feed(data, now)
        if reader.complete or reader.fault is not None:
            self.settle(reader.fault)
        elif reader.marked_done == now:
            asyncio.get_running_loop().call_later(_AFTER_DONE_S, self._after_done, reader)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        self.reader.end()
        if self.reader.complete:
            self.settle(None)
        else:
            self.settle("reset" if exc is not None or self.reader.status is None else "ended_early")

    def settle(self, fault: str | None) -> None:
        if self.ended is not None and not self.ended.done():
            self.ended.set_result(fault)

    def pass_deadline(self, fault: str) -> None:
        """Give up; a stream that said it was done lacks nothing but its end."""
        self.settle(None if self.reader.marked_done is not None else fault)

    def _after_done(self, reader: ResponseReader) -> None:
        if reader is self.reader and not reader.complete:
            reader.reusable = False
            self.settle(None)

    def begin(self, request: bytes) -> asyncio.Future[str | None]:
        assert self._transport is not None
        self.reader = ResponseReader()
        self.ended = asyncio.get_running_loop().create_future()
        if self.open:
            self._transport.write(request)
        else:
            self.settle("reset")
        return self.ended

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Connections:
    """Connections to one address, kept open between requests."""

    def __init__(self, address: Address, context: ssl.SSLContext | None = None) -> None:
        """Open nothing yet; ``context`` is needed for https."""
        self._address = address
        self._context = context
        self._idle: deque[_Connection] = deque()
        self._busy: set[_Connection] = set()

    async def exchange(self, request: bytes, deadlines: Deadlines) -> Exchange:
        """Send one request and read its response to its end, its fault or its deadline."""
        sent = perf_counter_ns()
        loop = asyncio.get_running_loop()
        began = loop.time()
        connection, fault = await self._connection(deadlines)
        if connection is None:
            return Exchange(sent, perf_counter_ns(), None, {}, [], fault)
        self._busy.add(connection)
        try:
            ended = connection.begin(request)
            first = loop.call_at(
                began + deadlines.first_byte_ns / NS_PER_S, connection.pass_deadline, "first_byte_deadline"
            )
            total = loop.call_at(began + deadlines.total_ns / NS_PER_S, connection.pass_deadline, "total_deadline")
            connection.first_byte = first
            try:
                fault = await ended
            finally:
                first.cancel()
                total.cancel()
        finally:
            self._busy.discard(connection)
            self._release(connection)
        reader = connection.reader
        whole = fault is None and bool(reader.pieces)
        end = reader.pieces[-1][0] if whole else perf_counter_ns()
        return Exchange(sent, end, reader.status, reader.headers, reader.pieces, fault)

    async def _connection(self, deadlines: Deadlines) -> tuple[_Connection | None, str | None]:
        while self._idle:
            kept = self._idle.pop()
            if kept.open and kept.reader.reusable and perf_counter_ns() - kept.idle_since < _IDLE_NS:
                return kept, None
            kept.close()
        address = self._address
        connecting = asyncio.get_running_loop().create_connection(
            _Connection, address.host, address.port, ssl=self._context
        )
        limit = min(deadlines.connect_ns, deadlines.first_byte_ns, deadlines.total_ns)
        try:
            _, made = await asyncio.wait_for(connecting, limit / NS_PER_S)
        except TimeoutError:
            return None, "connect_deadline"
        except (OSError, UnicodeError):  # ssl.SSLError is an OSError
            return None, "connect_failed"
        return made, None

    def _release(self, connection: _Connection) -> None:
        reader = connection.reader
        if connection.open and reader.complete and reader.reusable:
            connection.idle_since = perf_counter_ns()
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close every connection, those in use included."""
        for connection in [*self._idle, *self._busy]:
            connection.close()
        self._idle.clear()
