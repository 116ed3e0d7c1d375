"""Cases of ``workload_sla`` beside its quantiles: trials that are not fit to judge, and quality; one thing spoilt."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from moeplan.model.evidence import ClientLoad
from moeplan.model.observations import QualityResult, QualityTask
from moeplan.model.plan import Objectives, Plan, QualityReference
from moeplan.model.series import QualityTable
from moeplan.model.verified import VerifiedRecord
from tests.build import (
    ENGINE_START,
    MS,
    Case,
    Request,
    build_plan,
    case_of,
    closing_counters,
    make_evidence,
    make_trial,
    steady_requests,
)
from tests.build_observations import make_observation
from tests.unit.evaluation.loaded_cases import loaded_case, make_loaded

__all__ = [
    "QUALITY_ID",
    "SERVICE_REASONS",
    "answers",
    "make_quality",
    "quality_case",
    "quality_plan",
    "rising",
    "trial_case",
    "warm_case",
]

PLAN = build_plan()
QUALITY_ID = "sla.quality.gsm8k.exact_match"


def trial_case(rows: Sequence[Request] | None = None, plan: Plan = PLAN, **trial: Any) -> Case:
    """Return the ready case with every trial changed alike."""
    return case_of(plan, lambda planned, number: make_trial(planned, number, rows, **trial))


def rising(count: int = 120, step_ns: int = MS) -> list[Request]:
    """Return requests of which each takes longer than the last, as where a queue builds up."""
    return [attrs.evolve(row, end_ns=row.end + index * step_ns) for index, row in enumerate(steady_requests(count))]


def warm_case(kept: Sequence[Request], warmup: int, ttft_ns: int | None, e2e_ns: int | None) -> Case:
    """Return a case whose engine's sums beyond the client's are the given times of ``warmup`` requests."""
    counters = closing_counters(kept, warmup)
    plain = closing_counters(kept)
    assert plain.ttft_ns is not None
    assert plain.e2e_ns is not None
    told = attrs.evolve(
        counters,
        ttft_ns=None if ttft_ns is None else plain.ttft_ns + ttft_ns,
        e2e_ns=None if e2e_ns is None else plain.e2e_ns + e2e_ns,
    )
    return trial_case(kept, warmup=warmup, engine_counters=told)


def _without_sums() -> Case:
    counters = attrs.evolve(closing_counters(steady_requests()), e2e_ns=None)
    return trial_case(engine_counters=counters)


def _counted() -> Case:
    return loaded_case([make_loaded(PLAN, counting=True, engine_start=ENGINE_START)])


def quality_plan(correct: int = 700, documents: int = 1000, margin: int = 500) -> Plan:
    """Return a plan that asks for one quality task."""
    reference = QualityReference("gsm8k", "exact_match", correct, documents, margin)
    return build_plan(objectives=Objectives(quality=(reference,)))


def answers(right: int, wrong: int = 0, *, task: str = "gsm8k", first: int = 0) -> QualityTable:
    """Return right answers, then wrong ones, to documents numbered on from ``first``."""
    count = right + wrong
    return QualityTable(
        (task,) * count,
        ("exact_match",) * count,
        array("q", range(first, first + count)),
        array("q", [1] * right + [0] * wrong),
    )


def make_quality(plan: Plan, table: QualityTable, **record: Any) -> VerifiedRecord:
    """Return a verified result of a quality harness."""
    task = QualityTask(table.task[0], table.metric[0], sum(table.correct), len(table))
    return make_observation(plan, QualityResult(tasks=(task,), row_count=len(table)), quality=table, **record)


def quality_case(*tables: QualityTable, plan: Plan | None = None, **record: Any) -> Case:
    """Return the ready case of a plan with a quality task, with one record for each table of answers."""
    planned = quality_plan() if plan is None else plan
    case = case_of(planned)
    records = [*case.evidence.records, *(make_quality(planned, table, **record) for table in tables)]
    return case.but(evidence=make_evidence(records, case.evidence.runs, case.evidence.checkpoint))


SERVICE_REASONS: Mapping[str, tuple[Callable[[], Case], str, str]] = {
    "client_bottleneck": (
        lambda: trial_case(client=ClientLoad(cpu_ns=81, wall_ns=100, loop_lag_p99_ns=0)),
        "sla.client",
        "inconclusive",
    ),
    "client_not_observed": (_without_sums, "sla.client", "inconclusive"),
    "counting_on": (_counted, "sla.failed_requests", "inconclusive"),
    "not_steady": (lambda: trial_case(rising()), "sla.steady_state", "inconclusive"),
    "port_forward": (lambda: trial_case(path="port_forward"), "sla.ttft_p95", "inconclusive"),
    "quality_not_shown": (
        lambda: quality_case(answers(7, 3), plan=quality_plan(7, 10)),
        QUALITY_ID,
        "inconclusive",
    ),
    "too_few_documents": (lambda: quality_case(answers(140, 60)), QUALITY_ID, "inconclusive"),
    "too_short": (lambda: trial_case(steady_requests(39)), "sla.length", "inconclusive"),
    "warmup_hides": (lambda: warm_case(steady_requests(), 10, 10_000 * MS, 10_000 * MS), "sla.warmup", "inconclusive"),
    "warmup_not_observed": (lambda: warm_case(steady_requests(), 10, None, None), "sla.warmup", "inconclusive"),
}
"""A case for each reason of the gate that is none of its quantiles', the criterion that has it, and its outcome."""
