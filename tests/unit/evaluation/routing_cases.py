"""Cases of ``routing_health``: a plan's evidence with expert counts and a communication trace, one thing spoilt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from moeplan.model.deployment import Parallelism
from moeplan.model.evidence import EngineCounters
from moeplan.model.observations import CommunicationTrace, ExpertCounts, ExpertLayer
from moeplan.model.plan import Plan
from moeplan.model.series import ExpertCountTable
from moeplan.model.verified import VerifiedRecord
from tests.build import (
    EXPERT_LAYERS,
    EXPERTS,
    Case,
    build_plan,
    make_evidence,
    make_policy,
    make_spec,
    make_waivers,
    ready_case,
)
from tests.build_observations import make_expert_table, make_observation, make_series

TOP_K = 2
COUNTERS = EngineCounters(30, 500, 100, 130, preemptions=0, draft_tokens=0)
"""500 - 100 + 130 - 30 = 500 tokens were fed, so each layer has 1,000 selections."""
INTERVALS: list[dict[int, Sequence[int]]] = [
    {0: [200, 100, 100, 100], 1: [125, 125, 125, 125]},
    {0: [50, 150, 150, 150], 1: [0, 250, 125, 125]},
]
"""Two intervals of 500 selections a layer; the sums are 250 everywhere but in layer 1: 125, 375, 250, 250."""

Counts = list[dict[int, Sequence[int]]]


def make_layers(count: int = EXPERT_LAYERS, **changes: Any) -> tuple[ExpertLayer, ...]:
    """Return the layers of the synthetic checkpoint."""
    values: dict[str, Any] = {
        "experts": EXPERTS,
        "top_k": TOP_K,
        "drafter": False,
        "hash_routed": False,
        "dropped_tokens": 0,
        "dropped_basis": "the kernels drop none",
    }
    return tuple(ExpertLayer(n, f"model.layers.{n}.mlp.experts", **(values | changes)) for n in range(count))


def make_counts(
    plan: Plan,
    counts: Counts | None = None,
    *,
    layers: tuple[ExpertLayer, ...] | None = None,
    counters: EngineCounters | None = COUNTERS,
    table: ExpertCountTable | None = None,
    **record: Any,
) -> VerifiedRecord:
    """Return a verified record of expert counts that close with the engine's counters, unless others are given."""
    held = make_expert_table(INTERVALS if counts is None else counts) if table is None else table
    payload = ExpertCounts(
        layers=make_layers() if layers is None else layers,
        ranks=("tp0",),
        interval_count=max(len(set(held.interval)), 1),
        counters=counters,
        row_count=len(held),
    )
    return make_observation(plan, payload, experts=held, **record)


def make_trace(
    plan: Plan, samples: Sequence[tuple[int, str, int, int, int, int]], world_size: int = 1, **record: Any
) -> VerifiedRecord:
    """Return a verified trace; a sample is time, rank, step, routing, all-to-all and collective nanoseconds."""
    names = ("step_ns", "routing_ns", "all_to_all_ns", "collective_ns")
    rows = [
        (time, rank, name, value, "ns")
        for time, rank, *parts in samples
        for name, value in zip(names, parts, strict=True)
    ]
    table = make_series(rows, source="torch-profiler")
    return make_observation(
        plan, CommunicationTrace(world_size=world_size, row_count=len(table)), series=table, **record
    )


ONE_RANK = ((10, "rank-0", 1000, 100, 0, 0), (2000, "rank-0", 3000, 101, 0, 0))
"""201 of 4,000 ns are routing: 502.5 basis points."""
ALL_RANKS = tuple(
    (at, f"rank-{rank}", step, routing, all_to_all, collective)
    for at, _rank, step, routing, all_to_all, collective in ONE_RANK
    for rank in range(8)
)
"""The same of each of the eight ranks that the plan's tensor-parallel size makes."""


