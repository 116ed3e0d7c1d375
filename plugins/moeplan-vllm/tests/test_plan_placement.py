"""A plan's placement: what the hook of a plugin answers."""

from __future__ import annotations

from decimal import Decimal

import attrs
from moeplan_vllm.memory import Settings
from moeplan_vllm.plan_placement import plan_layout, plan_placement

import moeplan
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Plan, Scenario

SETTINGS = Settings(utilisation=Decimal("0.95"), request_tokens=5120)


def planned(model: str, tensor: int | None, experts: int | None = None) -> Plan:
    sizes = Parallelism(tensor, 1, 1, experts)
    roles = (RoleSpec("prefill", None), RoleSpec("decode", None))
    spec = DeploymentSpec(None, sizes, None, None, roles)
    scenario = Scenario(model, "h200", 16, deployment=spec)
    return moeplan.plan(moeplan.load_registry(), scenario)


def test_each_role_of_the_plan_is_placed() -> None:
    plan = planned("kimi-k3", 16, 16)
    layout = plan_layout(plan)
    assert layout is not None
    assert layout.expert
    placement = plan_placement(plan, {"decode": SETTINGS}, layout)
    prefill, decode = placement.roles
    assert (prefill.role, decode.role) == ("prefill", "decode")
    assert round(Decimal(decode.weight_bytes.value or 0) / 2**30, 1) == Decimal("101.7")
    assert prefill.weight_bytes.value is None
    assert prefill.weight_bytes.statement == "no arguments for this role"


def test_open_sizes_and_unknown_models_are_said_to_be_so() -> None:
    plan = planned("kimi-k3", None)
    assert plan_layout(plan) is None
    role = plan_placement(plan, {"decode": SETTINGS}, None).roles[1]
    assert (role.ranks, role.kv_tokens.value) == (16, None)
    assert "open" in role.kv_tokens.statement
    plan = planned("kimi-k3", 8)
    stranger = attrs.evolve(plan, artifact=attrs.evolve(plan.artifact, repository="who/knows"))
    role = plan_placement(stranger, {"decode": SETTINGS}, plan_layout(stranger)).roles[1]
    assert role.weight_bytes.value is None
    assert role.device_bytes.value is not None
