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
    "routers",
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
    """Yield the routers and the engines of each InferaDeployment."""
    for document in infera_documents(scene):
        yield routers(scene, document.group), scene.engines(document.group)


def routers(scene: Scene, group: str) -> tuple[Subject, ...]:
    """Return the routers of a group."""
    return tuple(one for one in scene.launches if one.kind == "router" and one.group == group)


def engines_by_role(engines: tuple[Subject, ...], role: str) -> tuple[Subject, ...]:
    """Return those engines that have a role."""
    return tuple(one for one in engines if one.role == role)


def hostname(subject: Subject) -> Value:
    """Return the node that a launch's Pod is pinned to; unknown where affinity or a node's name may pin it."""
    pod = {} if subject.template is None else subject.template.spec
    if pod.get("nodeName") is not None or pod.get("affinity") is not None:
        return Value("unknown", None, subject.place())
    return value(subject, 'pod nodeSelector["kubernetes.io/hostname"]')


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
