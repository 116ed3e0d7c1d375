"""The rendering of a plan on a site: manifests, scripts and guide, held against the plugin's own facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moeplan.errors import InputRefusedError, Issue, escape
from moeplan.manifests.write import dump_documents
from moeplan.model.plan import Plan
from moeplan.model.rendering import LintRequest, ManifestSource, RenderedFile, Rendering
from moeplan_vllm_cuda.rendering.asked import Against, Asked, is_accepted, read_asked
from moeplan_vllm_cuda.rendering.guide import guide_steps
from moeplan_vllm_cuda.rendering.objects import namespace
from moeplan_vllm_cuda.rendering.scripts import scripts
from moeplan_vllm_cuda.rendering.workloads import engines, monitoring, probes, router

__all__ = ["render"]


def render(plan: Plan, site: Mapping[str, Any]) -> Rendering:
    """Return the files and the guide.

    Args:
        plan: the plan, form 1.1.0.
        site: the site as JSON values.

    Raises:
        InputRefusedError: the site lacks values, plan, site and profile do not fit together, or an error or a warning
            of the plugin's own facts would stand in what is rendered and the site does not acknowledge it.
    """
    asked = read_asked(plan, site)
    manifests = tuple(_manifests(asked))
    found = (*manifests, *scripts(asked))
    findings = tuple(_findings(found, site, asked))
    refused = tuple(one.issue for one in findings if not is_accepted(one.fact, asked.profile, asked.ground))
    if refused:
        raise InputRefusedError(*refused)
    return Rendering(found, guide_steps(asked, findings))


def _manifests(asked: Asked) -> Iterator[RenderedFile]:
    yield _file("10-namespace.yaml", [namespace(asked.ground.namespace)])
    yield _file("20-probes.yaml", probes(asked))
    for number, (role, objects) in enumerate(engines(asked)):
        yield _file(f"3{number}-{role}.yaml", objects)
    if asked.paired:
        yield _file("40-router.yaml", router(asked))
    yield _file("50-monitoring.yaml", monitoring(asked))


def _file(name: str, objects: Sequence[dict[str, Any]]) -> RenderedFile:
    return RenderedFile(name, "manifest", dump_documents(objects))


def _findings(files: Sequence[RenderedFile], site: Mapping[str, Any], asked: Asked) -> Iterator[Against]:
    """Yield what the facts find wrong in the engines' manifests; each of their scripts says the same."""
    import attrs

    from moeplan.facts.judge import judge
    from moeplan.facts.launches import read_scene
    from moeplan_vllm_cuda.knowledge import cuda_facts, knowledge
    from moeplan_vllm_cuda.rules.registered import RULES

    engines = [file for file in files if file.form == "manifest" and file.name.startswith("3")]
    request = LintRequest(tuple(ManifestSource(file.name, file.text, (0,)) for file in engines), asked.profile)
    knows = attrs.evolve(knowledge(), served=asked.plan.artifact.repository)
    scene = read_scene(request.sources, knows, site, request.profile)
    seen: set[tuple[str, str]] = set()
    for finding in judge(scene, cuda_facts(), RULES):
        if finding.severity != "info" and (finding.id, finding.message) not in seen:
            seen.add((finding.id, finding.message))
            where = f"{finding.file}: {finding.path}"
            step = f"{finding.remedy} Or acknowledge {finding.id} in the site with the reason."
            told = escape(f"{finding.message}: {finding.consequence}", 600)
            yield Against(finding.id, Issue(where, finding.id, told, next=step))
