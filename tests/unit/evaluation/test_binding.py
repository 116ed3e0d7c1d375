"""How strongly evidence is tied to the checkpoint: what each level needs, and what takes it away."""

from __future__ import annotations

import attrs
import pytest

from moeplan.model.evidence import EngineCounters
from moeplan.model.plan import Plan
from moeplan.model.policy import LeastBinding
from moeplan.model.verified import VerifiedRecord
from tests.build import (
    STRANGER,
    Case,
    build_plan,
    case_of,
    checkpoint_ref,
    criterion_of,
    make_checkpoint,
    make_digestion,
    make_evidence,
    make_trial,
    ready_case,
    with_criterion,
)

PLAN = build_plan()


def binding(case: Case, id: str = "sla.trials") -> str | None:
    return criterion_of(case.judge(), id).binding


def wrong_counters(plan: Plan, number: int) -> VerifiedRecord:
    return make_trial(plan, number, engine_counters=EngineCounters(61, 1920, 0, 300) if number == 1 else "closing")


def test_hashed_on_every_node_before_the_start() -> None:
    assert binding(ready_case()) == "hashed"


def test_revision_where_the_node_was_not_hashed_in_time() -> None:
    assert binding(case_of(PLAN, digestions=[])) == "revision"
    assert binding(case_of(PLAN, digestions=[make_digestion(PLAN, end="2026-03-01T09:00:01Z")])) == "revision"
    assert binding(case_of(PLAN, lambda plan, number: make_trial(plan, number, engine_start=None))) == "revision"


@pytest.mark.parametrize(
    "changes", [{"revision": None}, {"revision": "0" * 40}, {"repository": None}, {"repository": "Qwen/Other"}]
)
def test_declared_where_the_manifest_names_another_revision_or_none(changes: dict[str, str | None]) -> None:
    manifest = make_checkpoint(**changes)  # type: ignore[arg-type]
    plan = build_plan(checkpoint=checkpoint_ref(manifest))
    case = case_of(plan, checkpoint=manifest, digestions=[])
    assert binding(case) == "declared"
    assert binding(case, "residency.exact_tensor_bytes") == "declared"


def test_declared_without_a_manifest() -> None:
    case = ready_case()
    less = case.but(evidence=make_evidence(case.evidence.records, case.evidence.runs))
    assert binding(less) == "declared"


@pytest.mark.parametrize("missing", ["wrong", "none", "warmup"])
def test_declared_where_engine_and_client_tell_two_stories(missing: str) -> None:
    def trial(plan: Plan, number: int) -> VerifiedRecord:
        if missing == "wrong" or number != 3:
            return wrong_counters(plan, number)
        return make_trial(plan, number, engine_counters=None) if missing == "none" else make_trial(plan, 3, warmup=None)

    assert binding(case_of(PLAN, trial)) == "declared"


def test_the_weakest_trial_counts() -> None:
    verdict = case_of(PLAN, wrong_counters).judge()
    assert criterion_of(verdict, "sla.ttft_p95").binding == "declared"
    assert criterion_of(verdict, "sla.ttft_p95").reason == "binding_too_weak"


def test_a_hashing_that_no_trusted_runner_signed_binds_nothing() -> None:
    case = ready_case()
    records = tuple(
        attrs.evolve(item, signers=(STRANGER,)) if item.record.type == "checkpoint_digest" else item
        for item in case.evidence.records
    )
    found = criterion_of(case.but_evidence(records=records).judge(), "sla.ttft_p95")
    assert (found.outcome, found.reason, found.binding) == ("inconclusive", "binding_too_weak", "revision")


@pytest.mark.parametrize(
    ("least", "ready"), [("declared", True), ("revision", True), ("hashed", True), ("loaded", False)]
)
def test_the_policy_sets_the_least(least: str, ready: bool) -> None:
    case = ready_case().but_policy(least_binding=(LeastBinding("workload_sla", least),))
    found = criterion_of(case.judge(), "sla.ttft_p95")
    assert found.least_binding == least
    assert (found.outcome, found.reason) == (("pass", None) if ready else ("inconclusive", "binding_too_weak"))
    assert (case.judge().readiness == "ready") is ready


def test_the_stronger_of_plan_and_policy_holds() -> None:
    plan = with_criterion(PLAN, "sla.ttft_p95", min_binding="loaded")
    verdict = case_of(plan).judge()
    assert criterion_of(verdict, "sla.ttft_p95").least_binding == "loaded"
    assert criterion_of(verdict, "sla.ttft_p95").outcome == "inconclusive"
    assert criterion_of(verdict, "sla.trials").least_binding == "hashed"
    weak = ready_case().but_policy(least_binding=(LeastBinding("artifact_integrity", "declared"),))
    assert criterion_of(weak.judge(), "artifact.digest_before_execution").least_binding == "hashed"


def test_a_weak_binding_leaves_a_failure_one() -> None:
    case = case_of(PLAN, wrong_counters)
    found = criterion_of(case.judge(), "sla.engine_counters")
    assert (found.outcome, found.binding) == ("fail", "declared")


def test_the_plans_own_floor_has_no_binding() -> None:
    case = ready_case().but_policy(least_binding=(LeastBinding("static_residency", "loaded"),))
    verdict = case.judge()
    assert criterion_of(verdict, "residency.planned_floor").outcome == "pass"
    assert criterion_of(verdict, "residency.exact_tensor_bytes").reason == "binding_too_weak"
