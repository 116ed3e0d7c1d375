"""The plugin vllm-cpu: vLLM on CPUs, for development and tests; the worked example of the author's guide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moeplan.hooks.specs import hookimpl
from moeplan.model.plan import Plan
from moeplan.model.plugin import LogSignature, OfferedCriterion, PluginFinding, RuntimeInfo
from moeplan.model.rendering import LintRequest, Rendering

MOEPLAN_API = 1


@hookimpl
def moeplan_runtime() -> RuntimeInfo:
    """Say what the plugin is."""
    from importlib.metadata import version

    from moeplan_vllm_cpu.facts import all_facts
    from moeplan_vllm_cpu.profiles import profiles

    return RuntimeInfo(
        engine="vllm",
        vendor="cpu",
        plugin="vllm-cpu",
        version=version("moeplan-vllm-cpu"),
        profiles=profiles(),
        rules=all_facts().rules(),
    )


@hookimpl
def moeplan_check(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Check whether the plan can run as the site is."""
    from moeplan_vllm_cpu.checking import check

    return check(plan, site)


@hookimpl
def moeplan_criteria(plan: Plan, site: Mapping[str, Any]) -> tuple[OfferedCriterion, ...]:
    """Offer the criterion that a CPU host adds."""
    from moeplan_vllm_cpu.checking import criteria

    return criteria(plan, site)


@hookimpl
def moeplan_log_signatures() -> tuple[LogSignature, ...]:
    """Say which log lines mean what."""
    from moeplan_vllm_cpu.facts import all_facts

    return all_facts().log_signatures()


@hookimpl
def moeplan_owns_manifest(manifest: Mapping[str, Any] | str) -> bool | None:
    """Say whether a manifest or script runs vLLM on CPUs."""
    from moeplan_vllm_cpu.knowledge import owns

    return owns(manifest)


@hookimpl
def moeplan_lint(request: LintRequest, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Hold manifests and scripts against the facts."""
    from moeplan_vllm.rules.registered import RULES as VLLM_RULES

    from moeplan.facts.judge import judge
    from moeplan.facts.launches import read_scene
    from moeplan_vllm_cpu.facts import all_facts
    from moeplan_vllm_cpu.knowledge import knowledge
    from moeplan_vllm_cpu.rules import RULES

    scene = read_scene(request.sources, knowledge(), site, request.profile)
    return judge(scene, all_facts(), {**VLLM_RULES, **RULES})


@hookimpl
def moeplan_render(plan: Plan, site: Mapping[str, Any]) -> Rendering:
    """Render a start script, and a docker run and a Deployment where the site has what they need."""
    from moeplan_vllm_cpu.rendering import render

    return render(plan, site)
