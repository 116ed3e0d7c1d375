"""How late an event loop wakes up: what a client adds to the times it measures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import perf_counter_ns

from moeplan.units import NS_PER_S, ceil_div

__all__ = ["LoopLag"]

_EVERY_NS = 10_000_000


class LoopLag:
    """Samples a hundred times a second how late the loop was. An idle loop is up to 1 ms late: epoll counts in ms."""

    def __init__(self) -> None:
        """Begin without samples."""
        self._late: list[int] = []

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Sample while the block runs."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        while True:
            due = perf_counter_ns() + _EVERY_NS
            await asyncio.sleep(_EVERY_NS / NS_PER_S)
            self._late.append(max(perf_counter_ns() - due, 0))

    def p99_ns(self) -> int:
        """Return the 99th percentile by nearest rank; 0 without samples."""
        if not self._late:
            return 0
        return sorted(self._late)[ceil_div(len(self._late) * 99, 100) - 1]
