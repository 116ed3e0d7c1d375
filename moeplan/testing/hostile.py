"""Inputs that no plugin expects and each gets: sites of odd values, plans with nothing in them, manifests of any shape.

All of them can reach a plugin: a site and a plan are of their models, a manifest is readable YAML, a script is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import attrs

from moeplan.errors import InputError
from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Plan
from moeplan.model.rendering import ManifestSource

__all__ = ["CONTAINERS", "hostile_plans", "hostile_sites", "hostile_sources", "hostile_texts", "mutated"]

CONTAINERS = 10_000
_MOST_MUTATIONS = 300
_WRONG: tuple[Any, ...] = (None, True, -1, "", "é\u202e", [], {}, [[]], {"": {"": []}}, 10**30)


def hostile_plans(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield a plan with everything left out that may be, and with the largest and smallest sizes."""
    nothing = DeploymentSpec(None, Parallelism(None, None, None, None), None, None, (RoleSpec("serve", None),))
    unknown = attrs.evolve(
        plan.residency,
        status="unknown",
        tensor_bytes=None,
        tensor_bytes_from="unknown",
        bytes_per_accelerator=None,
        usable_bytes_per_accelerator=None,
        usable_bytes_requested=None,
        minimum_accelerators=None,
        rounded_accelerators=None,
        rounded_nodes=None,
    )
    strange = attrs.evolve(plan.artifact, repository="名前/模型", revision="main", checkpoint=None, manifest_url=None)
    huge = Parallelism(100_000, 100_000, 100_000, 100_000)
    yield "a plan without a deployment", attrs.evolve(plan, deployment=nothing)
    yield "a plan of unknown sizes", attrs.evolve(plan, residency=unknown, deployment=nothing)
    yield "a plan for an unknown model", attrs.evolve(plan, artifact=strange)
    yield "a plan of huge parallel sizes", attrs.evolve(plan, deployment=attrs.evolve(nothing, parallelism=huge))
    yield (
        "a plan of a role that nobody has",
        attrs.evolve(plan, deployment=attrs.evolve(nothing, roles=(RoleSpec("x", None),) * 3)),
    )
    yield (
        "a plan for a million accelerators",
        attrs.evolve(plan, target=attrs.evolve(plan.target, requested_accelerators=10**6, hardware_id="no-such")),
    )
    yield (
        "a plan for an absurd workload",
        attrs.evolve(plan, workload=attrs.evolve(plan.workload, input_tokens=10**9, concurrency=10**9)),
    )