def case_with(*records: VerifiedRecord, plan: Plan | None = None, waive: Sequence[str] | None = None) -> Case:
    """Return the ready case of ``plan`` with ``records`` beside, nothing of the two last gates waived."""
    case = ready_case()
    wanted = build_plan() if plan is None else plan
    kept = [w.criterion for w in case.policy.waivers if not w.criterion.startswith(("routing.", "economics.", "resil"))]
    policy = make_policy(wanted, waivers=make_waivers(kept if waive is None else waive))
    if plan is None:
        evidence = case.evidence
        whole = make_evidence([*evidence.records, *records], evidence.runs, evidence.checkpoint)
        return Case(wanted, whole, policy)
    return Case(wanted, make_evidence(records, (), case.evidence.checkpoint), policy)


def routed(counts: Counts | None = None, **changes: Any) -> Case:
    """Return a case with expert counts and a trace of one rank."""
    plan = build_plan()
    return case_with(make_counts(plan, counts, **changes), make_trace(plan, ALL_RANKS, 8))


def traced(samples: Sequence[tuple[int, str, int, int, int, int]], world_size: int = 1) -> Case:
    """Return a case with sound expert counts and the trace of ``samples``, planned for so many ranks."""
    sizes = Parallelism(world_size, None, None, None)
    plan = build_plan(deployment=attrs.evolve(make_spec(), parallelism=sizes))
    return case_with(make_counts(plan), make_trace(plan, samples, world_size), plan=plan)


def counted_with(**counters: Any) -> Case:
    """Return a case whose engine counters differ from those that close."""
    return routed(counters=attrs.evolve(COUNTERS, **counters))


FEW: Counts = [{0: [20, 10, 10, 10], 1: [25, 10, 5, 10]}]
HUGE = 2**53 - 1

ROUTING_REASONS: dict[str, tuple[Callable[[], Case], str, str]] = {
    "communication_of_one_rank": (lambda: traced([(10, "rank-0", 9, 1, 1, 0)]), "routing.all_to_all", "inconclusive"),
    "counts_not_conserved": (
        lambda: counted_with(generation_tokens=131),
        "routing.load_ratio",
        "inconclusive",
    ),
    "drops_not_reported": (
        lambda: routed(layers=make_layers(dropped_tokens=None, dropped_basis=None)),
        "routing.dropped_tokens",
        "inconclusive",
    ),
    "expert_layers_unknown": (lambda: without_experts(), "routing.expert_load", "inconclusive"),
    "layers_not_counted": (
        lambda: routed([{0: parts[0]} for parts in INTERVALS], layers=make_layers(1)),
        "routing.expert_load",
        "inconclusive",
    ),
    "preemptions_not_conserved": (lambda: counted_with(preemptions=1), "routing.conservation", "inconclusive"),
    "ranks_not_traced": (lambda: traced(ONE_RANK, world_size=2), "routing.all_to_all", "inconclusive"),
    "routing_counters_missing": (lambda: routed(counters=None), "routing.conservation", "inconclusive"),
    "speculation_not_conserved": (lambda: counted_with(draft_tokens=5), "routing.conservation", "inconclusive"),
    "too_few_steps": (lambda: traced([(10, "rank-0", 9, 10, 0, 0)]), "routing.communication", "inconclusive"),
    "too_few_tokens": (
        lambda: routed(FEW, counters=EngineCounters(5, 20, 0, 10)),
        "routing.sample_size",
        "inconclusive",
    ),
    "value_too_large": (
        lambda: routed(layers=make_layers(dropped_tokens=HUGE)),
        "routing.dropped_tokens_sum",
        "inconclusive",
    ),
}
"""A case for each reason of the gate, the criterion that has it, and its outcome."""


def without_experts() -> Case:
    """Return a case whose checkpoint manifest lists no tensor under experts."""
    case = routed()
    manifest = case.evidence.checkpoint
    assert manifest is not None
    tensors = tuple(attrs.evolve(t, name=t.name.replace("experts", "dense")) for t in manifest.tensors)
    renamed = attrs.evolve(manifest, tensors=tuple(sorted(tensors, key=lambda t: (t.file, t.name))))
    return case.but(evidence=make_evidence(case.evidence.records, case.evidence.runs, renamed))
