"""The plugin vllm-cuda: vLLM on NVIDIA GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moeplan.hooks.specs import hookimpl
from moeplan.model.placement import Placement
from moeplan.model.plan import Plan
from moeplan.model.plugin import LogSignature, OfferedCriterion, PluginFinding, RuntimeInfo
from moeplan.model.rendering import LintRequest, Rendering
from moeplan_vllm_cuda.naming import NAME, ORIGIN, PACKAGE, owns
from moeplan_vllm_cuda.profiles import cuda_profiles

MOEPLAN_API = 1


@hookimpl
def moeplan_runtime() -> RuntimeInfo:
    """Say what the plugin is."""
    from importlib.metadata import version

    from moeplan_vllm.facts import ORIGIN as VLLM_ORIGIN
    from moeplan_vllm.facts import PACKAGE as VLLM_PACKAGE

    from moeplan.facts.files import rules_of

    return RuntimeInfo(
        engine="vllm",
        vendor="nvidia",
        plugin=NAME,
        version=version("moeplan-vllm-cuda"),
        profiles=cuda_profiles(),
        rules=(*rules_of(PACKAGE, ORIGIN), *rules_of(VLLM_PACKAGE, VLLM_ORIGIN)),
    )


@hookimpl
def moeplan_check(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Check whether the plan can run as the site is."""
    from moeplan_vllm_cuda.checking.check import check_plan

    return check_plan(plan, site)


@hookimpl
def moeplan_criteria(plan: Plan, site: Mapping[str, Any]) -> tuple[OfferedCriterion, ...]:
    """Offer what proves speculation and the hand-over of KV cache."""
    from moeplan_vllm.criteria import offered_criteria

    return offered_criteria(NAME, plan)


@hookimpl
def moeplan_placement(plan: Plan, site: Mapping[str, Any]) -> Placement:
    """Say where the plan puts tensors and KV cache."""
    from moeplan_vllm_cuda.checking.check import place_plan

    return place_plan(plan, site)


@hookimpl
def moeplan_owns_manifest(manifest: Mapping[str, Any] | str) -> bool | None:
    """Say whether a manifest runs vLLM on NVIDIA GPUs."""
    return owns(manifest)


@hookimpl
def moeplan_lint(request: LintRequest, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Hold manifests and scripts against the facts."""
    from moeplan.facts.judge import judge
    from moeplan.facts.launches import read_scene
    from moeplan_vllm_cuda.knowledge import cuda_facts, knowledge
    from moeplan_vllm_cuda.rules.registered import RULES

    scene = read_scene(request.sources, knowledge(), site, request.profile)
    return judge(scene, cuda_facts(), RULES)


@hookimpl
def moeplan_log_signatures() -> tuple[LogSignature, ...]:
    """Say which log lines mean what."""
    from moeplan_vllm_cuda.knowledge import cuda_facts

    return cuda_facts().log_signatures()


@hookimpl
def moeplan_render(plan: Plan, site: Mapping[str, Any]) -> Rendering:
    """Render the plan on the site: manifests, scripts, guide."""
    from moeplan_vllm_cuda.rendering.render import render

    return render(plan, site)
