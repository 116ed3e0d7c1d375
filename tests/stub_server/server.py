"""The stub server: one asyncio loop in a thread or in a process of its own, and an engine's counters."""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tests.stub_server.behaviours import BEHAVIOURS, Reply, prompt_size

__all__ = ["Stub", "serving"]


class Stub:
    """Answers generation requests by the behaviours in turn (the last one goes on), and an engine's other pages.

    Attributes:
        requests, prompt_tokens, generation_tokens: what the engine counted.
        bodies: every generation request's body; heads: the head of every request.
        not_ready: how many requests for the models are answered with 503 first.
        on_request: called as each generation request comes in.
    """

    def __init__(self, behaviours: Sequence[str] = ("ok",), pace_s: float = 0.001, not_ready: int = 0) -> None:
        self.behaviours, self.pace_s, self.not_ready = tuple(behaviours), pace_s, not_ready
        self.requests = self.prompt_tokens = self.generation_tokens = 0
        self.started = "1.7960597343e+09"
        self.bodies: list[dict[str, Any]] = []
        self.heads: list[bytes] = []
        self.written: list[list[int]] = []
        self.by_prompt: dict[str, list[int]] = {}
        self.port = 0
        self.context: ssl.SSLContext | None = None
        self.token_factor = 1
        self.extra_metrics = ""
        self.on_request: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def count(self, prompt: int, generated: int) -> None:
        self.requests += 1
        self.prompt_tokens += prompt
        self.generation_tokens += generated

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=1 << 24, ssl=self.context)
        self.port = server.sockets[0].getsockname()[1]
        return server

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A cancelled connection would be logged as a defect of asyncio's.
        with suppress(ConnectionError, asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.split(b"\r\n")
                        if line.lower().startswith(b"content-length:")
                    ),
                    0,
                )
                body = await reader.readexactly(length)
                path = head.split(b" ")[1].decode()
                if path.endswith("/completions"):
                    await self._generate(path, json.loads(body), writer)
                else:
                    await self._page(path, body, writer)
        writer.close()

    async def _generate(self, path: str, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.on_request()
        number = len(self.bodies)
        self.bodies.append(asked)
        name = self.behaviours[min(number, len(self.behaviours) - 1)]
        reply = Reply(writer, asked, "chat" in path, self.pace_s, self.count)
        await BEHAVIOURS[name](reply)
        self.written.append(reply.written_ns)
        prompt = asked.get("prompt") or asked["messages"][-1]["content"]
        self.by_prompt[json.dumps(prompt)] = reply.written_ns

    async def _page(self, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        status, kind, content = "200 OK", "application/json", b"{}"
        if path == "/v1/models":
            content = json.dumps({"data": [{"id": "/home/SECRET-USER-11/models/stub"}]}).encode()
            if self.not_ready > 0:
                self.not_ready -= 1
                status = "503 Service Unavailable"
        elif path == "/metrics":
            kind, content = "text/plain", self.metrics().encode()
        elif path == "/tokenize":
            content = json.dumps({"count": prompt_size(json.loads(body)) * self.token_factor}).encode()
        elif path == "/written":
            content = json.dumps(self.by_prompt).encode()
        else:
            status = "404 Not Found"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        await writer.drain()

    def metrics(self) -> str:
        label = '{engine="0",model_name="/home/SECRET-USER-11/models/stub"'
        return (
            f"process_start_time_seconds {self.started}\n"
            f'vllm:request_success_total{label},finished_reason="length"}} {self.requests}\n'
            f"vllm:prompt_tokens_total{label}}} {self.prompt_tokens}\n"
            f"vllm:prompt_tokens_cached_total{label}}} 0\n"
            f"vllm:generation_tokens_total{label}}} {self.generation_tokens}\n"
            f'vllm:cache_config_info{label},path="SECRET-HOST-42.internal"}} 1\n{self.extra_metrics}'
        )

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stopping is not None
        self._loop.call_soon_threadsafe(self._stopping.set)

    def run(self, ready: threading.Event) -> None:
        asyncio.run(self._until_stopped(ready))

    async def _until_stopped(self, ready: threading.Event) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        server = await self.serve()
        ready.set()
        await self._stopping.wait()
        server.close()


@contextmanager
def serving(*behaviours: str, context: ssl.SSLContext | None = None, **more: Any) -> Iterator[Stub]:
    """Serve in a thread while the block runs; with a context, over TLS."""
    stub = Stub(behaviours or ("ok",), **more)
    stub.context = context
    ready = threading.Event()
    thread = threading.Thread(target=stub.run, args=(ready,), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield stub
    finally:
        stub.stop()
        thread.join(10)


def main() -> None:
    """Serve until the process is ended; the first line on stdout is the URL."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pace-ms", type=float, default=10)
    stub = Stub(pace_s=parser.parse_args().pace_ms / 1000)

    async def serve() -> None:
        server = await stub.serve()
        print(stub.url, flush=True)
        await server.serve_forever()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
