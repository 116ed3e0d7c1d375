"""The plugin: vLLM on AMD Instinct with ROCm and AITER, as Infera's recipes deploy it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from moeplan.hooks.specs import hookimpl
from moeplan.model.placement import Placement
from moeplan.model.plan import Plan
from moeplan.model.plugin import LogSignature, OfferedCriterion, PluginFinding, RuntimeInfo
from moeplan.model.preflight import Imported, ImporterInfo, ImportRequest, PreflightCheck
from moeplan.model.rendering import LintRequest, Rendering

MOEPLAN_API = 1


@hookimpl
def moeplan_runtime() -> RuntimeInfo:
    """Say what this plugin is."""
    from moeplan_vllm_rocm_aiter.facts import finding_rules
    from moeplan_vllm_rocm_aiter.profiles import profiles

    return RuntimeInfo(
        engine="vllm",
        vendor="amd",
        plugin="vllm-rocm-aiter",
        version=version("moeplan-vllm-rocm-aiter"),
        profiles=profiles(),
        rules=finding_rules(),
    )


@hookimpl
def moeplan_check(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Check whether the plan can run as the site is."""
    from moeplan_vllm_rocm_aiter.checking import check

    return check(plan, site)


@hookimpl
def moeplan_criteria(plan: Plan, site: Mapping[str, Any]) -> tuple[OfferedCriterion, ...]:
    """Offer what proves speculation and the hand-over of KV cache."""
    from moeplan_vllm.criteria import offered_criteria

    return offered_criteria("vllm-rocm-aiter", plan)


@hookimpl
def moeplan_log_signatures() -> tuple[LogSignature, ...]:
    """Say which log lines mean what."""
    from moeplan_vllm_rocm_aiter.facts import all_facts

    return all_facts().log_signatures()


@hookimpl
def moeplan_owns_manifest(manifest: Mapping[str, Any] | str) -> bool | None:
    """Say whether a manifest or launch script is for this runtime."""
    from moeplan_vllm_rocm_aiter.recognising import owns

    return owns(manifest)


@hookimpl
def moeplan_lint(request: LintRequest, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Find what is wrong in manifests and launch scripts."""
    from moeplan_vllm_rocm_aiter.linting import lint

    return lint(request, site)


@hookimpl
def moeplan_placement(plan: Plan, site: Mapping[str, Any]) -> Placement:
    """Say where the plan puts tensors and KV cache."""
    from moeplan_vllm_rocm_aiter.placing import placement

    return placement(plan, site)


@hookimpl
def moeplan_render(plan: Plan, site: Mapping[str, Any]) -> Rendering:
    """Render the files that deploy the plan on the site, and the operator's guide."""
    from moeplan_vllm_rocm_aiter.render import render

    return render(plan, site)


@hookimpl
def moeplan_preflight() -> tuple[PreflightCheck, ...]:
    """Say what an operator does before a deployment."""
    from moeplan_infera.preflight import hooks as preflight

    from moeplan_vllm_rocm_aiter.profiles import profiles

    return preflight.checks([profile.id for profile in profiles()])


@hookimpl
def moeplan_importers() -> tuple[ImporterInfo, ...]:
    """Say that the plugin reads Infera's preflight."""
    from moeplan_infera.preflight import hooks as preflight

    return preflight.importers()


@hookimpl
def moeplan_import(request: ImportRequest, site: Mapping[str, Any]) -> Imported:
    """Read the hosts' files of Infera's preflight."""
    from moeplan_infera.preflight import hooks as preflight

    return preflight.import_files(request, site)
