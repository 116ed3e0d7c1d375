"""Each expectation of a policy has a case in which the subject is another."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from moeplan.model.policy import Waiver
from moeplan.model.verdict import Verdict
from tests.build import (
    RUNTIME,
    Case,
    build_plan,
    case_of,
    checkpoint_ref,
    digest_of,
    make_checkpoint,
    make_deployment,
    make_evidence,
    make_trial,
    ready_case,
)

OTHER = digest_of("other")


def expecting(case: Case, workload: dict[str, Any] | None = None, **changes: Any) -> Case:
    expects = case.policy.expects
    assert expects is not None
    expected = attrs.evolve(expects.workload, **(workload or {}))
    return case.but_policy(expects=attrs.evolve(expects, workload=expected, **changes))


def unexpected(verdict: Verdict) -> list[str]:
    assert verdict.readiness == ("ready" if not verdict.reasons else "inconclusive")
    assert {reason.code for reason in verdict.reasons} <= {"unexpected_subject"}
    return [reason.message.removesuffix(" is not what the policy expects") for reason in verdict.reasons]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"checkpoint_roots": (OTHER,)}, "the checkpoint root"),
        ({"checkpoint_roots": ()}, "the checkpoint root"),
        ({"models": ("kimi-k3",)}, "the model"),
        ({"hardware": ("h100",)}, "the hardware"),
        ({"accelerators_at_most": 7}, "the number of accelerators"),
        ({"reserve_basis_points_at_least": 1301}, "the memory reserve"),
        ({"runtimes": (OTHER,)}, "the runtime identity"),
        ({"runtimes": ()}, "the runtime identity"),
        ({"registries": (OTHER,)}, "the registry"),
    ],
)
def test_another_identity_is_not_ready(changes: dict[str, Any], named: str) -> None:
    assert unexpected(expecting(ready_case(), **changes).judge()) == [named]


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("input_tokens_at_least", 33, "the input length"),
        ("output_tokens_at_least", 6, "the output length"),
        ("concurrency_at_least", 5, "the concurrency"),
        ("target_ttft_ms_at_most", 999, "the TTFT target"),
        ("target_inter_token_ms_at_most", 49, "the inter-token target"),
        ("prefix_cache_share_basis_points_at_most", 499, "the declared prefix-cache share"),
        ("availability", "ha", "the availability"),
    ],
)
def test_a_weaker_workload_is_not_ready(name: str, value: int | str, named: str) -> None:
    assert unexpected(expecting(ready_case(), {name: value}).judge()) == [named]


@pytest.mark.parametrize(
    ("changes", "workload"),
    [
        ({"accelerators_at_most": None}, {}),
        ({"accelerators_at_most": 8}, {}),
        ({"models": ("kimi-k3", "qwen3-30b-a3b")}, {}),
        ({"runtimes": (OTHER, RUNTIME.digest)}, {}),
        ({"reserve_basis_points_at_least": 0}, {}),
        ({}, {"availability": None}),
        ({}, {"prefix_cache_share_basis_points_at_most": None}),
        ({}, {"input_tokens_at_least": 1, "target_ttft_ms_at_most": 5000}),
    ],
)
def test_a_wider_expectation_is_met(changes: dict[str, Any], workload: dict[str, Any]) -> None:
    assert unexpected(expecting(ready_case(), workload, **changes).judge()) == []


def test_an_undeclared_cache_share_is_not_the_expected_one() -> None:
    case = case_of(build_plan(prefix_cache_share_basis_points=None))
    verdict = expecting(case, {"prefix_cache_share_basis_points_at_most": 10_000}).judge()
    assert unexpected(verdict) == ["the declared prefix-cache share"]


def test_without_expectations_nothing_is_ready() -> None:
    verdict = ready_case().but_policy(expects=None).judge()
    assert [reason.code for reason in verdict.reasons] == ["unexpected_subject"]
    assert verdict.readiness == "inconclusive"
    assert all(gate.outcome == "pass" for gate in verdict.gates)


def test_a_plan_for_another_checkpoint_than_the_manifest_is_seen() -> None:
    other = make_checkpoint(tensor_bytes=61_064_245_250)
    case = case_of(build_plan(checkpoint=checkpoint_ref(other)))
    messages = [reason.message for reason in case.judge().reasons]
    assert "the plan's checkpoint is not what the policy expects" in messages


def test_evidence_of_another_checkpoint_is_not_ready_whatever_is_waived() -> None:
    elsewhere = attrs.evolve(make_deployment(), checkpoint_root=OTHER)
    case = case_of(build_plan(), lambda plan, number: make_trial(plan, number, deployment=elsewhere), digestions=[])
    rules = [rule.id for gate in case.plan.validation_gates for rule in gate.criteria]
    waived = case.but_policy(waivers=tuple(Waiver(rule, "accepted", "9999-12-31T23:59:59Z") for rule in rules))
    verdict = waived.judge()
    assert all(gate.outcome == "pass" for gate in verdict.gates)
    assert "the checkpoint of the evidence" in unexpected(verdict)


def test_the_subject_is_what_the_evidence_agrees_on() -> None:
    subject = ready_case().judge().subject
    assert subject.checkpoint_root == make_checkpoint().root
    assert subject.runtimes == (RUNTIME.digest,)
    assert (subject.model_id, subject.hardware_id, subject.accelerators) == ("qwen3-30b-a3b", "h200", 8)
    assert subject.deployment == ready_case().evidence.runs[0].manifest.deployment


def test_records_of_two_deployments_are_no_subject() -> None:
    plan = build_plan()
    other = make_deployment(environment=("VLLM_USE_V1=1",))
    case = case_of(plan, lambda plan, number: make_trial(plan, number, deployment=other))
    subject = case.judge().subject
    assert (subject.deployment, subject.runtimes) == (None, ())
    assert subject.checkpoint_root == make_checkpoint().root


def test_without_evidence_the_root_is_the_plans() -> None:
    case = ready_case()
    subject = case.but(evidence=make_evidence([])).judge().subject
    assert subject.checkpoint_root == make_checkpoint().root
    assert subject.deployment is None
    none = case.but(evidence=make_evidence([]), plan=build_plan(checkpoint=None)).judge().subject
    assert none.checkpoint_root is None
