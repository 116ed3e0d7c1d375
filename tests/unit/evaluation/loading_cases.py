"""Cases of ``runtime_load``: an engine's log, environments and a smoke test beside the trials, one thing spoilt."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from moeplan.model.observations import (
    COMPLETE_ENVIRONMENT,
    ENVIRONMENT_PARTS,
    EngineLog,
    Environment,
    EnvironmentFact,
    Smoke,
)
from moeplan.model.plan import Plan
from moeplan.model.series import SeriesTable
from moeplan.model.verified import VerifiedRecord
from tests.build import (
    ENGINE_START,
    NODE,
    Case,
    build_plan,
    closing_counters,
    digest_of,
    make_deployment,
    make_evidence,
    make_policy,
    make_run,
    make_spec,
    make_trial,
    make_waivers,
    ready_case,
    steady_requests,
)
from tests.build_observations import make_observation

__all__ = [
    "DRAFT",
    "LOADING_REASONS",
    "LOADING_WORDS",
    "LOG_ROWS",
    "LogRow",
    "S",
    "case_with",
    "drafted",
    "fact",
    "make_environment",
    "make_log",
    "make_smoke",
]

S = 10**9
DRAFT = digest_of("draft")
LogRow = tuple[int, str, str, int | str]
"""Time in ns, subject, metric, and an integer or a word."""
LOG_ROWS: tuple[LogRow, ...] = (
    (0, "api-server", "engine_version", "0.32.0"),
    (0, "api-server", "engine_state", "starting"),
    (S, "api-server", "expert_parallel_enabled", 0),
    (5 * S, "engine-core", "tensor_parallel_size", 8),
    (5 * S, "engine-core", "pipeline_parallel_size", 1),
    (5 * S, "engine-core", "data_parallel_size", 1),
    (5 * S, "engine-core", "precision", "bfloat16"),
    (5 * S, "engine-core", "quantization", "none"),
    (5 * S, "engine-core", "speculation", "none"),
    (6 * S, "worker-tp0", "attention_backend", "FLASH_ATTN"),
    (60 * S, "api-server", "engine_state", "ready"),
)
LOADING_WORDS = {metric for _time, _subject, metric, _value in LOG_ROWS} | {
    *ENVIRONMENT_PARTS,
    "draft_tokens",
    "engine_died",
    "engine_log",
    "fbgemm_fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "modelopt_fp4",
    "modelopt_mixed",
    "moe_backend",
    "ptpc_fp8",
    "expert_parallel_size",
}
"""Words in the judges' sources that are rows of a log, parts of an environment, or precisions."""


def _table(rows: Iterable[LogRow]) -> SeriesTable:
    ordered = sorted(rows, key=lambda row: row[0])
    words = [isinstance(value, str) for *_rest, value in ordered]
    return SeriesTable(
        time_ns=array("q", (row[0] for row in ordered)),
        source=("vllm-log",) * len(ordered),
        subject=tuple(row[1] for row in ordered),
        metric=tuple(row[2] for row in ordered),
        value=array("q", (0 if isinstance(row[3], str) else row[3] for row in ordered)),
        unit=tuple("word" if word else "count" for word in words),
        text=tuple(row[3] if isinstance(row[3], str) else "" for row in ordered),
        state=("measured",) * len(ordered),
    )


def make_log(
    plan: Plan,
    rows: Sequence[LogRow] = LOG_ROWS,
    *,
    role: str = "serve",
    whole: bool = True,
    engine: str = "vllm",
    **record: Any,
) -> VerifiedRecord:
    """Return a verified engine log that covers the whole day, ready one minute after the engine's start."""
    table = _table(rows)
    payload = EngineLog(
        role=role, engine=engine, engine_version="0.32.0", whole=whole, line_count=999, row_count=len(table)
    )
    values: dict[str, Any] = {"start": ENGINE_START, "seconds": 50_000} | record
    return make_observation(plan, payload, series=table, **values)


def fact(part: str, name: str | None = None, value: str = "x") -> EnvironmentFact:
    """Return a fact of an environment."""
    return EnvironmentFact(part, name or part.replace("_", "-"), value, "procfs")


