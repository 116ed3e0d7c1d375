"""Judges of ``economics_resilience``: what tokens cost, and what a worker's failure does to the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from moeplan.evaluation.costs import cost_micros, successful_output_tokens
from moeplan.evaluation.energy import device_energy
from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.failures import Failure, read_failure
from moeplan.evaluation.judgement import Judge, Judgement, doubted, missing, observe
from moeplan.model.evidence import ServingTrial
from moeplan.model.observations import Price
from moeplan.model.plan import Criterion
from moeplan.model.verified import VerifiedRecord
from moeplan.units import ceil_div

__all__ = ["JUDGES"]


def _prices(state: State) -> list[Price]:
    return [item.record.payload for item in state.of_type("price") if isinstance(item.record.payload, Price)]


def _cost_inputs(state: State, criterion: Criterion) -> Judgement:
    items = state.of_type("price", "serving_trial")
    if not items:
        return missing()
    absent = (not state.of_type("price")) + (not state.trials)
    tokenless = sum(item.requests is not None and not successful_output_tokens(item.requests) for item in state.trials)
    judged = observe(state, criterion, items, absent + tokenless)
    if judged.outcome != "fail":
        return judged
    return attrs.evolve(judged, outcome="inconclusive", reason="missing_evidence" if absent else "no_server_usage")


def _cost(state: State, criterion: Criterion) -> Judgement:
    prices = _prices(state)
    if not prices or not state.trials:
        return missing()
    observed, why = _dearest(state, prices)
    return observe(state, criterion, state.of_type("price", "serving_trial"), observed, why)


def _dearest(state: State, prices: list[Price]) -> tuple[int | None, str | None]:
    if len({price.currency for price in prices}) > 1:
        return None, "currencies_differ"
    if any(price.accelerators < state.plan.target.requested_accelerators for price in prices):
        return None, "accelerators_unpriced"
    if any(price.dated > state.at for price in prices):
        return None, "after_instant"
    costs: list[int] = []
    for item in state.trials:
        payload = item.record.payload
        assert isinstance(payload, ServingTrial)
        assert item.requests is not None
        found = [cost_micros(price, payload, item.requests) for price in prices]
        known = [cost for cost in found if cost is not None]
        if len(known) < len(found):
            return None, "no_server_usage"
        costs += known
    return max(costs), None


def _energy(state: State, criterion: Criterion) -> Judgement:
    """Judge millijoules an output token, the worst trial; each trial needs every accelerator measured throughout."""
    memory = state.of_type("memory_series")
    if not memory or not state.trials:
        return missing()
    found = [_energy_of(state, item, memory) for item in state.trials]
    known = [value for value, _why in found if value is not None]
    observed = max(known) if len(known) == len(found) else None
    why = next((why for _value, why in found if why is not None), None)
    return observe(state, criterion, (*memory, *state.trials), observed, why)


def _energy_of(state: State, item: VerifiedRecord, memory: tuple[VerifiedRecord, ...]) -> tuple[int | None, str | None]:
    assert item.requests is not None
    devices: dict[str, int | None] = {}
    for record in memory:
        assert record.series is not None
        for name, energy in device_energy(item.record, record.record, record.series).items():
            other = devices.get(name)
            devices[name] = energy if other is None else max(other, energy or 0)
    # No accelerator serves on nothing: a counter that stands still was not read.
    known = [energy for energy in devices.values() if energy]
    if len(known) < max(len(devices), state.plan.target.requested_accelerators):
        return None, "power_not_measured"
    tokens = successful_output_tokens(item.requests)
    return (ceil_div(sum(known), tokens), None) if tokens else (None, "no_server_usage")


def _timelines(state: State) -> tuple[VerifiedRecord, ...]:
    return state.of_type("failure_timeline")


def _failure(item: VerifiedRecord) -> Failure:
    assert item.requests is not None
    assert item.series is not None
    return read_failure(item.requests, item.series)


def _recorded(state: State, criterion: Criterion) -> Judgement:
    items = _timelines(state)
    judged = observe(state, criterion, items, sum(_failure(item).whole for item in items))
    if judged.outcome == "fail":
        return attrs.evolve(judged, outcome="inconclusive", reason="timeline_incomplete")
    return judged


Figure = Callable[[list[Failure]], int | None]


def _worst(values: list[int | None], worst: Callable[[list[int]], int] = max) -> int | None:
    """Return the worst value; None where one is not known."""
    known = [value for value in values if value is not None]
    return worst(known) if known and len(known) == len(values) else None


_FIGURES: Mapping[str, Figure] = {
    "restart_seconds": lambda failures: _worst([failure.restart_seconds for failure in failures]),
    "interruption_ns": lambda failures: _worst([failure.longest_gap_ns for failure in failures]),
    "requests_lost_in_failure": lambda failures: sum(failure.lost for failure in failures),
    "requests_served_in_failure": lambda failures: _worst([failure.served for failure in failures], min),
}


def _of_failures(state: State, criterion: Criterion) -> Judgement:
    """Judge a figure of the failures; one that is not whole can fail a criterion and never pass it."""
    items = _timelines(state)
    if not items:
        return missing()
    failures = [_failure(item) for item in items]
    judged = observe(state, criterion, items, _FIGURES[criterion.metric](failures), "timeline_incomplete")
    whole = all(failure.whole for failure in failures)
    return judged if whole or judged.outcome != "pass" else doubted(judged, "timeline_incomplete")


JUDGES: Mapping[str, Judge] = {
    "cost_inputs_missing": _cost_inputs,
    "cost_micros_per_million_output_tokens": _cost,
    "energy_millijoules_per_output_token": _energy,
    "worker_failures_recorded": _recorded,
    **dict.fromkeys(_FIGURES, _of_failures),
}
