"""Everything a suite asks of a plugin: each hook with the author's own inputs, and with hostile ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from moeplan.hooks.plain_data import write_arguments
from moeplan.manifests.sources import json_values
from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.plan import Plan, Scenario
from moeplan.model.preflight import ImportFile, ImportRequest
from moeplan.model.rendering import LintRequest, ManifestSource
from moeplan.testing.asking import Question
from moeplan.testing.cases import (
    CheckCase,
    LintCase,
    LintGolden,
    RenderGolden,
    lint_request,
    load_plan,
    load_site_values,
)
from moeplan.testing.hostile import hostile_plans, hostile_sites, hostile_sources, hostile_texts, mutated

__all__ = ["Inputs", "hostile_questions", "own_questions", "read_inputs"]

_WITH_PLAN = ("moeplan_check", "moeplan_criteria", "moeplan_placement", "moeplan_render")
_PLAN = Scenario("kimi-k3", "h200", 16)
_WITHOUT = ("moeplan_runtime", "moeplan_log_signatures", "moeplan_preflight", "moeplan_importers")


@attrs.frozen
class Inputs:
    """The author's inputs, read.

    Attributes:
        plans: plans with sites, each with what to call it.
        requests: sources with sites, likewise.
        formats: formats of files that the plugin reads.
    """

    plans: tuple[tuple[str, Plan, Mapping[str, Any]], ...]
    requests: tuple[tuple[str, LintRequest, Mapping[str, Any]], ...]
    formats: tuple[str, ...]


def own_questions(inputs: Inputs, hooks: Iterable[str]) -> Iterator[Question]:
    """Yield each hook that the plugin has with the author's inputs."""
    for hook in hooks:
        if hook in _WITHOUT:
            yield Question(hook, "nothing", {})
        elif hook in _WITH_PLAN:
            yield from (_planned(hook, about, plan, site) for about, plan, site in inputs.plans)
        elif hook == "moeplan_lint":
            yield from (_linted(about, request, site) for about, request, site in inputs.requests)
        elif hook == "moeplan_owns_manifest":
            for about, request, _site in inputs.requests:
                yield from _owned(about, request.sources)


def hostile_questions(inputs: Inputs, hooks: Iterable[str]) -> Iterator[Question]:
    """Yield each hook that the plugin has with inputs that nobody expects."""
    own = list(inputs.plans)
    for hook in hooks:
        if hook in _WITH_PLAN and own:
            _about, plan, site = own[-1]
            yield from (_planned(hook, about, plan, odd) for about, odd in hostile_sites(site))
            yield from (_planned(hook, about, odd, site) for about, odd in hostile_plans(plan))
        elif hook in ("moeplan_lint", "moeplan_owns_manifest"):
            for about, source in _odd_sources(inputs):
                if hook == "moeplan_lint":
                    yield _linted(about, LintRequest((source,)), {})
                else:
                    yield from _owned(about, (source,))
        elif hook == "moeplan_import":
            for one in inputs.formats:
                for about, text in hostile_texts():
                    request = ImportRequest(one, (ImportFile("hostile.json", text),))
                    yield Question(hook, about, write_arguments({"request": request, "site": {}}))


def _odd_sources(inputs: Inputs) -> Iterator[tuple[str, ManifestSource]]:
    yield from hostile_sources()
    seen: set[ManifestSource] = set()
    for _about, request, _site in inputs.requests:
        for source in request.sources:
            if source not in seen and len(seen) < 4:
                seen.add(source)
                yield from mutated(source)


def _planned(hook: str, about: str, plan: Plan, site: Mapping[str, Any]) -> Question:
    return Question(hook, about, write_arguments({"plan": plan, "site": site}))


def _linted(about: str, request: LintRequest, site: Mapping[str, Any]) -> Question:
    return Question("moeplan_lint", about, write_arguments({"request": request, "site": site}))


def _owned(about: str, sources: Iterable[ManifestSource]) -> Iterator[Question]:
    for source in sources:
        if source.documents is None:
            yield Question("moeplan_owns_manifest", about, {"manifest": source.text})
            continue
        for document in load_manifests(source.text.encode()).documents:
            if isinstance(document.value, dict):
                yield Question("moeplan_owns_manifest", about, {"manifest": json_values(document.value)})


def read_inputs(directory: Path, cases: Iterable[Any], more: Iterable[str], formats: tuple[str, ...]) -> Inputs:
    """Return the inputs of an author's cases.

    Args:
        directory: what their paths start from.
        cases: negative cases and goldens.
        more: sources in which nothing is to be found.
        formats: formats of files that the plugin reads.

    Raises:
        MoeplanError: a file is missing or malformed.
    """
    plans: list[tuple[str, Plan, Mapping[str, Any]]] = []
    requests: list[tuple[str, LintRequest, Mapping[str, Any]]] = []
    for case in cases:
        if isinstance(case, CheckCase | RenderGolden):
            site = load_site_values(directory, case.site)
            plans.append((f"the plan of {_named(case)}", load_plan(directory, case.plan), site))
        elif isinstance(case, LintCase | LintGolden):
            request = lint_request(directory, case.source, case.profile)
            requests.append((case.source, request, load_site_values(directory, case.site)))
    requests += [(source, lint_request(directory, source, None), {}) for source in more]
    if not plans:
        plans.append(("a plan", load_plan(directory, _PLAN), {}))
    return Inputs(tuple(plans), tuple(requests), formats)


def _named(case: CheckCase | RenderGolden) -> str:
    return case.id if isinstance(case, CheckCase) else case.directory
