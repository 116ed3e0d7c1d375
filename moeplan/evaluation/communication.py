"""Judges of a communication trace: what part of an engine's steps goes into routing and all-to-all."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, missing, observe
from moeplan.model.observations import CommunicationTrace
from moeplan.model.plan import Criterion
from moeplan.model.series import SeriesTable
from moeplan.model.verified import VerifiedRecord
from moeplan.units import BASIS_POINTS, ceil_div

__all__ = ["COMMUNICATION_JUDGES", "STEP_PARTS", "Sample", "step_samples"]

STEP_PARTS = ("routing_ns", "all_to_all_ns", "collective_ns")
"""Parts of ``step_ns`` that a sample tells apart; what remains is the rest."""
_STEP = "step_ns"


@attrs.frozen
class Sample:
    """One step of one rank in nanoseconds; the parts lie within the step and do not overlap."""

    rank: str
    step_ns: int
    routing_ns: int
    all_to_all_ns: int
    collective_ns: int


def step_samples(table: SeriesTable) -> tuple[Sample, ...]:
    """Return the whole samples of a trace; one with a part unread, told twice or longer than its step is none."""
    found: dict[tuple[int, str], dict[str, int | None]] = {}
    for row, metric in enumerate(table.metric):
        if metric != _STEP and metric not in STEP_PARTS:
            continue
        parts = found.setdefault((table.time_ns[row], table.subject[row]), {})
        read = table.state[row] == "measured" and table.unit[row] == "ns" and metric not in parts
        parts[metric] = table.value[row] if read else None
    made = []
    for (_time, rank), parts in sorted(found.items(), key=lambda item: item[0]):
        values = [parts.get(name) for name in (_STEP, *STEP_PARTS)]
        known = [value for value in values if value is not None]
        if len(known) == len(values) and 0 < known[0] >= sum(known[1:]):
            made.append(Sample(rank, *known))
    return tuple(made)


def _traced(state: State) -> list[tuple[VerifiedRecord, CommunicationTrace, tuple[Sample, ...]]]:
    made = []
    for item in state.of_type("communication_trace"):
        payload = item.record.payload
        assert isinstance(payload, CommunicationTrace)
        assert item.series is not None
        made.append((item, payload, step_samples(item.series)))
    return made


def _samples(state: State, criterion: Criterion) -> Judgement:
    traced = _traced(state)
    count = sum(len(samples) for _item, _payload, samples in traced)
    judged = observe(state, criterion, tuple(item for item, _payload, _samples in traced), count)
    if judged.outcome == "fail":
        return attrs.evolve(judged, outcome="inconclusive", reason="too_few_steps")
    return judged


def _share(state: State, criterion: Criterion) -> Judgement:
    part = "routing_ns" if criterion.metric == "routing_time_share_basis_points" else "all_to_all_ns"
    traced = _traced(state)
    if not traced:
        return missing()
    shares: list[int] = []
    why: str | None = None
    for _item, payload, samples in traced:
        ranks = {sample.rank for sample in samples}
        if len(ranks) != payload.world_size or payload.world_size < _planned_ranks(state):
            why = why or ("ranks_not_traced" if ranks else "too_few_steps")
        elif part == "all_to_all_ns" and payload.world_size == 1 and any(sample.all_to_all_ns for sample in samples):
            why = why or "communication_of_one_rank"
        else:
            shares += [_of_rank(part, [sample for sample in samples if sample.rank == rank]) for rank in sorted(ranks)]
    observed = None if why is not None else max(shares, default=None)
    return observe(state, criterion, tuple(item for item, _payload, _samples in traced), observed, why)


def _planned_ranks(state: State) -> int:
    """Return the fewest processes of one engine that the plan's parallel sizes make; 1 where it leaves them open."""
    sizes = state.plan.deployment.parallelism
    return (sizes.tensor_parallel_size or 1) * (sizes.pipeline_parallel_size or 1)


def _of_rank(part: str, samples: list[Sample]) -> int:
    spent = sum(getattr(sample, part) for sample in samples)
    return ceil_div(BASIS_POINTS * spent, sum(sample.step_ns for sample in samples))


COMMUNICATION_JUDGES: Mapping[str, Judge] = {
    "communication_samples": _samples,
    "routing_time_share_basis_points": _share,
    "all_to_all_share_basis_points": _share,
}
