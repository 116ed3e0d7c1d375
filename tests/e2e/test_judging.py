"""What must hold of the verdict, on verdicts made by hand."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from e2e.judging import NOISE, complaints, unjudged
from moeplan.evaluation.next_steps import REASONS
from moeplan.model.plan import GATE_IDS

PREFIX = {"workload_sla": "sla"}


def criterion(gate: str, outcome: str = "pass", reason: str | None = None) -> dict[str, Any]:
    name = f"{PREFIX.get(gate, gate)}.one"
    return {"id": name, "outcome": outcome, "reason": reason, "binding": "loaded" if gate == "workload_sla" else None}


def verdict() -> dict[str, Any]:
    return {"gates": [{"id": gate, "outcome": "pass", "criteria": [criterion(gate)]} for gate in GATE_IDS]}


def changed(gate: str, outcome: str, reason: str | None) -> dict[str, Any]:
    one = deepcopy(verdict())
    found = next(item for item in one["gates"] if item["id"] == gate)
    found["outcome"] = outcome
    found["criteria"] = [criterion(gate, outcome, reason)]
    return one


def test_seven_passed_gates_leave_nothing_to_say() -> None:
    assert complaints(verdict(), strict=True) == []


@pytest.mark.parametrize("reason", sorted(NOISE))
def test_noise_is_an_excuse_but_not_for_evidence_to_keep(reason: str) -> None:
    one = changed("workload_sla", "inconclusive", reason)
    assert list(unjudged(one)) == [("sla.one", reason)]
    assert complaints(one, strict=False) == []
    assert complaints(one, strict=True) == [f"sla.one is inconclusive: {reason}"]


@pytest.mark.parametrize("gate", GATE_IDS)
def test_missing_evidence_is_none(gate: str) -> None:
    assert len(complaints(changed(gate, "inconclusive", "missing_evidence"), strict=False)) == 1


def test_a_slow_machine_may_fail_the_workload_and_nothing_before_it() -> None:
    assert complaints(changed("workload_sla", "fail", "above_limit"), strict=False) == []
    assert complaints(changed("artifact_integrity", "fail", "limit_not_met"), strict=False) == [
        "artifact_integrity is fail"
    ]
    assert complaints(changed("runtime_load", "blocked", None), strict=False) == ["runtime_load is blocked"]


def test_a_weaker_binding_and_a_missing_gate_are_named() -> None:
    one = verdict()
    next(item for item in one["gates"] if item["id"] == "workload_sla")["criteria"][0]["binding"] = "hashed"
    assert complaints(one, strict=False) == ["workload_sla is bound ['hashed'], and 'loaded' was expected"]
    one["gates"].pop()
    assert "there are not seven gates with criteria" in complaints(one, strict=False)


def test_the_list_of_noise_is_short_and_of_reasons_there_are() -> None:
    assert len(NOISE) <= 8
    assert {"missing_evidence", "binding_too_weak", "counters_contradict"}.isdisjoint(NOISE)
    assert NOISE & set(REASONS)
