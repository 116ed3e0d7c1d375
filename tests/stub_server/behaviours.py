"""What the stub does with one request: one coroutine a behaviour, by name."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from time import perf_counter_ns
from typing import Any

__all__ = ["BEHAVIOURS", "Behaviour", "Reply"]

FOREVER = 3600.0
SECRET_ANSWER = "SECRET-ANSWER-7731"


class Reply:
    """What a behaviour writes with: the request, the connection, and the engine's counters."""

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        asked: dict[str, Any],
        chat: bool,
        pace_s: float,
        count: Callable[[int, int], None],
    ) -> None:
        self.writer, self.asked, self.chat, self.pace_s, self._count = writer, asked, chat, pace_s, count
        self.wanted = int(asked.get("max_tokens", 16))
        self.prompt_tokens = prompt_size(asked)
        self.continuous = bool(asked.get("stream_options", {}).get("continuous_usage_stats"))
        self.written_ns: list[int] = []

    def count(self, generated: int) -> None:
        """Have the engine count a request."""
        self._count(self.prompt_tokens, generated)

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status: str = "200 OK", kind: str = "text/event-stream", **more: str) -> None:
        headers = {
            "Content-Type": kind,
            "Transfer-Encoding": "chunked",
            **{k.replace("_", "-"): v for k, v in more.items()},
        }
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def piece(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.written_ns.append(perf_counter_ns())
        await self.writer.drain()

    async def event(self, value: Any) -> None:
        await self.piece(b"data: " + json.dumps(value).encode() + b"\n\n")

    async def token(
        self, done: int, text: str = f"{SECRET_ANSWER} ", finish: str | None = None, usage: bool = True
    ) -> None:
        delta: dict[str, Any] = {"delta": {"content": text}} if self.chat else {"text": text}
        event: dict[str, Any] = {"choices": [{"index": 0, "finish_reason": finish, **delta}]}
        if self.continuous and usage:
            event["usage"] = self.usage(done)
        await self.event(event)

    def usage(self, generated: int) -> dict[str, int]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": generated,
            "total_tokens": self.prompt_tokens + generated,
        }

    async def tokens(self, upto: int, *, first: int = 1, usage: bool = True) -> None:
        for number in range(first, upto + 1):
            await asyncio.sleep(self.pace_s)
            await self.token(number, finish="length" if number == self.wanted else None, usage=usage)

    async def done(self) -> None:
        await self.piece(b"data: [DONE]\n\n")

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def whole(self) -> None:
        """Answer as an engine does, up to the end of the response."""
        await self.head()
        await self.tokens(self.wanted)
        await self.event({"choices": [], "usage": self.usage(self.wanted)})
        await self.done()
        await self.end()


def prompt_size(asked: dict[str, Any]) -> int:
    """Return how many words or ids a prompt has."""
    prompt = asked.get("prompt") if "prompt" in asked else asked.get("messages", [{}])[-1].get("content", "")
    return len(prompt.split()) if isinstance(prompt, str) else len(prompt or [])


Behaviour = Callable[[Reply], Awaitable[None]]


async def ok(reply: Reply) -> None:
    reply.count(reply.wanted)
    await reply.whole()


async def cached(reply: Reply) -> None:
    await reply.whole()  # the engine never hears of it


async def hang_before_headers(_reply: Reply) -> None:
    await asyncio.sleep(FOREVER)


async def drip_headers(reply: Reply) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" * 50:
        await reply.raw(bytes([byte]))
        await asyncio.sleep(0.05)


async def hang_mid_stream(reply: Reply) -> None:
    await reply.head()
    await reply.tokens(2)
    await asyncio.sleep(FOREVER)


async def slow_drip(reply: Reply) -> None:
    await reply.head()
    for number in range(1, 1000):
        await reply.token(number)
        await asyncio.sleep(0.2)


async def stream_error(reply: Reply) -> None:
    await reply.head()
    await reply.tokens(2)
    await reply.event(
        {"error": {"message": "EngineCore encountered an issue", "type": "InternalServerError", "code": 500}}
    )
    await reply.done()
    await reply.end()


async def reset(reply: Reply) -> None:
    await reply.head()
    await reply.tokens(2)
    connection = reply.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing then resets
    transport = reply.writer.transport
    assert isinstance(transport, asyncio.WriteTransport)
    transport.abort()


async def early_end(reply: Reply) -> None:
    await reply.head()
    await reply.tokens(2)
    await reply.close()


async def short_stream(reply: Reply) -> None:
    await reply.head()
    await reply.tokens(reply.wanted - 2)
    await reply.event({"choices": [], "usage": reply.usage(reply.wanted - 2)})
    await reply.done()
    await reply.end()


async def empty_chunks(reply: Reply) -> None:
    reply.count(reply.wanted)
    await reply.head()
    for number in range(1, reply.wanted + 1):
        await reply.token(number - 1, text="")
        await reply.token(number, finish="length" if number == reply.wanted else None)
    await reply.event({"choices": [], "usage": reply.usage(reply.wanted)})
    await reply.done()
    await reply.end()


async def several_tokens(reply: Reply) -> None:
    reply.count(reply.wanted)
    await reply.head()
    for number in range(2, reply.wanted + 1, 2):
        await asyncio.sleep(reply.pace_s)
        await reply.token(number, finish="length" if number == reply.wanted else None)
    await reply.event({"choices": [], "usage": reply.usage(reply.wanted)})
    await reply.done()
    await reply.end()


