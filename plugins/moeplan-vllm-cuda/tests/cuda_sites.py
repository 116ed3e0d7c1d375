"""Made sites and plans for every profile, and what is rendered for them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import attrs
import yaml
from moeplan_vllm_cuda.plugin import moeplan_runtime
from moeplan_vllm_cuda.rendering.render import render

from moeplan.catalogue.registries import load_registry
from moeplan.hooks.plain_data import freeze
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Plan, Scenario
from moeplan.model.rendering import Rendering
from moeplan.planning.builder import plan as make_plan
from moeplan.rendering.assembly import RenderedSet, RenderedWith, assemble
from moeplan.site.reading import load_site

__all__ = ["CASES", "Case", "files_of", "objects_of", "plan_for", "rendering_of", "set_of", "site_for", "templates_of"]

ENGINE = "vllm/vllm-openai:v0.27.1@sha256:" + "1a" * 32
ROUTER = "registry.example/vllm-router@sha256:" + "2b" * 32
DRAFT = "sha256:" + "3c" * 32
_NAMES = {
    "kimi-k3": "Kimi-K3",
    "deepseek-v4-pro": "DeepSeek-V4-Pro",
    "glm-5-2": "GLM-5.2",
    "qwen3-30b-a3b": "Qwen3-30B-A3B",
}


@attrs.frozen
class Case:
    """One deployment: model, accelerators, profile, sizes that the plan gives (TP, PP, DP, EP), whether it drafts."""

    model: str
    devices: int
    profile: str
    sizes: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
    drafts: bool = False
    concurrency: int = 4


CASES = {
    "single-node-tp": Case("qwen3-30b-a3b", 8, "single_node_tp", (4, None, None, None)),
    "single-node-tep": Case("deepseek-v4-pro", 8, "single_node_tep"),
    "single-node-dep": Case("qwen3-30b-a3b", 8, "single_node_dep", concurrency=100),
    "multi-node-tp": Case("glm-5-2", 16, "multi_node_tp"),
    "multi-node-tep-dspark": Case("kimi-k3", 16, "multi_node_tep", drafts=True),
    "multi-node-tp-pp": Case("kimi-k3", 16, "multi_node_tp_pp"),
    "multi-node-tp-dp": Case("kimi-k3", 16, "multi_node_tp_dp", (8, 1, 2, None)),
    "multi-node-tp-dp-ep": Case("kimi-k3", 16, "multi_node_tp_dp", (8, 1, 2, 16)),
    "multi-node-dep": Case("glm-5-2", 16, "multi_node_dep"),
    "multi-node-dep-3": Case("qwen3-30b-a3b", 24, "multi_node_dep"),
    "pd-cluster": Case("qwen3-30b-a3b", 16, "pd_cluster"),
    "pd-cluster-4": Case("glm-5-2", 32, "pd_cluster", (8, 1, 2, 16)),
}
CASES["single-node-tp"] = attrs.evolve(CASES["single-node-tp"], devices=4)


@cache
def plan_for(case: Case) -> Plan:
    """Return a case's plan on H200."""
    roles = ("prefill", "decode") if case.profile == "pd_cluster" else ("serve",)
    spec = DeploymentSpec(
        case.profile,
        Parallelism(*case.sizes),
        None,
        DRAFT if case.drafts else None,
        tuple(RoleSpec(role, None) for role in roles),
    )
    scenario = Scenario(case.model, "h200", case.devices, 8, concurrency=case.concurrency, deployment=spec)
    return make_plan(load_registry(), scenario)


def site_for(case: Case, **more: Any) -> dict[str, Any]:
    """Return a site as JSON values; model directories differ between the first node and the others."""
    count = -(-case.devices // 8)
    roles = ["leader"] + ["worker"] * (count - 1) if count > 1 else ["serve"]
    if case.profile == "pd_cluster":
        roles = ["prefill"] * (count // 2) + ["decode"] * (count // 2)
    nodes = [
        {
            "name": f"gpu-{index + 1}",
            "roles": [role],
            "address": f"192.0.2.{index + 1}",
            "modelDirectory": "/mnt/nvme/models" if index == 0 else "/mnt/array/models",
        }
        for index, role in enumerate(roles)
    ]
    names = {"target": _NAMES[case.model]} | ({"draft": "Kimi-K3-speculator.dspark"} if case.drafts else {})
    network = {"interface": "ens1", "gidIndex": 3, "rdmaDevices": ["mlx5_0", "mlx5_1"]} if count > 1 else {}
    head = {"kind": "site", "schemaVersion": "1.0.0", "runtime": "vllm-cuda", "profile": case.profile}
    site = {
        **head,
        "namespace": "serving",
        "hardware": "h200",
        "acceleratorsPerNode": 8,
        "driver": "580.65.06",
        "engineVersion": "0.27.1",
        "expectedReadySeconds": 1500,
        "modelStorage": "local-xfs",
        "nodes": nodes,
        "images": {"engine": ENGINE, "router": ROUTER},
        "network": network,
        "modelNames": names,
        "servedModelName": case.model,
    }
    return {**site, **more}


def rendering_of(case: Case, **more: Any) -> Rendering:
    """Return what the plugin renders."""
    return render(plan_for(case), freeze(site_for(case, **more)))


def set_of(case: Case) -> RenderedSet:
    """Return what the core makes of it."""
    [known] = [one for one in moeplan_runtime().profiles if one.id == case.profile]
    site = load_site(json.dumps(site_for(case)).encode())
    return assemble(plan_for(case), site, rendering_of(case), RenderedWith("vllm-cuda@0.1.0", "vllm", known))


def files_of(case: Case, **more: Any) -> dict[str, str]:
    """Return each rendered file's text by name."""
    return {file.name: file.text for file in rendering_of(case, **more).files}


def objects_of(case: Case, **more: Any) -> list[dict[str, Any]]:
    """Return every object that is rendered."""
    files = rendering_of(case, **more).files
    return [value for file in files if file.form == "manifest" for value in yaml.safe_load_all(file.text)]


def templates_of(case: Case, **more: Any) -> dict[str, dict[str, Any]]:
    """Return the pod templates of engines by workload and part (``NAME``, or ``NAME/leader`` and ``NAME/worker``)."""
    found: dict[str, dict[str, Any]] = {}
    for value in objects_of(case, **more):
        name = value["metadata"]["name"]
        if value["kind"] == "LeaderWorkerSet":
            template = value["spec"]["leaderWorkerTemplate"]
            found[f"{name}/leader"], found[f"{name}/worker"] = template["leaderTemplate"], template["workerTemplate"]
        elif value["kind"] == "Deployment" and not name.endswith("-router"):
            found[name] = value["spec"]["template"]
    return found