def hostile_sites(site: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield sites: without anything, of odd values, and the given one with each of its keys left out in turn."""
    head = {"kind": "site", "schemaVersion": "1.0.0"}
    yield "no site", {}
    yield "a site that says nothing", head
    yield "a site of a million nodes", {**head, "nodes": 1_000_000, "acceleratorsPerNode": 1_000_000}
    yield "a site without nodes", {**head, "nodes": []}
    yield "a site of bare nodes", {**head, "nodes": [{"name": "a"}, {"name": "b", "roles": ["any"]}]}
    yield (
        "a site of odd texts",
        {**head, "driver": "?", "engineVersion": "not a version", "hardware": "no-such", "profile": "no/such",
         "servedModelName": "$(touch x) 'é\"", "modelNames": {"target": "../.. 模型"},
         "nodes": [{"name": "n", "modelDirectory": "/a b/$HOME/'"}]},
    )  # fmt: skip
    for key in site:
        if key not in head:
            yield f"a site without {key}", {name: value for name, value in site.items() if name != key}
    nodes = site.get("nodes", ())
    for key in nodes[0] if isinstance(nodes, list | tuple) and nodes else ():
        bare = [{name: value for name, value in node.items() if name != key or name == "name"} for node in nodes]
        yield f"a site without nodes[].{key}", {**site, "nodes": bare}


@cache
def hostile_sources() -> tuple[tuple[str, ManifestSource], ...]:
    """Return manifests and scripts that belong to nobody in particular."""
    return tuple(_hostile_sources())


def _hostile_sources() -> Iterator[tuple[str, ManifestSource]]:
    for about, script in (
        ("an empty script", ""),
        ("a script with an open quote", "exec vllm serve '/models/x --a \"\n"),
        ("a script with an open substitution", 'vllm serve "$(cat ${A:-`b`\n'),
        ("a script of Unicode", "VLLM=ü vllm serve /模型 --served-model-name \u202e名 --port ٣\n"),
        ("a script of options without values", "vllm serve --port --port= --tensor-parallel-size -- --\n"),
        (
            "a script of odd numbers",
            "vllm serve m --tensor-parallel-size 1e99 --max-model-len -0 --port 0x10 --x NaN\n",
        ),
        ("a script of broken JSON", "vllm serve m --speculative-config '{\"a\":' --kv-transfer-config '[]'\n"),
        ("a script of one long line", "vllm serve m " + "--port 1 " * 20_000),
    ):
        yield about, ManifestSource("hostile.sh", script)
    for about, value in (
        ("a document that is a number", 1),
        ("an empty object", {}),
        ("a kind that is a list", {"kind": [], "spec": 1}),
        ("a deep document", _nested(50)),
        (f"{CONTAINERS} containers", _deployment([_container(number) for number in range(CONTAINERS)])),
        ("containers that are none", _deployment([None, 1, "x", [], {"command": {}, "args": 1, "env": "x"}])),
        ("a command of wrong words", _deployment([{"name": "x", "command": [1, None, ["vllm"], {"serve": 1}]}])),
        ("environment of wrong shape", _deployment([_container(0) | {"env": [{}, 1, {"name": 1, "value": []}]}])),
    ):
        made = _source("hostile.yaml", json.dumps(value, ensure_ascii=False))
        if made is not None:
            yield about, made


def mutated(source: ManifestSource) -> Iterator[tuple[str, ManifestSource]]:
    """Yield a source with one thing in it changed to what does not belong there, for each thing in it.

    Of a script every word is taken out once and every quote is left open once; of a manifest every value is replaced by
    another kind of value.
    """
    if source.documents is None:
        yield from _cut_scripts(source)
        return
    listed = load_manifests(source.text.encode()).documents
    values = [json.loads(json.dumps(document.value, default=str)) for document in listed]
    places = [(number, path) for number, value in enumerate(values) for path in _paths(value)]
    step = max(1, -(-len(places) * 2 // _MOST_MUTATIONS))
    for index, (number, path) in enumerate(places[::step]):
        for wrong in (_WRONG[index % len(_WRONG)], _WRONG[(index * 7 + 3) % len(_WRONG)]):
            changed = [*values[:number], _with(values[number], path, wrong), *values[number + 1 :]]
            made = _source(source.name, "\n---\n".join(json.dumps(one, ensure_ascii=False) for one in changed))
            if made is not None:
                yield f"{source.name} with {_shown(path)} = {wrong!r:.40}", made


def _source(name: str, text: str) -> ManifestSource | None:
    """Return manifests as a plugin gets them, or None where the core refuses them before any plugin is asked."""
    try:
        return ManifestSource(name, text, tuple(range(len(load_manifests(text.encode()).documents))))
    except InputError:
        return None


def _cut_scripts(source: ManifestSource) -> Iterator[tuple[str, ManifestSource]]:
    words = source.text.split(" ")
    for index in range(0, len(words), max(1, len(words) // 100)):
        for what, instead in (("without", []), ("with a quote in", ["'" + words[index]])):
            text = " ".join([*words[:index], *instead, *words[index + 1 :]])
            yield f"{source.name} {what} word {index + 1}", ManifestSource(source.name, text)


def hostile_texts() -> Iterator[tuple[str, str]]:
    """Yield contents of files that are of no tool's format."""
    yield "an empty file", ""
    yield "a file of broken JSON", '{"a": ['
    yield "a file of another object", '{"kind": null, "": [[], {}]}'
    yield "a file of a number", "1e400"
    yield "a file of Unicode", "\ufeff\u202e模"
    yield "a deep file", "[" * 5000


def _container(number: int) -> dict[str, Any]:
    return {"name": f"c{number}", "image": "busybox", "command": ["sleep", str(number)]}


def _deployment(containers: list[Any]) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, "volumes": [None, {}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"template": template}}


def _nested(depth: int) -> Any:
    value: Any = {"kind": "Deployment"}
    for _ in range(depth):
        value = {"spec": value, "template": []}
    return value


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _paths(item, (*path, key))


def _with(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    if not path:
        return wrong
    copy = value.copy()
    copy[path[0]] = _with(value[path[0]], path[1:], wrong)
    return copy


def _shown(path: tuple[Any, ...]) -> str:
    return ".".join(str(step) for step in path)
