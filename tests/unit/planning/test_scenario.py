"""Scenarios from JSON lines, and the parts of a plan that name them."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.errors import InputError
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec, RuntimeIdentity
from moeplan.model.plan import Scenario
from moeplan.planning.builder import OPEN_DEPLOYMENT, plan
from moeplan.planning.scenario import in_scenario_keys, parse_scenario, rebuild_scenario

LINE = {"model": "kimi-k3", "hardware": "h200", "devices": 8}
DIGEST = "sha256:" + "0" * 64


def test_missing_keys_take_the_defaults() -> None:
    assert parse_scenario(LINE) == Scenario("kimi-k3", "h200", 8)
    assert parse_scenario({**LINE, "reserveBps": 0, "devicesPerNode": 4}) == Scenario(
        "kimi-k3", "h200", 8, devices_per_node=4, reserve_basis_points=0
    )


@pytest.mark.parametrize(
    ("value", "issues"),
    [
        ([], [("$", "wrong_type")]),
        ({}, [("$.model", "missing_key"), ("$.hardware", "missing_key"), ("$.devices", "missing_key")]),
        ({**LINE, "reserve": 1, "a b": 2}, [("$.reserve", "unknown_key"), ('$["a b"]', "unknown_key")]),
        ({**LINE, "devices": "8", "runtime": 1}, [("$.devices", "wrong_type"), ("$.runtime", "wrong_type")]),
        ({**LINE, "devices": True}, [("$.devices", "wrong_type")]),
        ({**LINE, "devicesPerNode": None}, [("$.devicesPerNode", "wrong_type")]),
        ({**LINE, "reserveBps": 10_000}, [("$.reserveBps", "invalid_value")]),
        ({**LINE, "targetTtftMs": 0}, [("$.targetTtftMs", "invalid_value")]),
    ],
)
def test_faults_are_named_by_key(value: Any, issues: list[tuple[str, str]]) -> None:
    with pytest.raises(InputError) as caught:
        parse_scenario(value)
    assert [(issue.path, issue.code) for issue in in_scenario_keys(caught.value).issues] == issues


def test_command_line_tells_the_deployment() -> None:
    image = RuntimeIdentity("serve", "oci_image", DIGEST)
    deployment = DeploymentSpec(None, Parallelism(8, None, 2, 16), "fp8", None, (RoleSpec("serve", image),))
    scenario = Scenario("kimi-k3", "h200", 8, deployment=deployment, prefix_cache_share_basis_points=5)
    made = plan(load_registry(), scenario)
    assert made.reproducibility.cli.endswith(
        "--availability single --prefix-cache-share-bps 5 --tensor-parallel-size 8 --data-parallel-size 2"
        f" --expert-parallel-size 16 --precision fp8 --runtime-image {DIGEST} --json"
    )
    assert made.deployment == deployment
    assert rebuild_scenario(made).deployment == deployment


def test_open_deployment_is_written_out() -> None:
    made = plan(load_registry(), Scenario("kimi-k3", "h200", 8))
    assert made.deployment == OPEN_DEPLOYMENT
    assert [role.role for role in made.deployment.roles] == ["serve"]
    assert plan(load_registry(), rebuild_scenario(made)) == made