def make_environment(
    plan: Plan, parts: Iterable[str] = COMPLETE_ENVIRONMENT, *more: EnvironmentFact, node: str = NODE, **record: Any
) -> VerifiedRecord:
    """Return a verified environment of a node with one fact for each of ``parts`` and ``more``."""
    facts = sorted((*(fact(part) for part in parts), *more), key=lambda one: (one.part, one.name))
    payload = Environment(node=node, seen_from="engine_process", facts=tuple(facts), gaps=())
    return make_observation(plan, payload, **record)


_RECORD = ("signers", "deployment", "start", "seconds", "engine_start")


def make_smoke(plan: Plan, **changes: Any) -> VerifiedRecord:
    """Return a verified smoke test that was answered; ``changes`` are the payload's or the record's."""
    record = {name: changes.pop(name) for name in _RECORD if name in changes}
    values: dict[str, Any] = {
        "outcome": "answered",
        "deadline_ns": 60 * S,
        "elapsed_ns": 5 * S,
        "http_status": 200,
        "finish_reason": "length",
        "requested_output_tokens": 1024,
        "output_tokens": 1024,
    }
    return make_observation(plan, Smoke(**(values | changes)), **record)


def case_with(*records: VerifiedRecord, plan: Plan | None = None) -> Case:
    """Return the ready case with ``records`` beside, nothing of ``runtime_load`` waived."""
    case = ready_case()
    wanted = build_plan() if plan is None else plan
    kept = [w.criterion for w in case.policy.waivers if not w.criterion.startswith("load.")]
    policy = make_policy(wanted, waivers=make_waivers(kept))
    if plan is None:
        evidence = case.evidence
        whole = make_evidence([*evidence.records, *records], evidence.runs, evidence.checkpoint)
        return Case(wanted, whole, policy)
    return Case(wanted, make_evidence(records, (), case.evidence.checkpoint), policy)


def drafted(*counts: int | None, rows: Sequence[LogRow] | None = None) -> Case:
    """Return a case of a plan with a draft: one trial for each count of drafted tokens, and a log."""
    plan, deployment = build_plan(deployment=make_spec(draft=DRAFT)), make_deployment(draft_checkpoint_root=DRAFT)
    trials = [
        make_trial(
            plan,
            number,
            deployment=deployment,
            engine_counters=attrs.evolve(closing_counters(steady_requests()), draft_tokens=count),
        )
        for number, count in enumerate(counts, 1)
    ]
    logs = [] if rows is None else [make_log(plan, rows, deployment=deployment)]
    case = case_with(*trials, *logs, plan=plan)
    return case.but_evidence(runs=(make_run(plan, trials),) if trials else ())


def _with(*records: VerifiedRecord) -> Callable[[], Case]:
    return lambda: case_with(*records)


_PLAN = build_plan()
LOADING_REASONS: dict[str, tuple[Callable[[], Case], str, str]] = {
    "deployment_not_observed": (_with(make_environment(_PLAN)), "load.deployment", "inconclusive"),
    "environment_incomplete": (
        _with(make_environment(_PLAN, set(COMPLETE_ENVIRONMENT) - {"driver"})),
        "load.environment",
        "inconclusive",
    ),
    "log_ends_early": (_with(make_log(_PLAN, seconds=600)), "load.fatal_signatures", "inconclusive"),
    "log_of_other_start": (
        _with(make_log(_PLAN, start="2026-03-01T08:30:00Z", engine_start=None)),
        "load.fatal_signatures",
        "inconclusive",
    ),
    "log_not_whole": (_with(make_log(_PLAN, whole=False)), "load.fatal_signatures", "inconclusive"),
    "role_not_observed": (_with(make_log(_PLAN, role="prefill")), "load.ready", "inconclusive"),
    "speculation_not_observed": (lambda: drafted(12, None), "load.speculation", "inconclusive"),
}
"""A case for each reason of the gate, the criterion that has it, and its outcome."""
