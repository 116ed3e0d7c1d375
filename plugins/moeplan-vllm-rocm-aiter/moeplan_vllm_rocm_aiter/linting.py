"""Lint: the facts of the recipes held against manifests and scripts, each InferaDeployment by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import attrs
from moeplan_infera.derived import DERIVED as INFERA_DERIVED
from moeplan_infera.programs import infera_programs, infera_role
from moeplan_infera.registered import RULES as INFERA_RULES
from moeplan_vllm.arguments import argument_table
from moeplan_vllm.facts import vllm_facts
from moeplan_vllm.families import architecture, recognises
from moeplan_vllm.programs import role_of, vllm_programs
from moeplan_vllm.rules.derived import DERIVED as VLLM_DERIVED
from moeplan_vllm.rules.registered import RULES as VLLM_RULES

from moeplan.facts.judge import judge
from moeplan.facts.launches import Knowledge, Subject, read_scene
from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.plugin import PluginFinding
from moeplan.model.rendering import LintRequest, ManifestSource
from moeplan_vllm_rocm_aiter.covering import told_once
from moeplan_vllm_rocm_aiter.facts import recipe_facts
from moeplan_vllm_rocm_aiter.recognising import profile_of
from moeplan_vllm_rocm_aiter.rules import RULES

__all__ = ["knowledge", "lint"]

_VERSIONED = ("vllm/vllm-openai-rocm", "vllm-openai-rocm")
_AMONG_ALL = ("R-RES-004",)
"""Rules that compare deployments with each other."""


def _role(subject: Subject) -> str:
    program = "" if subject.program is None else subject.program.name
    return infera_role(subject) if program.startswith("infera.") else role_of(subject)


@cache
def knowledge() -> Knowledge:
    """Return what this plugin brings to the reading of manifests: Infera's programs and vLLM's."""
    return Knowledge(
        programs=(*infera_programs(argument_table()), *vllm_programs()),
        versioned=_VERSIONED,
        role=_role,
        profile=profile_of,
        model=architecture,
        derived={**VLLM_DERIVED, **INFERA_DERIVED},
        recognises=recognises,
    )


def lint(request: LintRequest, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Return every fact that the sources break.

    What several InferaDeployments hold is judged one by one, each with the documents that run nothing, so that each has
    its own profile. Facts of vLLM alone are held against them too; what the recipes cover is told once.
    """
    found: list[PluginFinding] = []
    parts = list(_parts(request))
    for part in parts:
        scene = read_scene(part, knowledge(), site, request.profile)
        own = judge(scene, recipe_facts(), {**INFERA_RULES, **RULES})
        found += told_once((*own, *judge(scene, vllm_facts(), VLLM_RULES)))
    if len(parts) > 1:
        whole = read_scene(request.sources, knowledge(), site, request.profile)
        among = attrs.evolve(recipe_facts(), facts=tuple(recipe_facts()[one] for one in _AMONG_ALL))
        found += judge(whole, among, INFERA_RULES)
    return tuple(dict.fromkeys(found))


def _parts(request: LintRequest) -> Iterator[tuple[ManifestSource, ...]]:
    """Yield the sources once for each InferaDeployment in them, without the others; once where there are none."""
    deployments = [(source, number) for source in request.sources for number in _infera(source)]
    if len(deployments) < 2:
        yield request.sources
        return
    others = {(source.name, number) for source, number in deployments}
    for chosen, wanted in deployments:
        left_out = others - {(chosen.name, wanted)}
        yield tuple(_without(source, left_out) for source in request.sources)


def _without(source: ManifestSource, left_out: set[tuple[str, int]]) -> ManifestSource:
    if source.documents is None:
        return source
    kept = tuple(number for number in source.documents if (source.name, number) not in left_out)
    return attrs.evolve(source, documents=kept)


def _infera(source: ManifestSource) -> Iterator[int]:
    if not source.documents or "InferaDeployment" not in source.text:
        return
    listed = load_manifests(source.text.encode("utf-8"), source=source.name).documents
    for number in source.documents:
        value = listed[number].value if number < len(listed) else None
        if isinstance(value, dict) and value.get("kind") == "InferaDeployment":
            yield number
