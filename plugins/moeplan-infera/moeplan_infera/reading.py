"""Short ways to what rules ask of launches and documents again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moeplan.facts.fields import Field, parse_field
from moeplan.facts.launches import Scene, Subject
from moeplan.facts.values import Place, Value
from moeplan.manifests.containers import Mount
from moeplan.manifests.pod_templates import Volume

__all__ = [
    "engines_by_role",
    "groups",
    "hostname",
    "infera_documents",
    "listed",
    "mapping",
    "place_of",
    "services",
    "value",
    "volume_at",
    "weights_path",
    "weights_volume",
]


def value(subject: Subject, field: str) -> Value:
    """Return what the field named ``field`` holds."""
    return subject.look(parse_field(field))


def place_of(subject: Subject, *steps: str | int) -> Place:
    """Return where the value at ``steps`` of the subject's document stands, or what lies nearest above it."""
    return subject.look(Field("document", "", steps)).place or subject.place()


def mapping(what: Any) -> Mapping[str, Any]:
    """Return ``what`` where it is a mapping, else an empty one."""
    return what if isinstance(what, Mapping) else {}


def listed(what: Any) -> list[Any] | tuple[Any, ...]:
    """Return ``what`` where it is a list, else an empty one."""
    return what if isinstance(what, list | tuple) else ()


def infera_documents(scene: Scene) -> Iterator[Subject]:
    """Yield the InferaDeployments."""
    for subject in scene.documents:
        if subject.document is not None and mapping(subject.document.value).get("kind") == "InferaDeployment":
            yield subject


def services(subject: Subject) -> Mapping[str, Any]:
    """Return the services of an InferaDeployment as they are written."""
    document = {} if subject.document is None else mapping(subject.document.value)
    return mapping(mapping(document.get("spec")).get("services"))


def groups(scene: Scene) -> Iterator[tuple[tuple[Subject, ...], tuple[Subject, ...]]]:
    """Yield the routers and the engines of each InferaDeployment, and of the Deployments that one was made into.

    What the operator makes bears the deployment's name as a label; without it all Pods that run Infera belong together.
    """
    for document in infera_documents(scene):
        yield _parts([one for one in scene.launches if one.group == document.group])
    loose: dict[str, list[Subject]] = {}
    for one in scene.launches:
        program = "" if one.program is None else one.program.name
        if not one.group and one.document is not None and program.startswith("infera."):
            labels = {} if one.template is None else one.template.labels
            loose.setdefault(str(labels.get(_MADE_FROM, "")), []).append(one)
    for launches in loose.values():
        yield _parts(launches)


_MADE_FROM = "infera.amd.com/deployment"
"""Label of what the operator makes. Source: Infera 5890f7f, builders.go labelsFor."""


def _parts(launches: list[Subject]) -> tuple[tuple[Subject, ...], tuple[Subject, ...]]:
    of = {kind: tuple(one for one in launches if one.kind == kind) for kind in ("router", "engine")}
    return of["router"], of["engine"]


def engines_by_role(engines: tuple[Subject, ...], role: str) -> tuple[Subject, ...]:
    """Return those engines that have a role."""
    return tuple(one for one in engines if one.role == role)


def hostname(subject: Subject) -> Value:
    """Return the node that a launch's Pod is pinned to; unknown where other labels choose it.

    Source: Kubernetes, Assigning Pods to Nodes: the terms of a required node affinity are alternatives.
    """
    for field in ("pod nodeName", 'pod nodeSelector["kubernetes.io/hostname"]'):
        given = value(subject, field)
        if given.state != "absent":
            return given
    affinity = value(subject, "pod affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    terms = listed(mapping(affinity.value).get("nodeSelectorTerms"))
    nodes = {node for term in terms for node in _nodes_of(mapping(term))}
    if len(terms) == 1 and len(nodes) == 1:
        return Value("known", nodes.pop(), affinity.place)
    if value(subject, "pod affinity").is_known or value(subject, "pod nodeSelector").value:
        return Value("unknown", None, subject.place())
    return given


def _nodes_of(term: Mapping[str, Any]) -> Iterator[str]:
    """Yield the only nodes that a term of a node affinity allows, nothing where it allows any."""
    keys = {"matchExpressions": "kubernetes.io/hostname", "matchFields": "metadata.name"}
    for part, key in keys.items():
        for one in map(mapping, listed(term.get(part))):
            if one.get("key") == key and one.get("operator") == "In":
                yield from map(str, listed(one.get("values")))


def weights_path(subject: Subject) -> str | None:
    """Return the directory a launch reads weights or a tokenizer from; None where it is none or not known."""
    for name in ("--model", "--model-path", "--router-tokenizer-path"):
        found = value(subject, f"argument {name}")
        if found.is_known and isinstance(found.value, str):
            return found.value if found.value.startswith("/") else None
    return None


def volume_at(subject: Subject, path: str) -> tuple[Mount, Volume | None] | None:
    """Return the mount that holds ``path`` in a launch's container, and its volume; the longest mount holds."""
    if subject.container is None or subject.template is None:
        return None
    held = [mount for mount in subject.container.mounts if mount.mount_path and _within(path, mount.mount_path)]
    if not held:
        return None
    mount = max(held, key=lambda one: len(one.mount_path))
    return mount, subject.template.volume(mount.volume)


def _within(path: str, directory: str) -> bool:
    root = directory.rstrip("/")
    return path == root or path.startswith(root + "/")


def weights_volume(subject: Subject) -> Volume | None:
    """Return the volume that a launch's weights or tokenizer lie on."""
    path = weights_path(subject)
    found = None if path is None else volume_at(subject, path)
    return None if found is None else found[1]
