"""A plan against a site: each thing that speaks against it, with a plan against which nothing does."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from moeplan_vllm_cuda.plugin import moeplan_check, moeplan_placement

import moeplan
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Plan, Scenario

SITE: dict[str, Any] = {
    "runtime": "vllm-cuda",
    "hardware": "h200",
    "acceleratorsPerNode": 8,
    "driver": "580.65.06",
    "engineVersion": "0.27.1",
    "expectedReadySeconds": 900,
    "nodes": [
        {"name": "node-a", "accelerators": 8, "freeAccelerators": 8, "driver": "580.65.06"},
        {"name": "node-b", "accelerators": 8, "freeAccelerators": 8, "driver": "580.65.06"},
    ],
}


def planned(model: str, profile: str | None, devices: int, sizes: Parallelism | None = None, **scenario: Any) -> Plan:
    roles = ("prefill", "decode") if profile == "pd_cluster" else ("serve",)
    parallelism = sizes or Parallelism(None, None, None, None)
    spec = DeploymentSpec(profile, parallelism, None, None, tuple(RoleSpec(role, None) for role in roles))
    hardware = scenario.pop("hardware", "h200")
    return moeplan.plan(moeplan.load_registry(), Scenario(model, hardware, devices, deployment=spec, **scenario))


def checked(plan: Plan, site: dict[str, Any] | None = None) -> dict[str, str]:
    """Return what counts by id, errors before warnings of the same id."""
    found = sorted(moeplan_check(plan, SITE if site is None else site), key=lambda one: one.severity, reverse=True)
    assert all(finding.file in ("plan", "site") and finding.line is None for finding in found)
    return {finding.id: finding.severity for finding in found if finding.severity != "info"}


K3: dict[str, Any] = {"input_tokens": 4096, "output_tokens": 1024, "concurrency": 8}


def test_a_plan_that_fits_its_nodes_passes() -> None:
    assert checked(planned("kimi-k3", "multi_node_tep", 16, **{**K3, "concurrency": 4})) == {}
    assert checked(planned("qwen3-30b-a3b", "single_node_tep", 8, **K3)) == {}


def test_a_calculated_shortage_stands_beside_what_the_recipe_says() -> None:
    plan = planned("kimi-k3", "multi_node_tp_dp", 16, Parallelism(8, 1, 2, None), **K3)
    assert checked(plan) == {"C-MEM-008": "warning"}


@pytest.mark.parametrize(
    ("fact", "plan"),
    [
        ("C-MEM-002", planned("kimi-k3", "single_node_tp", 8, **K3)),
        ("C-MEM-001", planned("kimi-k3", "single_node_tp", 8, **{**K3, "concurrency": 4})),
        ("C-K3-003", planned("kimi-k3", "multi_node_dep", 16, **K3)),
        ("C-PD-019", planned("kimi-k3", "pd_cluster", 32, **K3)),
        ("V-PLAN-001", planned("kimi-k3", "single_node_tp", 16, **K3)),
        ("V-PLAN-003", planned("kimi-k3", "multi_node_tp_dp", 16, **{**K3, "input_tokens": 65536})),
        ("V-PLAN-003", planned("kimi-k3", "multi_node_tp_dp", 16, **{**K3, "concurrency": 64})),
    ],
)
def test_what_speaks_against_a_plan(fact: str, plan: Plan) -> None:
    assert fact in checked(plan)


@pytest.mark.parametrize(
    ("fact", "change"),
    [
        ("V-PLAN-005", {"engineVersion": "0.26.0"}),
        ("C-DRV-001", {"driver": "575.57.08"}),
        ("V-PLAN-008", {"nodes": [{"name": "node-a", "freeAccelerators": 4}]}),
        ("V-PLAN-008", {"nodes": [{"name": "node-a", "unschedulable": True}]}),
        ("V-PLAN-010", {"nodes": [{"name": "a", "driver": "580.1"}, {"name": "b", "driver": "590.1"}]}),
        ("C-TIM-003", {"nodes": [{"name": "a", "storage": {"local": False}}, "node-b"]}),
    ],
)
def test_what_speaks_against_a_site(fact: str, change: dict[str, Any]) -> None:
    plan = planned("kimi-k3", "multi_node_tp_dp", 16, Parallelism(8, 1, 2, None), **K3)
    assert fact in checked(plan, {**SITE, **change})
    assert fact not in checked(plan)


def test_what_is_not_known_is_said() -> None:
    plan = planned("kimi-k3", None, 16, **K3)
    site = {key: value for key, value in SITE.items() if key != "engineVersion"}
    told = {finding.id: finding for finding in moeplan_check(plan, site)}
    assert told["V-PLAN-002"].severity == "info"
    assert told["V-PLAN-005"].message.startswith("not known for this version")


def test_a_draft_that_the_site_does_not_have() -> None:
    plan = planned("kimi-k3", "multi_node_tp_dp", 16, Parallelism(8, 1, 2, None), **K3)
    drafted = attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, draft_checkpoint_root="sha256:" + "0" * 64))
    assert checked(drafted)["V-PLAN-009"] == "error"
    assert "V-PLAN-009" not in checked(drafted, {**SITE, "modelNames": {"draft": "Kimi-K3-DSpark"}})


def test_a_site_of_nothing_is_checked_without_a_failure() -> None:
    for model, profile, devices in (("kimi-k3", "pd_cluster", 32), ("deepseek-v4-pro", "single_node_tp", 8)):
        moeplan_check(planned(model, profile, devices), {})


def test_placement_has_the_figures_of_the_arguments_that_will_run() -> None:
    plan = planned("kimi-k3", "multi_node_tep", 16, **{**K3, "concurrency": 4})
    (role,) = moeplan_placement(plan, SITE).roles
    assert (role.role, role.ranks) == ("serve", 16)
    assert role.budget_bytes.value is not None
    assert role.device_bytes.value is not None
    assert role.budget_bytes.value * 100 == pytest.approx(role.device_bytes.value * 97, rel=1e-9)
    assert moeplan_placement(planned("kimi-k3", None, 16), {}).roles[0].weight_bytes.value is None
