"""Judges of ``runtime_load``: ready in time, no fatal line, environment on record, the deployment that was planned."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from moeplan.evaluation.engine_logs import (
    engine_starts,
    fatal_lines,
    log_numbers,
    log_payload,
    log_words,
    ready_seconds,
)
from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, doubted, missing, observe
from moeplan.evaluation.shown_deployment import deployment_differences
from moeplan.model.evidence import ServingTrial
from moeplan.model.observations import COMPLETE_ENVIRONMENT, Environment, Smoke
from moeplan.model.plan import Criterion
from moeplan.model.verified import VerifiedRecord
from moeplan.units import MAX_SAFE_INTEGER, NS_PER_S, parse_instant

__all__ = ["JUDGES", "LOG_SLACK_SECONDS"]

LOG_SLACK_SECONDS = 15
"""A log may end so many seconds before a trial does: vLLM writes its figures every 10 seconds.

Source: vLLM, ``VLLM_LOG_STATS_INTERVAL``, default 10."""
_CLUSTER = "kubernetes"
"""What stands for an engine in the record of a cluster's events."""
_TOLD_BY_LOG = {
    "kernel_backend": ("attention_backend", "moe_backend"),
    "precision": ("precision",),
    "runtime": ("engine_version",),
    "sharding": ("tensor_parallel_size",),
}
"""Parts of an environment that an engine's log tells too, and the rows that tell them."""


def _logs(state: State) -> tuple[VerifiedRecord, ...]:
    """Return the engines' own logs; what a cluster tells of their pods is none of them."""
    return tuple(item for item in state.of_type("engine_log") if log_payload(item).engine != _CLUSTER)


def _role_doubt(state: State) -> str | None:
    """Return why the logs are not those of the whole deployment, or None."""
    roles = {log_payload(item).role for item in _logs(state) if engine_starts(item)}
    return None if {role.role for role in state.plan.deployment.roles} <= roles else "role_not_observed"


def _unless(judged: Judgement, doubt: str | None) -> Judgement:
    """Let a doubt stand in the way of a pass alone, so that a reason that is there already stays."""
    return doubted(judged, doubt) if judged.outcome == "pass" else judged


def _ready(state: State, criterion: Criterion) -> Judgement:
    starts = [start for item in _logs(state) for start in engine_starts(item)]
    observed = next((start.state for start in starts if start.state != "ready"), "ready")
    return _unless(observe(state, criterion, _logs(state), observed), _role_doubt(state))


def _ready_time(state: State, criterion: Criterion) -> Judgement:
    logs = _logs(state)
    seconds = [ready_seconds(item) for item in logs if engine_starts(item)]
    known = [value for value in seconds if value is not None]
    observed = min(max(known), MAX_SAFE_INTEGER) if known else None
    judged = observe(state, criterion, logs, observed, "log_not_whole")
    whole = all(log_payload(item).whole for item in logs) and len(known) == len(seconds)
    return _unless(judged, _role_doubt(state) if whole else "log_not_whole")


def _fatal(state: State, criterion: Criterion) -> Judgement:
    logs = state.of_type("engine_log")
    timelines = tuple(item for item in state.of_type("failure_timeline") if _believed(state, item))
    total, used = 0, set[str]()
    for item in logs:
        for cause, count, second in fatal_lines(item):
            around = [one for one in timelines if _encloses(one, second)] if cause == "engine_died" else []
            used |= {one.digest for one in around}
            total += 0 if around else count
    if total == 0 and not _logs(state):
        return missing()
    judged = observe(state, criterion, logs, min(total, MAX_SAFE_INTEGER))
    judged = attrs.evolve(judged, evidence=(*judged.evidence, *sorted(used)))
    return _unless(judged, _log_doubt(state) or _role_doubt(state))


def _believed(state: State, item: VerifiedRecord) -> bool:
    """Return whether a failure that was caused on purpose may explain that the engine died."""
    return state.obstacle((item,)) is None and state.doubt((item,)) is None and state.run_doubt((item,)) is None


def _encloses(item: VerifiedRecord, second: int) -> bool:
    interval = item.record.interval
    return parse_instant(interval.start) <= second <= parse_instant(interval.end)


