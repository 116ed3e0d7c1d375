"""Energy of the accelerators over a trial: counters, power, holes, and the criterion that asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import pytest

from moeplan.evaluation.energy import device_energy
from moeplan.model.observations import MemoryDevice, MemorySeries
from moeplan.model.plan import Objectives, Plan
from moeplan.model.verified import VerifiedRecord
from tests.build import AT, TRIAL_START, Case, build_plan, case_of, criterion_of, make_evidence, make_trial
from tests.build_observations import SeriesRow, make_observation, make_series
from tests.unit.planning.test_builder import made

S = 10**9
GPUS = tuple(f"gpu-{number}" for number in range(8))
ASKED = build_plan(objectives=Objectives(energy_millijoules_per_token_at_most=100_000))


def counters(device: str, rate_milliwatts: int = 500_000, begin: int = 0, end: int = 7200) -> list[SeriesRow]:
    """Return a counter that grows at a steady rate, read each second."""
    return [(t * S, device, "energy", 10**9 + rate_milliwatts * t, "millijoules") for t in range(begin, end + 1)]


def power(device: str, values: Sequence[int], every_s: int = 1) -> list[SeriesRow]:
    """Return readings of power."""
    return [(t * every_s * S, device, "power", value, "milliwatts") for t, value in enumerate(values)]


def make_memory(plan: Plan, rows: Sequence[SeriesRow], gpus: Sequence[str] = GPUS, **record: Any) -> VerifiedRecord:
    """Return a record that covers the trials: it begins when they do."""
    table = make_series(rows, source="dcgm")
    devices = tuple(MemoryDevice(name, "accelerator", None) for name in gpus)
    payload = MemorySeries(poll_interval_ns=S, phases=(), devices=devices, row_count=len(table))
    where: dict[str, Any] = {"start": TRIAL_START, "seconds": 7200}
    return make_observation(plan, payload, series=table, **(where | record))


def judged(*memory: VerifiedRecord, plan: Plan = ASKED) -> tuple[str, Any, str | None]:
    case = case_of(plan)
    records = (*case.evidence.records, *memory)
    whole = Case(plan, make_evidence(records, case.evidence.runs, case.evidence.checkpoint), case.policy)
    result = criterion_of(whole.judge(), "economics.energy")
    return result.outcome, result.observed, result.reason


# A trial has 60 requests of 5 tokens and lies within 4 whole seconds; three begin 2,400 s apart.
TOKENS = 300
SECONDS = 4


def test_counters_of_every_accelerator() -> None:
    memory = make_memory(ASKED, [row for gpu in GPUS for row in counters(gpu)])
    assert judged(memory) == ("pass", ceil(Fraction(8 * 500_000 * SECONDS, TOKENS)), None)


@pytest.mark.parametrize(("limit", "outcome"), [(53_334, "pass"), (53_333, "fail")])
def test_a_limit(limit: int, outcome: str) -> None:
    plan = build_plan(objectives=Objectives(energy_millijoules_per_token_at_most=limit))
    memory = make_memory(plan, [row for gpu in GPUS for row in counters(gpu)])
    assert judged(memory, plan=plan)[:2] == (outcome, 53_334)


def test_an_accelerator_that_was_not_measured_leaves_it_open() -> None:
    rows = [row for gpu in GPUS[:7] for row in counters(gpu)]
    for memory in (make_memory(ASKED, rows, GPUS[:7]), make_memory(ASKED, rows)):
        assert judged(memory) == ("inconclusive", None, "power_not_measured")


def test_a_counter_that_stands_still_was_not_read() -> None:
    rows = [row for gpu in GPUS for row in counters(gpu, 0 if gpu == "gpu-2" else 500_000)]
    assert judged(make_memory(ASKED, rows)) == ("inconclusive", None, "power_not_measured")


def test_a_record_that_does_not_enclose_every_trial_leaves_it_open() -> None:
    rows = [row for gpu in GPUS for row in counters(gpu, end=3000)]
    assert judged(make_memory(ASKED, rows, seconds=3000)) == ("inconclusive", None, "power_not_measured")


def test_without_a_record_it_is_missing_and_unless_asked_for_no_criterion() -> None:
    assert judged() == ("inconclusive", None, "missing_evidence")
    assert "economics.energy" not in {rule.id for gate in build_plan().validation_gates for rule in gate.criteria}
    asked = made(objectives=Objectives(energy_millijoules_per_token_at_most=7))
    assert "a token takes at most 7 mJ" in asked.validation_gates[6].acceptance_criteria[0]


class TestDevice:
    """One device over one trial of four seconds."""

    def energy(self, rows: Sequence[SeriesRow], **record: Any) -> int | None:
        trial = make_trial(ASKED, start="2026-03-01T10:00:10Z")
        memory = make_memory(ASKED, rows, GPUS[:1], **record)
        assert memory.series is not None
        return device_energy(trial.record, memory.record, memory.series).get("gpu-0", -1)

    def test_a_counter_is_preferred_to_power(self) -> None:
        rows = [*counters("gpu-0", end=30), *power("gpu-0", [900_000] * 31)]
        assert self.energy(rows) == 500_000 * 4

    def test_power_is_added_up_at_the_greater_of_two_readings(self) -> None:
        values = [100_000] * 10 + [100_000, 300_000, 200_000, 200_000, 400_000] + [100_000] * 10
        assert self.energy(power("gpu-0", values)) == 300_000 + 300_000 + 200_000 + 400_000

    def test_readings_beside_the_seconds_count_to_the_next_reading(self) -> None:
        assert self.energy(power("gpu-0", [100_000] * 20, every_s=3)) == 100_000 * (15 - 9)

    @pytest.mark.parametrize(
        "rows",
        [
            power("gpu-0", [100_000] * 12),
            [row for row in power("gpu-0", [100_000] * 30) if row[0] > 10 * S],
            [row for row in power("gpu-0", [100_000] * 30) if not 10 * S < row[0] < 14 * S],
            counters("gpu-0", begin=11, end=30),
            [*counters("gpu-0", end=12), *((t * S, "gpu-0", "energy", t, "millijoules") for t in range(13, 30))],
            counters("gpu-1", end=30),
        ],
        ids=["ends early", "begins late", "hole", "counter begins late", "counter falls", "another device"],
    )
    def test_what_was_not_measured_throughout(self, rows: list[SeriesRow]) -> None:
        assert self.energy(rows) is None

    def test_a_record_elsewhere_tells_nothing(self) -> None:
        assert self.energy(counters("gpu-0", end=7200), start=AT) == -1
