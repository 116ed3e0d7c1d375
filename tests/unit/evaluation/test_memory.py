"""``memory_envelope``: each criterion passes where all was watched, and does not where a part was left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moeplan.model.memory_metrics import HIGH_WATER, RESERVED, USED
from moeplan.model.observations import MemoryDevice, MemoryPhase
from moeplan.model.verdict import CriterionResult
from moeplan.model.verified import VerifiedRecord
from tests.build import NODE, Case, build_plan, criterion_of, gate_of, make_deployment
from tests.build_observations import SeriesRow
from tests.unit.evaluation.loading_cases import make_log
from tests.unit.evaluation.memory_cases import (
    CAPACITY,
    DEVICES,
    GB,
    PHASES,
    ROWS,
    TOTAL,
    S,
    make_memory,
    memory_rows,
    watched,
    without,
)

PLAN = build_plan()


def case(rows: list[SeriesRow] = ROWS, **changes: Any) -> Case:
    return watched(make_memory(PLAN, rows, **changes))


def found(id: str, rows: list[SeriesRow] = ROWS, **changes: Any) -> CriterionResult:
    return criterion_of(case(rows, **changes).judge(), id)


def test_the_gate_passes_where_everything_was_watched() -> None:
    gate = gate_of(case().judge(), "memory_envelope")
    assert gate.outcome == "pass"
    assert {result.id: result.observed for result in gate.criteria} == {
        "memory.phases": 3,
        "memory.device_peak": 130 * GB,
        "memory.headroom": 11 * GB,
        "memory.host_peak": 120 * GB,
        "memory.workload": 60,
        "memory.kv_capacity": CAPACITY,
        "memory.parts": 0,
    }


def test_a_peak_above_the_device_fails_even_where_devices_are_missing() -> None:
    assert found("memory.device_peak", memory_rows(TOTAL + 1)).outcome == "fail"
    rows = [row for row in memory_rows(TOTAL + 1) if row[1] != "gpu-7"]
    assert found("memory.device_peak", rows).outcome == "fail"


@pytest.mark.parametrize(("metric", "more", "peak"), [(RESERVED, 5 * GB, 135 * GB), (HIGH_WATER, 139 * GB, 139 * GB)])
def test_what_is_reserved_and_what_lay_between_samples_is_part_of_the_peak(metric: str, more: int, peak: int) -> None:
    assert found("memory.device_peak", [*ROWS, (10 * S, "gpu-5", metric, more, "bytes")]).observed == peak


def test_one_token_less_than_the_workload_needs_fails() -> None:
    assert found("memory.kv_capacity", memory_rows(capacity=CAPACITY - 1)).outcome == "fail"


def test_the_logs_capacity_counts_where_it_is_less() -> None:
    log = make_log(PLAN, [(90 * S, "engine-core", "kv_cache_tokens", CAPACITY - 40)])
    verdict = watched(make_memory(PLAN), log).judge()
    assert criterion_of(verdict, "memory.kv_capacity").observed == CAPACITY - 40


def test_processes_that_decode_hold_the_cache() -> None:
    rows = [*ROWS, (70 * S, "process-1", "kv_cache_tokens", 200, "tokens")]
    assert found("memory.kv_capacity", rows).observed == CAPACITY + 200


LEFT_OUT: dict[str, Callable[[], CriterionResult]] = {
    "a device's series": lambda: found("memory.phases", without(subject="gpu-3", metric=USED)),
    "a device": lambda: found("memory.phases", devices=DEVICES[1:]),
    "the node": lambda: found("memory.phases", devices=DEVICES[:-1]),
    "the phase idle": lambda: found("memory.phases", phases=PHASES[1:]),
    "the phase warm": lambda: found("memory.phases", phases=[PHASES[0], PHASES[2]]),
    "the phase loaded": lambda: found("memory.phases", phases=[*PHASES[:2], PHASES[3]]),
    "the peak's interval": lambda: found("memory.device_peak", without(subject="gpu-5", between=(112, 148))),
    "a device's idle": lambda: found("memory.phases", without(subject="gpu-0", between=(0, 60))),
    "the interval of the trial": lambda: found("memory.workload", without(subject="gpu-5", between=(100, 140))),
    "a rank's parts": lambda: found("memory.parts", without(subject="tp0")),
    "the parts under load": lambda: found("memory.parts", [*without(subject="tp0"), *idle_parts("tp0")]),
}


def idle_parts(subject: str) -> list[SeriesRow]:
    return [(10 * S, who, what, value, unit) for _at, who, what, value, unit in ROWS if who == subject]


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_never_passes(what: str) -> None:
    result = LEFT_OUT[what]()
    assert (result.outcome, result.underlying) == ("inconclusive", "inconclusive")
    assert result.reason != "missing_evidence"


def test_a_slow_beat_hides_no_hole() -> None:
    rows = without(subject="gpu-2", metric=USED, between=(115, 145))
    assert found("memory.phases", rows, beat=3600 * S).reason == "series_has_hole"
    assert found("memory.phases", without(subject="gpu-2", metric=USED, between=(115, 135)), beat=S).outcome != "pass"


def test_no_phase_is_marked_away_around_a_hole() -> None:
    """Call only the seconds loaded in which a device was read: the trial still shows the hole."""
    rows = without(subject="gpu-2", metric=USED, between=(105, 145))
    phases = [*PHASES[:2], MemoryPhase("loaded", 170 * S, 190 * S)]
    assert found("memory.phases", rows, phases=phases).outcome == "pass"
    assert found("memory.workload", rows, phases=phases).reason == "workload_not_in_capture"


def test_every_accelerator_and_node_that_the_deployment_names_must_be_there() -> None:
    named = make_deployment(accelerators=("gpu-0", "gpu-99"))
    assert found("memory.phases", deployment=named).outcome == "inconclusive"
    assert (
        criterion_of(
            watched(make_memory(PLAN, deployment=make_deployment(nodes=(NODE, "node-b")))).judge(), "memory.phases"
        ).outcome
        == "inconclusive"
    )


def half(names: set[str]) -> VerifiedRecord:
    rows = [row for row in ROWS if row[1] in names or not row[1].startswith(("gpu-", NODE))]
    return make_memory(PLAN, rows, devices=[one for one in DEVICES if one.id in names])


def test_two_nodes_records_are_judged_together() -> None:
    first, second = half({"gpu-0", "gpu-1", "gpu-2", "gpu-3", NODE}), half({"gpu-4", "gpu-5", "gpu-6", "gpu-7"})
    assert gate_of(watched(first, second).judge(), "memory_envelope").outcome == "pass"
    assert criterion_of(watched(first).judge(), "memory.phases").reason == "device_not_watched"


def test_a_device_that_one_record_calls_host_is_still_an_accelerator() -> None:
    other = make_memory(PLAN, (), devices=(MemoryDevice("gpu-5", "host", TOTAL),), phases=())
    verdict = watched(make_memory(PLAN, memory_rows(TOTAL + 1)), other).judge()
    assert criterion_of(verdict, "memory.device_peak").outcome == "fail"