async def no_usage(reply: Reply) -> None:
    reply.count(reply.wanted)
    await reply.head()
    await reply.tokens(reply.wanted, usage=False)
    await reply.done()
    await reply.end()


async def wrong_usage(reply: Reply) -> None:
    reply.count(reply.wanted)
    await reply.head()
    await reply.tokens(reply.wanted, usage=False)
    await reply.event({"choices": [], "usage": reply.usage(2)})
    await reply.done()
    await reply.end()


async def negative_usage(reply: Reply) -> None:
    await reply.head()
    await reply.tokens(reply.wanted, usage=False)
    await reply.event({"choices": [], "usage": reply.usage(-1)})
    await reply.done()
    await reply.end()


async def two_done(reply: Reply) -> None:
    reply.count(reply.wanted)
    await reply.head()
    await reply.tokens(reply.wanted)
    await reply.event({"choices": [], "usage": reply.usage(reply.wanted)})
    await reply.piece(b"data: [DONE]\n\ndata: [DONE]\n\n")
    await reply.end()


async def data_after_done(reply: Reply) -> None:
    await reply.head()
    await reply.tokens(reply.wanted)
    await reply.event({"choices": [], "usage": reply.usage(reply.wanted)})
    await reply.piece(b'data: [DONE]\n\ndata: {"choices": [{"text": "more"}]}\n\n')
    await reply.end()


async def hang_after_done(reply: Reply) -> None:
    reply.count(reply.wanted)
    await reply.head()
    await reply.tokens(reply.wanted)
    await reply.event({"choices": [], "usage": reply.usage(reply.wanted)})
    await reply.done()
    await asyncio.sleep(FOREVER)


async def huge_line(reply: Reply) -> None:
    await reply.head()
    with suppress(ConnectionError):
        for _ in range(40):
            await reply.piece(b"data: " + b"x" * (1 << 16))
    await asyncio.sleep(FOREVER)


async def invalid_utf8(reply: Reply) -> None:
    await reply.head()
    await reply.piece(b'data: {"choices": [{"text": "\xff\xfe"}]}\n\n')
    await reply.done()
    await reply.end()


async def malformed_json(reply: Reply) -> None:
    await reply.head()
    await reply.piece(b'data: {"choices": [\n\n')
    await reply.done()
    await reply.end()


async def redirect(reply: Reply) -> None:
    await reply.head("307 Temporary Redirect", Location="http://127.0.0.1:9/elsewhere")
    await reply.end()


async def gzipped(reply: Reply) -> None:
    await reply.head(Content_Encoding="gzip")
    await reply.piece(gzip.compress(b'data: {"choices": []}\n\ndata: [DONE]\n\n'))
    await reply.end()


async def too_many(reply: Reply) -> None:
    await reply.head("429 Too Many Requests", "application/json", Retry_After="7")
    await reply.event({"error": "slow down"})
    await reply.end()


async def unavailable(reply: Reply) -> None:
    await reply.head("503 Service Unavailable", "application/json")
    await reply.end()


async def not_a_stream(reply: Reply) -> None:
    await reply.head(kind="text/html")
    await reply.piece(b"<html>welcome</html>")
    await reply.end()


async def not_http(reply: Reply) -> None:
    await reply.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    await asyncio.sleep(FOREVER)


async def bad_chunk_size(reply: Reply) -> None:
    await reply.head()
    await reply.raw(b"zz\r\nabc\r\n")
    await asyncio.sleep(FOREVER)


async def split_bytes(reply: Reply) -> None:
    """All is right, in pieces of one byte, with CRLF, comments and a chunk extension."""
    reply.count(reply.wanted)
    await reply.head()
    usage = json.dumps({"choices": [], "usage": reply.usage(reply.wanted)})
    text = json.dumps(
        {"choices": [{"text": "é", "delta": {"content": "é"}, "finish_reason": "length"}]}, ensure_ascii=False
    )
    for byte in f": ping\r\n\r\ndata: {text}\r\n\r\ndata: {usage}\r\n\r\ndata: [DONE]\r\n\r\n".encode():
        await reply.raw(b"1;x=y\r\n" + bytes([byte]) + b"\r\n")
    await reply.end()


async def until_close(reply: Reply) -> None:
    """All is right, but that the end of the connection alone ends the body."""
    reply.count(reply.wanted)
    await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    for number in range(1, reply.wanted + 1):
        event = {"choices": [{"text": "a", "finish_reason": "length" if number == reply.wanted else None}]}
        await reply.raw(b"data: " + json.dumps(event).encode() + b"\n\n")
    await reply.raw(b"data: " + json.dumps({"choices": [], "usage": reply.usage(reply.wanted)}).encode() + b"\n\n")
    await reply.close()


def _all() -> Iterator[tuple[str, Behaviour]]:
    for behaviour in (
        ok, cached, hang_before_headers, drip_headers, hang_mid_stream, slow_drip, stream_error, reset, early_end,
        short_stream, empty_chunks, several_tokens, no_usage, wrong_usage, negative_usage, two_done, data_after_done,
        hang_after_done, huge_line, invalid_utf8, malformed_json, redirect, gzipped, too_many, unavailable,
        not_a_stream, not_http, bad_chunk_size, split_bytes, until_close,
    ):  # fmt: skip
        yield behaviour.__name__, behaviour


BEHAVIOURS = dict(_all())
