"""Where a plan and a site speak of different things: what `check` reports and `render` refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from moeplan.errors import InputError, escape
from moeplan.model.plan import Plan
from moeplan.model.plugin import FactSource, PluginFinding

__all__ = ["disagreements"]

_DESIGN = (FactSource("moeplan documentation", "docs/site.md"),)


def disagreements(plan: Plan, site: Mapping[str, Any]) -> Iterator[PluginFinding]:
    """Yield where the plan and the site speak of different things; no plugin is needed for that.

    Args:
        plan: the plan, form 1.1.0.
        site: the site as JSON values, whole or in part.
    """
    planned = plan.deployment.profile
    if planned is not None and site.get("profile", planned) != planned:
        message = f"the plan is for profile {planned}, the site for {site['profile']}"
        yield _finding("SITE-PROFILE", "$.profile", message, "what runs is not what was planned")
    yield from _capacity(plan, site)
    if plan.readiness.status == "blocked":
        reason = f"the plan is blocked: {plan.readiness.reason}"
        made = _finding("PLAN-BLOCKED", "$.readiness.status", reason, "the checkpoint does not fit or cannot run")
        yield attrs.evolve(made, file="plan")


def _capacity(plan: Plan, site: Mapping[str, Any]) -> Iterator[PluginFinding]:
    target, nodes = plan.target, site.get("nodes")
    count = len(nodes) if isinstance(nodes, list | tuple) else nodes
    per_node = site.get("acceleratorsPerNode", target.accelerators_per_node)
    if "hardware" in site and not _same_hardware(site["hardware"], target.hardware_id):
        message = f"the plan is for {target.hardware_id}, the site has {site['hardware']}"
        yield _finding("SITE-HARDWARE", "$.hardware", message, "every figure of the plan is another machine's")
    if "acceleratorsPerNode" in site and per_node != target.accelerators_per_node:
        message = f"the plan counts {target.accelerators_per_node} accelerators a node, the site has {per_node}"
        yield _finding("SITE-PER-NODE", "$.acceleratorsPerNode", message, "the rounding to whole nodes is wrong")
    if isinstance(count, int) and count * per_node < target.requested_accelerators:
        message = (
            f"{count} node(s) of {per_node} are fewer than the plan's {target.requested_accelerators} accelerators"
        )
        yield _finding("SITE-NODES", "$.nodes", message, "pods stay pending")


def _same_hardware(stated: str, planned: str) -> bool:
    from moeplan.catalogue.registries import find_accelerator, load_registry

    try:
        return find_accelerator(load_registry(), stated).id == planned
    except InputError:
        return stated == planned


def _finding(name: str, path: str, message: str, consequence: str) -> PluginFinding:
    return PluginFinding(
        id=name,
        severity="error",
        path=path,
        file="site",
        message=escape(message, 1000),
        consequence=consequence,
        silent="no",
        remedy="make the plan for the site, or name the right site",
        sources=_DESIGN,
    )
