"""Observations of ``routing_health`` and ``economics_resilience``: as they should be, and as they fall short."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from moeplan.model.verified import VerifiedRecord
from tests.build import AT
from tests.unit.evaluation.economics_cases import EVENTS, SERVED, make_failure, make_price
from tests.unit.evaluation.routing_cases import (
    ALL_RANKS,
    COUNTERS,
    INTERVALS,
    ONE_RANK,
    make_counts,
    make_layers,
    make_trace,
)

__all__ = ["LAST_GATES", "SOUND_LAST_GATES"]

LAST_GATES: dict[str, Callable[..., VerifiedRecord]] = {
    "counts": make_counts,
    "counts_other": lambda plan, **record: make_counts(plan, [{0: [250] * 4, 1: [0, 0, 500, 500]}], **record),
    "counts_open": lambda plan, **record: make_counts(plan, counters=attrs.evolve(COUNTERS, requests=3), **record),
    "counts_alone": lambda plan, **record: make_counts(plan, counters=None, **record),
    "counts_one_layer": lambda plan, **record: make_counts(
        plan, [{0: parts[0]} for parts in INTERVALS], layers=make_layers(1), **record
    ),
    "counts_silent": lambda plan, **record: make_counts(
        plan, layers=make_layers(dropped_tokens=None, dropped_basis=None), **record
    ),
    "counts_late": lambda plan, **record: make_counts(plan, start=AT, **record),
    "trace": lambda plan, **record: make_trace(plan, ALL_RANKS, 8, **record),
    "trace_part": lambda plan, **record: make_trace(plan, ONE_RANK, 2, **record),
    "trace_empty": lambda plan, **record: make_trace(plan, (), **record),
    "price": make_price,
    "price_dear": lambda plan, **record: make_price(plan, micros=10**15, **record),
    "price_foreign": lambda plan, **record: make_price(plan, currency="EUR", **record),
    "price_few": lambda plan, **record: make_price(plan, accelerators=1, **record),
    "failure": make_failure,
    "failure_served": lambda plan, **record: make_failure(plan, SERVED, **record),
    "failure_open": lambda plan, **record: make_failure(plan, events=EVENTS[:-1], **record),
    "failure_late": lambda plan, **record: make_failure(plan, start=AT, **record),
}
"""Each makes a record for a plan; keywords are those of ``make_observation``."""

SOUND_LAST_GATES = ("counts", "trace", "price", "failure")
"""What the two gates need."""
