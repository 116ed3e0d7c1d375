"""What the model's recipe says of release, hardware and strategy, and what is known of the profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moeplan_vllm.families import family_of

from moeplan.manifests.versions import parse_version
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFinding
from moeplan_vllm_cuda.checking.findings import found
from moeplan_vllm_cuda.gpus import find_gpu
from moeplan_vllm_cuda.profiles import known_status
from moeplan_vllm_cuda.recipes import Recipe, Variant, find_variant

__all__ = ["check_recipe"]


def check_recipe(plan: Plan, site: Mapping[str, Any], profile: str | None) -> Iterator[PluginFinding]:
    """Yield what the recipe and the profile's status say against the plan."""
    gpu = find_gpu(plan.target.hardware_id)
    hardware = plan.target.hardware_id if gpu is None else gpu.id
    if profile is not None:
        status = known_status(profile, family_of(plan.artifact.repository), hardware)
        if status is not None and status["status"] == "reported_failing":
            yield found(status["fact"], "plan", "$.deployment.profile", f"{profile}: {status['statement']}")
    pair = find_variant(plan.artifact.repository)
    if pair is None:
        return
    recipe, variant = pair
    yield from _release(recipe, variant, site)
    yield from _hardware(recipe, variant, hardware)
    if profile is not None and not _offers(recipe, profile, hardware):
        offered = ", ".join(recipe.strategies)
        yield found("V-PLAN-007", "plan", "$.deployment.profile", f"the recipe offers {offered}, and not {profile}")


def _offers(recipe: Recipe, profile: str, hardware: str) -> bool:
    """Return whether a recipe offers a strategy, for all hardware or for this."""
    return profile in recipe.strategies or recipe.strategy_hardware.get(profile, {}).get(hardware) == "supported"


def _release(recipe: Recipe, variant: Variant, site: Mapping[str, Any]) -> Iterator[PluginFinding]:
    least = variant.minimum_version or recipe.minimum_version
    stated = site.get("engineVersion")
    version, needed = parse_version(stated if isinstance(stated, str) else None), parse_version(least)
    if version is None:
        message = f"not known for this version: the recipe of {variant.model} asks for {least} or newer"
        yield found("V-PLAN-005", "site", "$.engineVersion", message, "info")
    elif needed is not None and version < needed:
        yield found("V-PLAN-005", "site", "$.engineVersion", f"vLLM {version} for {variant.model}, which needs {least}")


def _hardware(recipe: Recipe, variant: Variant, hardware: str) -> Iterator[PluginFinding]:
    path = "$.target.hardwareId"
    if recipe.hardware.get(hardware) == "unsupported" or (variant.hardware and hardware not in variant.hardware):
        yield found("V-PLAN-006", "plan", path, f"the recipe marks {variant.model} as not for {hardware}")
    elif recipe.hardware.get(hardware) != "verified":
        message = f"the recipe of {variant.model} does not say that it was tried on {hardware}"
        yield found("V-PLAN-006", "plan", path, message, "info")
