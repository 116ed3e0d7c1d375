"""The check of a plan against a site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moeplan_vllm.placement import unplaced
from moeplan_vllm.plan_placement import plan_layout, plan_placement

from moeplan.model.placement import Placement
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFinding
from moeplan_vllm_cuda.checking.findings import found
from moeplan_vllm_cuda.checking.nodes import check_nodes
from moeplan_vllm_cuda.checking.recipe import check_recipe
from moeplan_vllm_cuda.checking.running import check_running, place_running, running_of

__all__ = ["check_plan", "place_plan"]


def check_plan(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Return what speaks against running the plan on the site.

    Arguments that will run are those that the plugin renders. What only manifests show (addresses, interfaces, probes,
    volumes) is lint's part.
    """
    profile = site.get("profile") or plan.deployment.profile
    findings = [*check_recipe(plan, site, profile), *check_nodes(plan, site)]
    if not isinstance(profile, str):
        message = "neither the plan nor the site names a profile"
        return (*findings, found("V-PLAN-002", "plan", "$.deployment.profile", message))
    running, refused = running_of(plan, site, profile)
    findings += refused
    if running is not None:
        findings += check_running(plan, site, profile, running)
    return tuple(dict.fromkeys(findings))


def place_plan(plan: Plan, site: Mapping[str, Any]) -> Placement:
    """Return where the plan puts tensors and cache with the arguments that will run; not known without a profile."""
    profile = site.get("profile") or plan.deployment.profile
    running = running_of(plan, site, profile)[0] if isinstance(profile, str) else None
    if running is None:
        return plan_placement(plan, {}, plan_layout(plan))
    placed, ranks = place_running(plan, running), running.sizes.layout.ranks
    roles = dict.fromkeys((*placed, *(role.role for role in plan.deployment.roles)))
    reason = "the profile has no such role"
    return Placement(tuple(placed[role].role if role in placed else unplaced(role, ranks, reason) for role in roles))
