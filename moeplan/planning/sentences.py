"""Acceptance sentences, rendered from the criteria: one sentence a clause, in the clauses' order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from moeplan.model.plan import Criterion
from moeplan.units import NS_PER_MS, format_basis_points, format_count

__all__ = ["Facts", "acceptance_sentences"]


class Facts(NamedTuple):
    """What a sentence tells beside a criterion's limit."""

    reserve_basis_points: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    concurrency: int = 0


Rules = dict[str, Criterion]


def acceptance_sentences(criteria: tuple[Criterion, ...], facts: Facts) -> tuple[str, ...]:
    """Return one sentence for each clause of a gate's core criteria."""
    rules = {criterion.id: criterion for criterion in criteria}
    clauses = dict.fromkeys(criterion.clause for criterion in criteria)
    return tuple(_CLAUSES[clause](rules, facts) for clause in clauses)


def _milliseconds(criterion: Criterion) -> int:
    assert type(criterion.limit) is int
    return criterion.limit // NS_PER_MS


def _worker_failure(rules: Rules, _facts: Facts) -> str:
    text = "One worker is made to fail, and the time to restart and the gap in service are put on record"
    restart = rules["resilience.restart"].limit
    if restart is not None:
        text += f"; it is ready again within {restart} s"
    if "resilience.requests_served" in rules:
        return text + "; traffic keeps being served and no request is lost."
    return text + "."


def _expert_load(rules: Rules, _facts: Facts) -> str:
    text = "The load of the experts is reported, hot and dead ones and what becomes of dropped tokens included"
    ratio = rules["routing.load_ratio"].limit
    if type(ratio) is int:
        return f"{text}; no expert is selected more than {format_basis_points(ratio)} of its layer's mean."
    return text + "."


def _inter_token(rules: Rules, _facts: Facts) -> str:
    tpot, gap = rules["sla.tpot_p95"], rules["sla.chunk_gap_p95"]
    if tpot.limit is None:
        return f"P95 of the time between tokens stays within {_milliseconds(gap)} ms."
    return f"P95 of a request's time per output token stays within {_milliseconds(tpot)} ms."


def _sustained_load(rules: Rules, _facts: Facts) -> str:
    text = f"Concurrency {rules['sla.concurrency'].limit} is held"
    goodput = rules["sla.goodput"].limit
    if type(goodput) is int:
        text += f", {format_basis_points(goodput)} of the requests meet both targets"
    return text + "; no request is lost and no output is invalid."


def _quality(rules: Rules, _facts: Facts) -> str:
    tasks = [
        f"{id.removeprefix('sla.quality.')} ({format_basis_points(rule.limit)})"
        for id, rule in rules.items()
        if id.startswith("sla.quality.") and type(rule.limit) is int
    ]
    return "Quality is not below its reference by more than the margin: " + ", ".join(tasks) + "."


def _cost(rules: Rules, _facts: Facts) -> str:
    text = "The cost of infrastructure for one million successful output tokens is reported"
    cost = rules["economics.cost"].limit
    if type(cost) is int:
        text += f" and at most {format_count(cost)} millionths of the price's currency"
    if "economics.energy" in rules:
        text += f"; a token takes at most {rules['economics.energy'].limit} mJ of the accelerators"
    return text + "."


_CLAUSES: dict[str, Callable[[Rules, Facts], str]] = {
    "resolve_artifact": lambda rules, _: f"The artifact is {rules['artifact.revision_identity'].limit} and no other.",
    "digests_before_execution": lambda _r, _f: "Digests of manifest and checkpoint are on record before anything runs.",
    "residency_floor": lambda rules, facts: (
        f"The tensors fit on {rules['residency.planned_floor'].limit} accelerator(s) "
        f"once {format_basis_points(facts.reserve_basis_points)} is held back."
    ),
    "ready_state": lambda _r, _f: (
        "The engine reports ready, and its log shows neither an unsupported architecture nor exhausted memory."
    ),
    "environment_recorded": lambda _r, _f: (
        "On record are runtime, container, kernels, drivers, sharding, precision and the command that started it."
    ),
    "memory_phases": lambda _r, _f: "Memory of accelerators and host is captured while idle, warm and at its peak.",
    "memory_workload": lambda _r, facts: (
        f"Meanwhile requests of {format_count(facts.input_tokens)} input and "
        f"{format_count(facts.output_tokens)} output tokens run at concurrency {facts.concurrency}."
    ),
    "memory_parts": lambda _r, _f: (
        "The evidence tells apart allocator, KV cache, activations, routing buffers and fragmentation."
    ),
    "ttft": lambda rules, _: f"P95 of the time to first token stays within {_milliseconds(rules['sla.ttft_p95'])} ms.",
    "inter_token": _inter_token,
    "sustained_load": _sustained_load,
    "quality": _quality,
    "expert_load": _expert_load,
    "communication": lambda _r, _f: (
        "The share of routing and all-to-all traffic is quantified as far as the runtime shows it."
    ),
    "cost": _cost,
    "worker_failure": _worker_failure,
}
