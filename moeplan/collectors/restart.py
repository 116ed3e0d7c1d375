"""One worker fails under load: requests at a steady rate, the worker's health, the fault, and the way back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter_ns

import attrs

from moeplan.collectors.endpoint_address import Address, parse_address
from moeplan.collectors.endpoint_connection import Connections, Deadlines
from moeplan.collectors.endpoint_raw import ObservedRequest
from moeplan.collectors.endpoint_requests import get_bytes
from moeplan.collectors.endpoint_target import Target, tls_context
from moeplan.collectors.endpoint_trial import observe
from moeplan.collectors.load_plan import PlannedRequest
from moeplan.collectors.restart_fault import Fault, Restart
from moeplan.collectors.restart_raw import RestartEvent, RestartObserved
from moeplan.units import NS_PER_MS, NS_PER_S

__all__ = ["PROMPT", "RestartPlan", "observe_restart"]

PROMPT = "Write down the numbers from one to one hundred in words, one a line."
_HEALTHY = 200
_HEALTH_EVERY_NS = 50 * NS_PER_MS
_HEALTH_LIMITS = Deadlines(2 * NS_PER_S, 2 * NS_PER_S, 2 * NS_PER_S)
_SAY_EVERY_NS = 5 * NS_PER_S


@attrs.frozen
class RestartPlan:
    """What is to happen.

    Attributes:
        fault: how the worker is made to fail.
        restart: how it is started again; None where something else does that.
        period_ns: time between two requests, whatever becomes of them.
        output_tokens: tokens each asks for.
        before_ns: load before the fault.
        after_ns: load after the worker is ready again.
        deadline_ns: the most time from the fault to ready again.
        request_deadline_ns: the most time of one request.
        health: where the worker says whether it is well; None takes ``/health`` of the endpoint.
        ca_file: certificates that an https address of health is checked with; None takes the system's.
    """

    fault: Fault
    restart: Restart | None = None
    period_ns: int = NS_PER_S // 4
    output_tokens: int = 32
    before_ns: int = 10 * NS_PER_S
    after_ns: int = 10 * NS_PER_S
    deadline_ns: int = 600 * NS_PER_S
    request_deadline_ns: int = 60 * NS_PER_S
    health: str | None = None
    ca_file: str | None = None


async def observe_restart(
    target: Target, plan: RestartPlan, say: Callable[[str], None] = lambda _text: None
) -> RestartObserved:
    """Make the worker fail under load, and return what was seen.

    A cancellation stops the load at once and gives what has been seen by then. It does not undo the fault.

    Raises:
        InputError: the fault cannot be injected, or the restart's command not be started.
    """
    return await _Observation(target, plan, say).run()


class _Observation:
    def __init__(self, target: Target, plan: RestartPlan, say: Callable[[str], None]) -> None:
        self._target, self._plan, self._say = target, plan, say
        self._where, self._path = _health_of(target, plan)
        self._origin = perf_counter_ns()
        self._started = time.time_ns()
        self._requests: list[ObservedRequest] = []
        self._sent = 0
        self._events: list[RestartEvent] = []
        self._health = 0
        self._failed = self._ready = False
        self._changed = asyncio.Event()
        self._in_flight: set[asyncio.Task[None]] = set()

    async def run(self) -> RestartObserved:
        connections = Connections(self._where, tls_context(self._where, self._plan.ca_file))
        background = [
            asyncio.create_task(self._load()),
            asyncio.create_task(self._watch(connections)),
            asyncio.create_task(self._tell()),
        ]
        steps = asyncio.create_task(self._steps())
        interrupted = False
        try:
            # A load or a watch that breaks must not leave the steps waiting.
            await asyncio.wait([steps, *background], return_when=asyncio.FIRST_COMPLETED)
            if not steps.done():
                for task in background:
                    if task.done():
                        task.result()
            await steps
            await self._drained(background[0])
        except asyncio.CancelledError:
            interrupted = True
        finally:
            for task in (steps, *background, *self._in_flight):
                task.cancel()
            await asyncio.gather(steps, *background, *self._in_flight, return_exceptions=True)
            connections.close()
            self._plan.fault.close()
        return self._observed(interrupted)

    def _observed(self, interrupted: bool) -> RestartObserved:
        requests = sorted(self._requests, key=lambda row: row.index)
        # Requests that were interrupted leave no row, so the rest are numbered anew.
        numbered = tuple(attrs.evolve(row, index=number) for number, row in enumerate(requests))
        events = tuple(sorted(self._events, key=lambda event: event.time))
        last = max([self._now(), *(row.end for row in numbered)])
        return RestartObserved(self._started, last, numbered, events, interrupted)

    def _now(self) -> int:
        return perf_counter_ns() - self._origin

    def _add(self, event: str, value: int = 1) -> None:
        self._events.append(RestartEvent(event, self._now(), value))

    async def _steps(self) -> None:
        plan = self._plan
        await asyncio.sleep(plan.before_ns / NS_PER_S)
        self._say(plan.fault.described)
        watching = asyncio.create_task(self._exit())
        began = self._now()
        try:
            self._failed = self._ready = False
            self._add("fault_injected")
            await plan.fault.inject()
            if plan.restart is not None:
                await asyncio.sleep(plan.restart.after_ns / NS_PER_S)
                plan.restart.start()
                self._add("process_started")
            left = plan.deadline_ns - (self._now() - began)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._back(), max(left, 1) / NS_PER_S)
        finally:
            watching.cancel()

    async def _exit(self) -> None:
        await self._plan.fault.exited()
        self._add("process_exited")

    async def _back(self) -> None:
        """Return when the worker has been well for long enough after it was not."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if not self._ready:
                continue
            self._say("ready again")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._unwell(), self._plan.after_ns / NS_PER_S)
            if self._ready:
                return

    async def _unwell(self) -> None:
        while self._ready:
            await self._changed.wait()
            self._changed.clear()

    async def _watch(self, connections: Connections) -> None:
        """Ask for the worker's health twenty times a second, and keep each answer that differs from the one before."""
        request = get_bytes(self._where, self._path, self._key())
        last: int | None = None
        while True:
            due = perf_counter_ns() + _HEALTH_EVERY_NS
            exchange = await connections.exchange(request, _HEALTH_LIMITS)
            self._health = exchange.status or 0 if exchange.fault is None else 0
            if self._health != last:
                self._add("health_status", self._health)
                last = self._health
            self._note_health()
            await asyncio.sleep(max(due - perf_counter_ns(), NS_PER_MS) / NS_PER_S)

    def _note_health(self) -> None:
        injected = any(event.event == "fault_injected" for event in self._events)
        well = self._health == _HEALTHY
        self._failed = self._failed or (injected and not well)
        ready = self._failed and well
        if ready != self._ready:
            self._ready = ready
            self._changed.set()

    def _key(self) -> str | None:
        return self._target.key if self._where.origin == self._target.address.origin else None

    async def _load(self) -> None:
        """Send a request each period, open loop: what is slow or gone does not slow the sending down."""
        request = self._target.request(PROMPT, self._plan.output_tokens)
        while True:
            due = self._sent * self._plan.period_ns
            await asyncio.sleep(max(due - self._now(), 0) / NS_PER_S)
            task = asyncio.create_task(self._send(self._sent, due, request))
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)
            self._sent += 1

    async def _send(self, index: int, due: int, request: bytes) -> None:
        limit = self._plan.request_deadline_ns
        exchange = await self._target.connections.exchange(request, Deadlines(limit, limit, limit))
        planned = PlannedRequest(due, (("prompt", 1),), self._plan.output_tokens)
        self._requests.append(await observe(index, due, self._origin, planned, exchange))

    async def _drained(self, load: asyncio.Task[None]) -> None:
        """Stop sending and wait for what was sent, which its own deadlines end."""
        load.cancel()
        while self._in_flight:
            await asyncio.wait(self._in_flight)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_SAY_EVERY_NS / NS_PER_S)
            good = sum(row.fault is None for row in self._requests)
            ended = len(self._requests)
            seconds = self._now() // NS_PER_S
            health = str(self._health) if self._health else "no answer"
            self._say(f"{seconds} s: {self._sent} sent, {good} ended well, {ended - good} not; health: {health}")


def _health_of(target: Target, plan: RestartPlan) -> tuple[Address, str]:
    if plan.health is None:
        return target.address, "/health"
    where = parse_address(plan.health, "--health-url")
    return where, "" if where.path else "/health"
