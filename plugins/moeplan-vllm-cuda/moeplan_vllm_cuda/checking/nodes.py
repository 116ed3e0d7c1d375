"""What the site's nodes must have: free accelerators, a driver that knows the image's CUDA, the draft, local disks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moeplan.manifests.versions import parse_range, parse_version
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFinding
from moeplan_vllm_cuda.checking.findings import found
from moeplan_vllm_cuda.rules.derived import driver_needed

__all__ = ["check_nodes"]

_MAJOR = re.compile(r"[rR]?([0-9]{3})\b", re.ASCII)


def check_nodes(plan: Plan, site: Mapping[str, Any]) -> Iterator[PluginFinding]:
    """Yield what the site's nodes lack for the plan."""
    listed = site.get("nodes")
    nodes = [
        (f"$.nodes[{index}]", node)
        for index, node in enumerate(listed if isinstance(listed, list | tuple) else ())
        if isinstance(node, Mapping)
    ]
    yield from _accelerators(plan, nodes)
    yield from _drivers(site, nodes)
    yield from _alike(nodes)
    yield from _draft(plan, site)
    yield from _disks(nodes)


Nodes = list[tuple[str, Mapping[str, Any]]]


def _accelerators(plan: Plan, nodes: Nodes) -> Iterator[PluginFinding]:
    wanted = min(plan.target.requested_accelerators, plan.target.accelerators_per_node)
    for path, node in nodes:
        if node.get("roles") in (["server"], ("server",)):
            continue
        free = node.get("freeAccelerators", node.get("accelerators"))
        if isinstance(free, int) and free < wanted:
            message = f"node {node.get('name')} has {free} accelerators free, the plan takes {wanted} a node"
            yield found("V-PLAN-008", "site", f"{path}.freeAccelerators", message)
        if node.get("unschedulable") is True:
            message = f"node {node.get('name')} takes no new pods (cordoned)"
            yield found("V-PLAN-008", "site", f"{path}.unschedulable", message)


def _drivers(site: Mapping[str, Any], nodes: Nodes) -> Iterator[PluginFinding]:
    """Yield drivers older than what the release's own image needs; other images tell by their tags, in lint."""
    version = parse_version(str(site.get("engineVersion")))
    if version is None or parse_range(">=0.27").contains(version) is not True:
        return
    needed = driver_needed("13.0")
    stated = [("$.driver", site.get("driver")), *((f"{path}.driver", node.get("driver")) for path, node in nodes)]
    for path, driver in stated:
        match = _MAJOR.match(driver) if isinstance(driver, str) else None
        if match is not None and needed is not None and int(match[1]) < needed:
            message = f"driver {driver}; the image of vLLM {version} without a suffix is built for CUDA 13"
            yield found("C-DRV-001", "site", path, f"{message}, which needs {needed}")


def _alike(nodes: Nodes) -> Iterator[PluginFinding]:
    for key in ("driver", "acceleratorModel", "accelerators"):
        values = {str(node[key]) for _, node in nodes if node.get(key) is not None}
        if len(values) > 1:
            yield found("V-PLAN-010", "site", "$.nodes", f"{key} differs between nodes: {', '.join(sorted(values))}")


def _draft(plan: Plan, site: Mapping[str, Any]) -> Iterator[PluginFinding]:
    names = site.get("modelNames")
    named = names.get("draft") if isinstance(names, Mapping) else None
    if plan.deployment.draft_checkpoint_root is not None and not named:
        yield found("V-PLAN-009", "site", "$.modelNames.draft", "the plan has a draft and the site names no directory")


def _disks(nodes: Nodes) -> Iterator[PluginFinding]:
    for path, node in nodes:
        storage = node.get("storage")
        if isinstance(storage, Mapping) and storage.get("local") is False:
            message = f"node {node.get('name')} reads its weights over the network"
            yield found("C-TIM-003", "site", f"{path}.storage.local", message)
