"""What the vLLM plugins offer as criteria: for a draft, and for prefill and decode apart."""

from __future__ import annotations

import attrs
import pytest
from moeplan_vllm.criteria import offered_criteria

from moeplan.catalogue.registries import load_registry
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Plan, Scenario
from moeplan.planning.builder import plan


def planned(draft: bool, *roles: str) -> Plan:
    spec = DeploymentSpec(
        None, Parallelism(8, 1, 1, 1), None, "sha256:" + "a" * 64 if draft else None, (RoleSpec("serve", None),)
    )
    spec = attrs.evolve(spec, roles=tuple(RoleSpec(role, None) for role in roles))
    return plan(load_registry(), Scenario("kimi-k3", "mi355x", 16, deployment=spec))


@pytest.mark.parametrize(
    ("draft", "roles", "expected"),
    [
        (False, ("serve",), []),
        (True, ("serve",), [("x.draft_never_eager", "eq", 0)]),
        (False, ("prefill", "decode"), [("x.kv_handed_over", "ge", 9800), ("x.decode_prefills_nothing", "le", 200)]),
        (False, ("prefill",), []),
    ],
)
def test_offered(draft: bool, roles: tuple[str, ...], expected: list[tuple[str, str, int]]) -> None:
    offered = offered_criteria("x", planned(draft, *roles))
    assert [(one.id, one.comparator, one.limit) for one in offered] == expected
