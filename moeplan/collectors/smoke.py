"""One question with a deadline: does the endpoint answer, in time, to its end? An engine that hangs fails here."""

from __future__ import annotations

import time

import attrs

from moeplan.collectors.endpoint_connection import Deadlines
from moeplan.collectors.endpoint_metrics import settled_page
from moeplan.collectors.endpoint_raw import ObservedRequest
from moeplan.collectors.endpoint_target import Target
from moeplan.collectors.endpoint_trial import observe
from moeplan.collectors.load_plan import PlannedRequest
from moeplan.model.observations import Smoke
from moeplan.units import NS_PER_S
from moeplan.wire.prometheus_text import parse_exposition

__all__ = ["QUESTION", "Asked", "ask", "smoke_of"]

QUESTION = "Write down the numbers from one to four hundred in words, one a line."
"""Long enough that an engine which loses itself has the room to; what it answers is not looked at."""

_START = "process_start_time_seconds"
_LATE = ("total_deadline", "first_byte_deadline", "connect_deadline")


@attrs.frozen
class Asked:
    """What became of the question: the record's payload, when it was asked, and the engine's start where it is told."""

    smoke: Smoke
    first_ns: int
    last_ns: int
    engine_start_s: int | None
    fault: str | None


async def ask(target: Target, deadline_ns: int, output_tokens: int) -> Asked:
    """Ask the question; one deadline holds for everything."""
    first = time.time_ns()
    deadlines = Deadlines(deadline_ns, deadline_ns, deadline_ns)
    exchange = await target.connections.exchange(target.request(QUESTION, output_tokens), deadlines)
    planned = PlannedRequest(None, (("question", 1),), output_tokens)
    seen = await observe(0, None, exchange.sent_ns, planned, exchange)
    last = time.time_ns()
    smoke = smoke_of(seen, deadline_ns, output_tokens)
    return Asked(smoke, first, last, await _engine_start(target), seen.fault)


def smoke_of(seen: ObservedRequest, deadline_ns: int, output_tokens: int) -> Smoke:
    """Return the record's payload of one observed request."""
    if seen.fault in _LATE:
        outcome = "late"
    else:
        whole = seen.fault is None and seen.finish in ("stop", "length") and bool(seen.chunks)
        outcome = "answered" if whole else "error"
    counted = None if seen.contradicted else seen.completion_tokens
    return Smoke(
        outcome=outcome,
        deadline_ns=deadline_ns,
        elapsed_ns=seen.end - seen.sent,
        http_status=seen.status,
        finish_reason=seen.finish,
        requested_output_tokens=output_tokens,
        output_tokens=counted,
    )


async def _engine_start(target: Target) -> int | None:
    page = await settled_page(target.page)
    if page is None:
        return None
    from decimal import Decimal

    texts = [sample.value for sample in parse_exposition(page) if sample.name == _START]
    if not texts:
        return None
    started = Decimal(texts[0])
    return int(started) if started.is_finite() and 0 <= started * NS_PER_S < 2**63 else None
