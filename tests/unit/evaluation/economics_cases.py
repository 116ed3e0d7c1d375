"""Cases of ``economics_resilience``: a price and a failure's timeline beside the trials, one thing spoilt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moeplan.model.observations import FailureTimeline, MemoryDevice, MemorySeries, Price
from moeplan.model.plan import Objectives, Plan
from moeplan.model.verified import VerifiedRecord
from tests.build import (
    OUTPUT_TOKENS,
    TRIAL_START,
    Case,
    Request,
    build_plan,
    case_of,
    make_evidence,
    make_tables,
    make_trial,
)
from tests.build_observations import make_observation, make_series
from tests.unit.evaluation.routing_cases import case_with

S = 10**9
FAULT = 10 * S
READY = 40 * S + 1
"""The worker is made to fail after 10 s and is ready a nanosecond more than 30 s later."""

Event = tuple[int, str, int, str]
"""Time in ns, metric, value, unit."""
EVENTS: tuple[Event, ...] = (
    (S, "health_status", 200, "http_status"),
    (FAULT, "fault_injected", 1, "count"),
    (FAULT + S // 10, "health_status", 503, "http_status"),
    (FAULT + S // 5, "process_exited", 1, "count"),
    (FAULT + S // 2, "health_status", 0, "http_status"),
    (12 * S, "process_started", 1, "count"),
    (READY, "health_status", 200, "http_status"),
)


def request(start_s: int, end_s: int, outcome: str = "complete") -> Request:
    """Return a request of whole seconds."""
    return Request(start_s * S, ttft_ns=0, gaps=(), end_ns=end_s * S, outcome=outcome)


SENT = (
    request(1, 2),
    request(5, 9),
    request(8, 11, "error"),
    request(20, 20, "error"),
    request(41, 43),
    request(42, 44),
)
"""The last to complete before the fault ends at 9 s, the first after it at 43 s; two are lost."""
SERVED = (request(1, 2), request(5, 9), request(11, 13), request(30, 39), request(41, 43))
"""As where other workers go on: nothing lost, the longest gap from 13 s to 39 s."""


def make_price(
    plan: Plan, *, micros: int = 2_500_000, currency: str = "USD", accelerators: int = 8, **record: Any
) -> VerifiedRecord:
    """Return a verified record of a price."""
    price = Price(
        currency=currency,
        micros_per_accelerator_hour=micros,
        accelerators=accelerators,
        dated="2026-02-01",
        source="a list",
    )
    return make_observation(plan, price, engine_start=None, **record)


def make_failure(
    plan: Plan, sent: Sequence[Request] = SENT, events: Sequence[Event] = EVENTS, **record: Any
) -> VerifiedRecord:
    """Return a verified record of a failure's timeline."""
    ordered = sorted(sent, key=lambda item: item.start_ns)
    table = make_series([(time, "worker-0", metric, value, unit) for time, metric, value, unit in events])
    requests, _gaps = make_tables(ordered)
    payload = FailureTimeline(
        fault="kill",
        target="worker-0",
        requested_output_tokens=OUTPUT_TOKENS,
        duration_ns=60 * S,
        request_count=len(ordered),
        row_count=len(table),
    )
    return make_observation(plan, payload, requests=requests, series=table, **record)


def failed(sent: Sequence[Request] = SENT, events: Sequence[Event] = EVENTS, *, plan: Plan | None = None) -> Case:
    """Return a case with one failure's timeline."""
    wanted = build_plan() if plan is None else plan
    return case_with(make_failure(wanted, sent, events), plan=plan)


def priced(*prices: VerifiedRecord) -> Case:
    """Return a case with three trials and prices."""
    return case_with(*(prices or (make_price(build_plan()),)))


def tokenless() -> Case:
    """Return a case with a price whose trials have no tokens that the server counted."""
    plan = build_plan()
    case = case_of(plan, lambda made, number: make_trial(made, number, [Request(0, usage=0)]))
    records = (*case.evidence.records, make_price(plan))
    return case.but(evidence=make_evidence(records, case.evidence.runs, case.evidence.checkpoint)).but_policy(
        waivers=()
    )


def unmeasured() -> Case:
    """Return a case whose plan asks for energy, and whose record of memory holds none."""
    plan = build_plan(objectives=Objectives(energy_millijoules_per_token_at_most=1))
    devices = tuple(MemoryDevice(f"gpu-{number}", "accelerator", None) for number in range(8))
    payload = MemorySeries(poll_interval_ns=S, phases=(), devices=devices, row_count=0)
    memory = make_observation(plan, payload, start=TRIAL_START, seconds=7200, series=make_series([]))
    case = case_of(plan)
    records = (*case.evidence.records, memory)
    return case.but(evidence=make_evidence(records, case.evidence.runs, case.evidence.checkpoint))


ECONOMICS_REASONS: dict[str, tuple[Callable[[], Case], str, str]] = {
    "accelerators_unpriced": (
        lambda: priced(make_price(build_plan(), accelerators=7)),
        "economics.cost",
        "inconclusive",
    ),
    "currencies_differ": (
        lambda: priced(make_price(build_plan()), make_price(build_plan(), currency="EUR")),
        "economics.cost",
        "inconclusive",
    ),
    "power_not_measured": (unmeasured, "economics.energy", "inconclusive"),
    "timeline_incomplete": (lambda: failed(events=EVENTS[:-1]), "resilience.restart", "inconclusive"),
}
"""A case for each reason of the gate, the criterion that has it, and its outcome."""
