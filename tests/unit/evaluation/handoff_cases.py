"""Cases of the hand-over: a decode process whose counters grow by what prefill handed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moeplan.model.memory_metrics import EXTERNAL_HITS, PROMPT_TOKENS, PROMPT_TOKENS_COMPUTED, ROLE
from moeplan.model.observations import MemoryDevice, MemorySeries
from moeplan.model.plan import Plan
from moeplan.model.series import SeriesTable
from moeplan.model.verified import VerifiedRecord
from tests.build import NODE, Case, build_plan, make_evidence, make_policy, make_run, make_trial, with_criterion
from tests.build_observations import make_observation, make_series

__all__ = ["COMPUTED", "HANDED_OVER", "HANDOFF_REASONS", "Grown", "counters", "decode_case", "make_decode"]

S = 10**9
HANDED_OVER, COMPUTED = "sla.failed_requests", "sla.concurrency"
"""Criteria of the plan that are turned into those of the hand-over."""
Grown = tuple[int, int, int]
"""Prompt tokens, external hits and computed tokens at one moment."""


def plan_of_decode() -> Plan:
    """Return a plan that asks for the hand-over, as a plugin's criteria do."""
    share: dict[str, Any] = {"unit": "basis_points", "evidence_types": ("memory_series",), "min_binding": "declared"}
    plan = with_criterion(
        build_plan(),
        HANDED_OVER,
        metric="external_prefix_cache_hit_basis_points",
        comparator="ge",
        limit=9800,
        **share,
    )
    return with_criterion(
        plan, COMPUTED, metric="decode_prompt_tokens_computed_basis_points", comparator="le", limit=200, **share
    )


def counters(subject: str, moments: Sequence[Grown], role: str = "decode") -> list[tuple[int, str, str, int, str, str]]:
    """Return the rows of a process: time, subject, metric, value, unit, text."""
    rows: list[tuple[int, str, str, int, str, str]] = [(0, subject, ROLE, 0, "word", role)]
    for at, grown in enumerate(moments):
        names = zip((PROMPT_TOKENS, EXTERNAL_HITS, PROMPT_TOKENS_COMPUTED), grown, strict=True)
        rows += [(at * S, subject, metric, value, "tokens", "") for metric, value in names]
    return rows


def make_decode(
    plan: Plan, rows: Sequence[tuple[int, str, str, int, str, str]], *, seconds: int = 3 * 3600, **record: Any
) -> VerifiedRecord:
    """Return a record of engines' counters through all three trials; a value that falls is a reset."""
    ordered = sorted(rows, key=lambda row: row[0])
    last: dict[tuple[str, str], int] = {}
    states = []
    for _at, subject, metric, value, _unit, _text in ordered:
        states.append("reset" if value < last.get((subject, metric), 0) else "measured")
        last[subject, metric] = value
    made = make_series([row[:5] for row in ordered])
    table = SeriesTable(
        made.time_ns,
        made.source,
        tuple(row[1] for row in ordered),
        tuple(row[2] for row in ordered),
        type(made.value)("q", (row[3] for row in ordered)),
        tuple(row[4] for row in ordered),
        tuple(row[5] for row in ordered),
        tuple(states),
    )
    payload = MemorySeries(
        poll_interval_ns=S, phases=(), devices=(MemoryDevice(NODE, "host", None),), row_count=len(table)
    )
    made_record: dict[str, Any] = {"start": "2026-03-01T09:59:00Z", "seconds": seconds} | record
    return make_observation(plan, payload, series=table, **made_record)


def decode_case(rows: Sequence[tuple[int, str, str, int, str, str]], **record: Any) -> Case:
    """Return a case with three trials and the counters of decode."""
    plan = plan_of_decode()
    trials = [make_trial(plan, number) for number in (1, 2, 3)]
    records = [*trials, make_decode(plan, rows, **record)]
    return Case(plan, make_evidence(records, [make_run(plan, trials)], None), make_policy(plan, least_binding=()))


GOOD = [(1000, 900, 90), (11_000, 10_890, 100), (21_000, 20_890, 110)]
"""20,000 prompt tokens, 19,990 of them handed over, 20 computed."""

HANDOFF_REASONS: dict[str, tuple[Callable[[], Case], str, str]] = {
    "decode_not_watched": (lambda: decode_case(counters("process-0", GOOD, "prefill")), HANDED_OVER, "inconclusive"),
    "decode_counters_missing": (
        lambda: decode_case([*counters("process-0", GOOD), *counters("process-1", [])]),
        HANDED_OVER,
        "inconclusive",
    ),
}
"""A case for each reason of the hand-over, the criterion that has it, and its outcome."""