def _log_doubt(state: State) -> str | None:
    """Return why the absence of a fatal line shows nothing: a log cut at its start, or one that trials outlast."""
    logs = _logs(state)
    if not all(log_payload(item).whole for item in logs):
        return "log_not_whole"
    for trial in state.trials:
        covering = {log_payload(item).role for item in logs if _covers(item, trial)}
        if any(role.role not in covering for role in state.plan.deployment.roles):
            return "log_ends_early"
        if not any(_covers(item, trial) and _holds_start(item, trial) for item in logs):
            return "log_of_other_start"
    return None


def _holds_start(log: VerifiedRecord, trial: VerifiedRecord) -> bool:
    """Return whether the engine start that served a trial may be one of the log's: one is ready after it began."""
    started = trial.record.engine_start
    if started is None:
        return True
    lead = (parse_instant(started) - parse_instant(log.record.interval.start)) * NS_PER_S
    named = log.record.engine_start
    if named is not None and parse_instant(named) > parse_instant(started) + LOG_SLACK_SECONDS:
        return False
    return any(start.ready_ns is None or start.ready_ns >= lead for start in engine_starts(log))


def _covers(log: VerifiedRecord, trial: VerifiedRecord) -> bool:
    outer, inner = log.record.interval, trial.record.interval
    late = parse_instant(inner.end) - parse_instant(outer.end)
    return parse_instant(outer.start) <= parse_instant(inner.start) and late <= LOG_SLACK_SECONDS


def _environment(state: State, criterion: Criterion) -> Judgement:
    if not state.of_type("environment"):
        return missing()
    records = state.of_type("environment", "engine_log")
    judged = observe(state, criterion, records, _parts_missing(state))
    unnamed = any(item.record.deployment.nodes is None for item in state.of_type("environment"))
    if judged.outcome != "fail" and not (unnamed and judged.outcome == "pass"):
        return judged
    return attrs.evolve(judged, outcome="inconclusive", reason="environment_incomplete")


def _parts_missing(state: State) -> int:
    told = {part for item in _logs(state) for part, rows in _TOLD_BY_LOG.items() if _tells(item, rows)}
    by_node: dict[str, set[str]] = {}
    for item in state.of_type("environment"):
        payload = item.record.payload
        assert isinstance(payload, Environment)
        by_node.setdefault(payload.node, set()).update(fact.part for fact in payload.facts)
    nodes = {node for item in state.of_type("environment") for node in item.record.deployment.nodes or ()}
    return sum(len(set(COMPLETE_ENVIRONMENT) - told - by_node.get(node, set())) for node in nodes | set(by_node))


def _tells(item: VerifiedRecord, metrics: tuple[str, ...]) -> bool:
    return any(log_words(item, metric) or log_numbers(item, metric) for metric in metrics)


def _deployment(state: State, criterion: Criterion) -> Judgement:
    records = state.of_type("engine_log", "environment")
    differing, unseen = deployment_differences(state, records)
    judged = observe(state, criterion, records, differing)
    return _unless(judged, "deployment_not_observed" if unseen else None)


def _speculation(state: State, criterion: Criterion) -> Judgement:
    records = state.of_type("engine_log", "serving_trial")
    payloads = [item.record.payload for item in state.trials]
    counters = [one.engine_counters for one in payloads if isinstance(one, ServingTrial)]
    drafted = [one.draft_tokens for one in counters if one is not None and one.draft_tokens is not None]
    if drafted:
        judged = observe(state, criterion, records, min(drafted))
        return _unless(judged, None if len(drafted) == len(counters) else "speculation_not_observed")
    logs = _logs(state)
    shown = [max(numbers) for numbers in (log_numbers(item, "draft_tokens") for item in logs) if numbers]
    off = any("none" in log_words(item, "speculation") for item in logs)
    observed = 0 if off else min(shown, default=None)
    return observe(state, criterion, records, observed, "speculation_not_observed")


def _smoke(state: State, criterion: Criterion) -> Judgement:
    records = state.of_type("smoke")
    return observe(state, criterion, records, sum(not _answered(item) for item in records))


def _answered(item: VerifiedRecord) -> bool:
    payload = item.record.payload
    assert isinstance(payload, Smoke)
    in_time = payload.elapsed_ns <= payload.deadline_ns
    return (
        payload.outcome == "answered" and in_time and payload.finish_reason is not None and bool(payload.output_tokens)
    )


JUDGES: Mapping[str, Judge] = {
    "engine_ready": _ready,
    "ready_seconds": _ready_time,
    "fatal_log_signatures": _fatal,
    "environment_parts_missing": _environment,
    "deployment_differences": _deployment,
    "draft_tokens_least": _speculation,
    "smoke_failures": _smoke,
}
