"""The check of a plan and a site: one finding from one thing changed, and nothing of weight where all fits."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from moeplan_vllm_rocm_aiter.checking import check
from moeplan_vllm_rocm_aiter.placing import placement

from moeplan.catalogue.registries import load_registry
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Plan, Scenario
from moeplan.planning.builder import plan

_STORAGE = {"filesystem": "xfs", "source": "/dev/nvme0n1", "mountPoint": "/srv/nvme", "local": True}
_DRAFT = "sha256:" + "d" * 64


def _node(name: str, *roles: str, **changed: Any) -> dict[str, Any]:
    node = {"name": name, "accelerators": 8, "freeAccelerators": 8, "modelDirectory": "/srv/nvme/models"}
    return {**node, "storage": _STORAGE, **({"roles": list(roles)} if roles else {}), **changed}


def _plan(profile: str, *, draft: str | None = None, tp: int | None = 8, **scenario: Any) -> Plan:
    roles = (RoleSpec("prefill", None), RoleSpec("decode", None)) if "/dis" in profile else (RoleSpec("serve", None),)
    spec = DeploymentSpec(profile, Parallelism(tp, None, None, None), None, draft, roles)
    given: dict[str, Any] = {"model": "kimi-k3", "hardware": "mi355x", "devices": 8 * len(roles), **scenario}
    return plan(load_registry("1.1.0"), Scenario(deployment=spec, **given))


def _site(profile: str, *nodes: dict[str, Any], **changed: Any) -> dict[str, Any]:
    pair = (_node("gpu-node-a", "prefill"), _node("gpu-node-b", "decode"))
    listed = list(nodes or (pair if "/dis" in profile else pair[:1]))
    if "/dis" not in profile and not nodes:
        listed = [_node("gpu-node-a")]
    return {"hardware": "mi355x", "profile": profile, "nodes": listed, **changed}


def _faults(of: Plan, site: dict[str, Any]) -> set[str]:
    return {finding.id for finding in check(of, site) if finding.severity != "info"}


@pytest.mark.parametrize(
    "profile",
    ["opt/aggregated", "opt/aggregated-dspark", "opt/disaggregated", "opt/disaggregated-dspark", "stock/aggregated"],
)
def test_a_measured_combination_on_a_fitting_site_gives_nothing_of_weight(profile: str) -> None:
    draft = _DRAFT if profile.endswith("dspark") else None
    found = check(_plan(profile, draft=draft, concurrency=64), _site(profile))
    assert {finding.id for finding in found if finding.severity != "info"} == set()
    assert {finding.id for finding in found} == ({"R-PD-008"} if "/dis" in profile else set())


ONE, PAIR = "opt/aggregated", "opt/disaggregated"
_TAINT = {"key": "gpu", "value": "amd", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("profile", "changed", "expected", "path"),
    [
        (ONE, {"hardware": "mi300x"}, "R-CHO-009", "$.hardware"),
        (ONE, {"hardware": "h200"}, "R-CHO-004", "$.hardware"),
        (ONE, {"modelStorage": "nfs4"}, "R-WT-003", "$.modelStorage"),
        (ONE, {"nodes": [_node("a", storage={**_STORAGE, "filesystem": "nfs4"})]}, "R-WT-003", "$.nodes[0].storage"),
        (ONE, {"nodes": [_node("a", storage={**_STORAGE, "local": False})]}, "R-WT-003", "$.nodes[0].storage"),
        (ONE, {"nodes": [_node("a", freeAccelerators=7)]}, "R-RES-003", "$.nodes[0].freeAccelerators"),
        (ONE, {"nodes": [_node("a", unschedulable=True)]}, "R-RES-003", "$.nodes[0].unschedulable"),
        (ONE, {"nodes": [_node("a", taints=[_TAINT])]}, "R-RES-003", "$.nodes[0].taints[0]"),
        (
            ONE,
            {"nodes": [_node("a", acceleratorModel="AMD Instinct MI300X")]},
            "R-CHO-004",
            "$.nodes[0].acceleratorModel",
        ),
        (PAIR, {"nodes": 1}, "R-PH-004", "$.nodes"),
        (PAIR, {"nodes": [_node("a", "prefill"), _node("b", "prefill")]}, "R-PH-004", "$.nodes"),
        (ONE, {"images": {"engine": "x/kimi@sha256:" + "0" * 64}}, "R-IMG-001", "$.images.engine"),
        (ONE, {"images": {"overlay": "x/infera-overlay@sha256:" + "0" * 64}}, "R-IMG-003", "$.images.overlay"),
        (ONE, {"kubernetes": {"version": "1.27.4+k3s1"}}, "R-CHO-005", "$.kubernetes.version"),
        ("opt/aggregated-dspark", {"modelNames": {"target": "Kimi-K3"}}, "R-WT-002", "$.modelNames.draft"),
        ("stock/aggregated-kvd", {"nodes": [_node("a", driver="6.14.14")]}, "R-CHO-006", "$.nodes[0].driver"),
    ],
)
def test_a_site_that_does_not_fit(profile: str, changed: dict[str, Any], expected: str, path: str) -> None:
    draft = _DRAFT if profile.endswith("dspark") else None
    found = check(_plan(profile, draft=draft), {**_site(profile), **changed})
    assert (expected, path, "site") in {(one.id, one.path, one.file) for one in found if one.severity != "info"}
    assert _faults(_plan(profile, draft=draft), {**_site(profile), **changed}) <= {expected, "R-CHO-011"}


def test_a_tolerated_taint() -> None:
    site = _site(ONE, _node("a", taints=[_TAINT]), tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert _faults(_plan(ONE), site) == set()
    site["tolerations"] = [{"key": "gpu", "value": "nvidia"}]
    assert _faults(_plan(ONE), site) == {"R-RES-003"}


def test_free_accelerators_that_nobody_counted_are_told() -> None:
    node = _node("a")
    node.pop("freeAccelerators")
    assert [(one.id, one.severity) for one in check(_plan(ONE), _site(ONE, node))] == [("R-RES-003", "info")]


@pytest.mark.parametrize(
    ("profile", "scenario", "expected"),
    [
        (ONE, {"input_tokens": 1_048_576, "output_tokens": 1}, "R-CHO-012"),
        (ONE, {"concurrency": 65}, "R-CHO-012"),
        (ONE, {"tp": 16}, "R-ARG-004"),
        (PAIR, {"devices": 8}, "R-ARG-004"),
        (ONE, {"model": "deepseek-v4-pro"}, "R-CHO-013"),
        ("opt/aggregated-dspark", {"draft": None}, "R-WT-002"),
        (ONE, {"draft": _DRAFT}, "R-CHO-015"),
        ("opt/aggregated-kvd", {}, "R-CHO-003"),
        ("opt/disaggregated-dspark-decode-only", {"draft": _DRAFT}, "R-ARG-007"),
        ("opt/aggregated-fp8-kv", {}, "R-CHO-003"),
        ("stock/disaggregated", {}, "R-CHO-011"),
    ],
)
def test_a_plan_that_does_not_fit(profile: str, scenario: dict[str, Any], expected: str) -> None:
    assert _faults(_plan(profile, **scenario), _site(profile)) == {expected}


def test_the_limits_themselves_fit() -> None:
    assert _faults(_plan(ONE, input_tokens=1_048_575, output_tokens=1), _site(ONE)) == set()
    assert _faults(_plan(ONE, concurrency=64), _site(ONE)) == set()


def test_what_does_not_fit_into_memory_is_told() -> None:
    long = _plan(ONE, input_tokens=100_000, output_tokens=1000, concurrency=64)
    assert _faults(long, _site(ONE)) == {"R-CHO-014"}
    assert _faults(_plan(ONE, tp=4), _site(ONE)) == {"R-ARG-004", "R-CHO-014"}


@pytest.mark.parametrize(
    ("profile", "severity"),
    [(ONE, "error"), ("opt/aggregated-dspark", "warning"), (PAIR, "error"), ("opt/disaggregated-dspark", "warning")],
)
def test_an_estimate_calls_nothing_impossible(profile: str, severity: str) -> None:
    # The draft's size is about 6.7 GB (R-WT-002), so what is left beside it is an estimate.
    draft = _DRAFT if profile.endswith("dspark") else None
    much = _plan(profile, draft=draft, input_tokens=100_000, output_tokens=1000, concurrency=64)
    found = [one for one in check(much, _site(profile)) if one.id == "R-CHO-014"]
    assert {one.severity for one in found} == {severity}
    assert len(found) == (2 if "/dis" in profile else 1)


def test_weights_a_rank_are_those_of_the_recipe() -> None:
    # "about 190 GB per rank" at TP 8 (R-ARG-025), as GPU tools count gigabytes
    figure = placement(_plan(ONE), _site(ONE)).roles[0].weight_bytes
    assert figure.value is not None
    assert 188 << 30 < figure.value < 194 << 30
    roles = placement(_plan("opt/disaggregated-dspark", draft=_DRAFT), _site("opt/disaggregated-dspark")).roles
    assert [role.role for role in roles] == ["prefill", "decode"]
    assert roles[0].draft_bytes.value == 6_700_000_000
    assert placement(_plan(ONE), {"profile": "own/one"}).roles[0].weight_bytes.value is None


def test_another_profile_and_none_are_only_asked_for_hardware() -> None:
    other = attrs.evolve(_plan(ONE), deployment=attrs.evolve(_plan(ONE).deployment, profile=None))
    assert check(other, {}) == ()
    assert {one.id for one in check(other, {"profile": "own/one", "hardware": "h200"})} == {"R-CHO-004"}
