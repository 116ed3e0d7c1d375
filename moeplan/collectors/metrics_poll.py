"""Ask sources again and again, all at one beat, until the run is over. What they answer is somebody else's to read.

A source that is slow holds up nobody: what it answers belongs to the moment it was asked, and it is asked again at the
next beat after its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from moeplan.collectors.endpoint_address import Address
from moeplan.collectors.endpoint_connection import Connections, Deadlines
from moeplan.collectors.endpoint_requests import get_bytes
from moeplan.units import NS_PER_S
from moeplan.wire.prometheus_text import MAX_METRICS_BYTES

__all__ = ["Answer", "CommandSource", "PageSource", "Poll", "Source", "poll"]

_LEAST_DEADLINE_NS = 2 * NS_PER_S
_MOST_OUTPUT = 16 << 20


@attrs.frozen
class Answer:
    """What one source said: when it was asked (nanoseconds since 1970), and the bytes; None where nothing came."""

    time_ns: int
    data: bytes | None


class Source(Protocol):
    """Something that can be asked."""

    async def ask(self, deadline_ns: int) -> bytes | None:
        """Return what it answers within the deadline, or None."""

    def close(self) -> None:
        """Let go of what it holds."""


class PageSource:
    """A page of metrics over HTTP."""

    def __init__(self, address: Address, path: str, key: str | None, context: ssl.SSLContext | None) -> None:
        """Open nothing yet."""
        self._connections = Connections(address, context)
        self._request = get_bytes(address, path, key)

    async def ask(self, deadline_ns: int) -> bytes | None:
        """Return the page, or None."""
        exchange = await self._connections.exchange(self._request, Deadlines(deadline_ns, deadline_ns, deadline_ns))
        data = b"".join(piece for _, piece in exchange.pieces)
        whole = exchange.fault is None and exchange.status == 200 and len(data) <= MAX_METRICS_BYTES
        return data if whole else None

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


class CommandSource:
    """A program that prints and ends. It is started without a shell and killed at the deadline."""

    def __init__(self, words: Sequence[str]) -> None:
        """Start nothing yet."""
        self._words = tuple(words)

    async def ask(self, deadline_ns: int) -> bytes | None:
        """Return what it prints, or None where it fails, prints too much or does not end."""
        pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(*self._words, stdin=none, stdout=pipe, stderr=none)
        except OSError:
            return None
        try:
            out, _ = await asyncio.wait_for(process.communicate(), deadline_ns / NS_PER_S)
        except TimeoutError:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        return out if process.returncode == 0 and len(out) <= _MOST_OUTPUT else None

    def close(self) -> None:
        """Nothing is held."""


@attrs.frozen
class Poll:
    """How a run is polled.

    Attributes:
        interval_ns: the beat.
        most_ns: the run's end at the latest.
        begin: told each beat's instant as it begins, nanoseconds since 1970; what is read here and now is read then.
        take: given the same instant, and the answers by the sources' numbers: those that came since the beat before.
        over: asked after each beat; True ends the run.
    """

    interval_ns: int
    most_ns: int
    begin: Callable[[int], None]
    take: Callable[[int, Mapping[int, Answer]], None]
    over: Callable[[], bool]


async def poll(sources: Sequence[Source], plan: Poll) -> None:
    """Ask the sources at each beat and hand their answers over, until the run is over.

    A source whose answer is still to come at the next beat is not asked anew; one that does not answer within its
    deadline has answered nothing. A beat that is late is not made up for. Times are of one clock, never set back.
    """
    offset = time.time_ns() - time.monotonic_ns()
    deadline = max(plan.interval_ns, _LEAST_DEADLINE_NS)
    pending: dict[asyncio.Task[Answer], int] = {}
    first = time.monotonic_ns()
    try:
        while True:
            begun = time.monotonic_ns()
            plan.begin(begun + offset)
            for number in set(range(len(sources))) - set(pending.values()):
                pending[asyncio.ensure_future(_ask(sources[number], deadline, offset))] = number
            answers = await _answers(pending, plan.interval_ns)
            plan.take(begun + offset, answers)
            spent = time.monotonic_ns()
            if plan.over() or spent - first >= plan.most_ns:
                return
            await asyncio.sleep(max(0, begun + plan.interval_ns - spent) / NS_PER_S)
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def _answers(pending: dict[asyncio.Task[Answer], int], wait_ns: int) -> dict[int, Answer]:
    """Return what is answered within a time, and take it out of what is pending."""
    if not pending:
        return {}
    done, _ = await asyncio.wait(pending, timeout=wait_ns / NS_PER_S)
    return {pending.pop(task): task.result() for task in done}


async def _ask(source: Source, deadline_ns: int, offset_ns: int) -> Answer:
    asked = time.monotonic_ns() + offset_ns
    return Answer(asked, await source.ask(deadline_ns))
