"""Send what a load plan says, and keep what was seen of every request."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from time import perf_counter_ns, process_time_ns
from typing import Any

import attrs

from moeplan.collectors.endpoint_connection import Connections, Deadlines, Exchange
from moeplan.collectors.endpoint_raw import ObservedRequest
from moeplan.collectors.load_plan import LoadPlan, PlannedRequest
from moeplan.collectors.loop_lag import LoopLag
from moeplan.collectors.stream import StreamReader
from moeplan.units import NS_PER_S

__all__ = ["ObservedTrial", "observe", "run_load"]

_PIECES_AT_ONCE = 16
"""Pieces of a body that are read before others' bytes get their turn: about a quarter of a millisecond."""
_READ_EVERY_S = 0.005
_STATUS_FAULTS = {range(300, 400): "redirect", range(100, 600): "http_status"}


@attrs.frozen
class ObservedTrial:
    """Requests in the order they ended; what the client needed. ``requests`` lacks those that were interrupted."""

    requests: tuple[ObservedRequest, ...]
    wall_ns: int
    cpu_ns: int
    lag_p99_ns: int
    interrupted: bool


async def run_load(
    plan: LoadPlan,
    bodies: Sequence[bytes],
    connections: Connections,
    deadlines: Deadlines,
    done: Callable[[int], None] = lambda _count: None,
) -> ObservedTrial:
    """Send the requests of a plan when they are due, and return when every one has ended.

    A cancellation stops at once and gives what has ended by then.

    Args:
        plan: what to send, and when.
        bodies: each request's bytes on the wire, in the plan's order.
        connections: to the endpoint.
        deadlines: of each request.
        done: told how many requests have ended, after each.
    """
    ended: list[ObservedRequest] = []
    origin, cpu = perf_counter_ns(), process_time_ns()

    unread: deque[tuple[int, int | None, Exchange]] = deque()
    count = 0

    async def send(index: int, due: int | None) -> None:
        nonlocal count
        unread.append((index, due, await connections.exchange(bodies[index], deadlines)))
        count += 1
        done(count)

    async def read() -> None:
        """Read bodies one after another, so that neither the next request nor another stream's bytes wait for it."""
        while True:
            await asyncio.sleep(0 if unread else _READ_EVERY_S)
            if unread:
                index, due, exchange = unread[0]
                ended.append(await observe(index, due, origin, plan.requests[index], exchange))
                unread.popleft()

    lag, interrupted = LoopLag(), False
    # A collection in the middle of a burst would look like a late token.
    gc.collect()
    gc.disable()
    try:
        async with lag.watching(), _running(read()):
            await (_closed if plan.schedule == "closed" else _open)(plan, origin, send)
    except asyncio.CancelledError:
        interrupted = True
    finally:
        gc.enable()
    wall = perf_counter_ns() - origin
    cpu_ns = process_time_ns() - cpu
    for index, due, exchange in unread:
        ended.append(await observe(index, due, origin, plan.requests[index], exchange))
    return ObservedTrial(tuple(ended), wall, cpu_ns, lag.p99_ns(), interrupted)


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run a coroutine without an end while the block runs."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


Send = Callable[[int, int | None], Awaitable[None]]


async def _closed(plan: LoadPlan, _origin: int, send: Send) -> None:
    waiting = iter(range(len(plan.requests)))

    async def worker() -> None:
        for index in waiting:
            await send(index, None)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(plan.concurrency or 1, len(plan.requests))):
            group.create_task(worker())


async def _open(plan: LoadPlan, origin: int, send: Send) -> None:
    room = asyncio.Semaphore(plan.concurrency or len(plan.requests))

    async def one(index: int, due: int) -> None:
        async with room:
            await send(index, due)

    async with asyncio.TaskGroup() as group:
        for index, request in enumerate(plan.requests):
            due = request.at_ns or 0
            wait = due - (perf_counter_ns() - origin)
            if wait > 0:
                await asyncio.sleep(wait / NS_PER_S)
            group.create_task(one(index, due))


async def observe(
    index: int, due: int | None, origin: int, planned: PlannedRequest, exchange: Exchange
) -> ObservedRequest:
    """Return what one exchange shows; the body is read in slices, so that other streams' bytes are stamped in time."""
    sent = exchange.sent_ns - origin
    seen = ObservedRequest(
        index=index,
        due=sent if due is None else min(due, sent),
        sent=sent,
        end=exchange.end_ns - origin,
        asked_input=planned.input_tokens,
        asked_output=planned.output_tokens,
        status=exchange.status,
        fault=head_fault(exchange),
        retry_after_s=_retry_after(exchange.headers),
    )
    if exchange.status != 200 or (seen.fault is not None and not exchange.pieces):
        return seen
    if seen.fault in ("content_encoding", "not_event_stream"):
        return seen
    reader = StreamReader()
    for place, (now, piece) in enumerate(exchange.pieces, 1):
        reader.feed(piece, now - origin)
        if place % _PIECES_AT_ONCE == 0:
            await asyncio.sleep(0)
    return attrs.evolve(
        seen,
        chunks=tuple(reader.chunks),
        empty=reader.empty,
        prompt_tokens=reader.prompt_tokens,
        completion_tokens=reader.completion_tokens,
        finish=reader.finish,
        fault=reader.fault or seen.fault,
        contradicted=reader.usage_contradicts,
        done_marks=reader.done_marks,
    )


def head_fault(exchange: Exchange) -> str | None:
    """Return what is wrong with a response apart from its events, or None."""
    status = exchange.status
    if status is not None and status != 200:
        return next(code for span, code in _STATUS_FAULTS.items() if status in span)
    if status == 200 and exchange.headers.get("content-encoding", "identity").lower() != "identity":
        return "content_encoding"
    if status == 200 and not exchange.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return "not_event_stream"
    return exchange.fault


def _retry_after(headers: dict[str, str]) -> int | None:
    value = headers.get("retry-after", "")
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None
