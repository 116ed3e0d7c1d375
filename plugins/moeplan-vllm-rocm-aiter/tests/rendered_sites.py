"""A made site and a plan for each combination that is rendered."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from moeplan_vllm_rocm_aiter.combos import combos
from moeplan_vllm_rocm_aiter.plugin import moeplan_runtime
from moeplan_vllm_rocm_aiter.render import render

from moeplan.catalogue.registries import load_registry
from moeplan.hooks.plain_data import freeze
from moeplan.model.plan import Plan, Scenario
from moeplan.model.rendering import Rendering
from moeplan.planning.builder import plan as make_plan
from moeplan.rendering.assembly import RenderedSet, RenderedWith, assemble
from moeplan.site.reading import load_site

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
PROFILES = tuple(combos()["profiles"])


@cache
def plan_for(profile: str) -> Plan:
    """Return a plan of as many accelerators as the profile has."""
    return make_plan(load_registry(), Scenario("kimi-k3", "mi355x", 16 if "disaggregated" in profile else 8))


def site_for(profile: str, **more: Any) -> dict[str, Any]:
    """Return a site as JSON values: paths differ from node to node."""
    nodes = [{"name": "gpu-a", "roles": ["serve", "prefill"], "modelDirectory": "/mnt/nvme/models"}]
    if "disaggregated" in profile:
        nodes.append({"name": "gpu-b", "roles": ["decode"], "modelDirectory": "/mnt/array/models"})
    head = {"kind": "site", "schemaVersion": "1.0.0", "runtime": "vllm-rocm-aiter", "profile": profile}
    return {**head, "namespace": "infera", "nodes": nodes, **more}


def rendering_of(profile: str, **more: Any) -> Rendering:
    """Return what the plugin renders."""
    return render(plan_for(profile), freeze(site_for(profile, **more)))


def set_of(profile: str) -> RenderedSet:
    """Return what the core makes of it."""
    [known] = [one for one in moeplan_runtime().profiles if one.id == profile]
    site = load_site(json.dumps(site_for(profile)).encode())
    made_with = RenderedWith("vllm-rocm-aiter@0.1.0", "vllm", known)
    return assemble(plan_for(profile), site, rendering_of(profile), made_with)


def objects_of(profile: str, **more: Any) -> list[dict[str, Any]]:
    """Return every object that is rendered."""
    files = rendering_of(profile, **more).files
    return [value for file in files for value in yaml.safe_load_all(file.text)]


def services_of(profile: str, **more: Any) -> dict[str, Any]:
    """Return the services of the InferaDeployment."""
    [found] = [one for one in objects_of(profile, **more) if one["kind"] == "InferaDeployment"]
    services: dict[str, Any] = found["spec"]["services"]
    return services


def flags_of(container: dict[str, Any]) -> dict[str, Any]:
    """Return a command's options: a flag is True, JSON text is its value."""
    words = container["command"][4:]
    found: dict[str, Any] = {}
    for at, word in enumerate(words):
        if word.startswith("--"):
            value = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("--") else True
            found[word] = json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    return found


def env_of(container: dict[str, Any]) -> dict[str, str]:
    """Return a container's environment; a field of the pod is ``fieldRef:PATH``."""
    return {
        one["name"]: one["value"] if "value" in one else "fieldRef:" + one["valueFrom"]["fieldRef"]["fieldPath"]
        for one in container["env"]
    }
