"""Pod templates in any manifest: what runs, with which environment, on what, each with its JSON path.

Known kinds are looked up where the Kubernetes API and the LeaderWorkerSet API put them; in all others every mapping
with a list of ``containers`` counts as a pod's spec. What stands beside it (a service's own ``args`` or ``image`` in an
InferaDeployment) is left to whoever knows the kind: :attr:`PodTemplate.owner` holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from moeplan.errors import Issue
from moeplan.manifests.containers import Container, read_containers
from moeplan.wire.strict_json import child

__all__ = ["PodTemplate", "Volume", "find_pod_templates"]

Step = str | int
_TEMPLATE = ("spec", "template")
_KNOWN: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "Pod": (("", ()),),
    "Deployment": (("", _TEMPLATE),),
    "StatefulSet": (("", _TEMPLATE),),
    "DaemonSet": (("", _TEMPLATE),),
    "ReplicaSet": (("", _TEMPLATE),),
    "Job": (("", _TEMPLATE),),
    "CronJob": (("", ("spec", "jobTemplate", *_TEMPLATE)),),
    "LeaderWorkerSet": (
        ("leader", ("spec", "leaderWorkerTemplate", "leaderTemplate")),
        ("worker", ("spec", "leaderWorkerTemplate", "workerTemplate")),
    ),
}
"""Kind → role and steps of each pod template; the pod's spec is its ``spec``."""
_OPTIONAL = frozenset(("leader",))
_WRAPPERS = frozenset(("spec", "template", "podTemplate", "podSpec", "extraPodSpec", "jobTemplate", "services"))
"""Keys on the way to a pod's spec that name no role."""


@attrs.frozen
class Volume:
    """A pod's volume: its name, its source's kind (``hostPath``, ``emptyDir``) and that source as given."""

    name: str
    source_kind: str
    source: Any
    path: str


@attrs.frozen
class PodTemplate:
    """One pod template.

    Attributes:
        kind: the manifest's kind.
        name: the manifest's name, empty where it has none.
        namespace: its namespace, where given.
        role: which part of the manifest it is (``leader``, ``prefill``), empty where there is only one.
        path: JSON path of the pod's spec.
        spec: the pod's spec as given.
        owner_path: JSON path of the nearest mapping above that is no mere wrapper (``spec``, ``template``).
        owner: that mapping: replicas and whatever a custom kind keeps beside the pod's spec.
        labels: the pod's labels.
        annotations: the pod's annotations.
        containers: its containers.
        init_containers: its init containers, sidecars among them.
        volumes: its volumes.
        node_selector: required node labels.
        host_network: whether it shares its node's network.
        faults: what in it is none of what the Kubernetes API takes.
    """

    kind: str
    name: str
    namespace: str | None
    role: str
    path: str
    spec: Mapping[str, Any]
    owner_path: str
    owner: Mapping[str, Any]
    labels: Mapping[str, Any]
    annotations: Mapping[str, Any]
    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...]
    volumes: tuple[Volume, ...]
    node_selector: Mapping[str, Any]
    host_network: bool
    faults: tuple[Issue, ...]

    def volume(self, name: str) -> Volume | None:
        """Return the volume of this name."""
        return next((volume for volume in self.volumes if volume.name == name), None)


def find_pod_templates(value: Any) -> tuple[PodTemplate, ...]:
    """Return the pod templates of one manifest, as :attr:`Document.value` holds it, in the manifest's order.

    A known kind whose template is missing or malformed gives a template with faults; a value that is no manifest of a
    kind gives none.
    """
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return ()
    known = _KNOWN.get(value["kind"])
    if known is None:
        return tuple(_template(value, steps, _role(steps)) for steps in _walk(value, ()))
    found = []
    for role, steps in known:
        if role not in _OPTIONAL or isinstance(_at(value, steps), dict):
            found.append(_template(value, (*steps, "spec"), role))
    return tuple(found)


def _walk(value: Any, steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if isinstance(value, dict):
        containers = value.get("containers")
        if isinstance(containers, list) and containers and all(isinstance(item, dict) for item in containers):
            yield steps
            return
        for key, item in value.items():
            yield from _walk(item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, (*steps, index))


def _role(steps: tuple[Step, ...]) -> str:
    words = [step for step in steps if isinstance(step, str) and step not in _WRAPPERS]
    return words[-1] if words else ""


def _at(value: Any, steps: tuple[Step, ...]) -> Any:
    for step in steps:
        if isinstance(step, int):
            value = value[step]
            continue
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _path(steps: tuple[Step, ...]) -> str:
    path = "$"
    for step in steps:
        path = child(path, step)
    return path


def _template(manifest: dict[str, Any], steps: tuple[Step, ...], role: str) -> PodTemplate:
    faults: list[Issue] = []
    path = _path(steps)
    spec = _mapping(_at(manifest, steps), path, faults, required=True)
    above = _mapping(_at(manifest, (*steps[:-1], "metadata")), _path((*steps[:-1], "metadata")), faults, tell=False)
    owner_steps = steps
    while owner_steps and owner_steps[-1] in _WRAPPERS:
        owner_steps = owner_steps[:-1]
    if not owner_steps:
        owner_steps = ("spec",) if len(steps) > 1 else ()
    metadata = _mapping(manifest.get("metadata"), "$.metadata", faults)
    name, namespace = metadata.get("name"), metadata.get("namespace")
    containers = read_containers(spec, "containers", path, faults)
    if not containers and spec:
        faults.append(Issue(child(path, "containers"), "no_containers", "a pod without containers", "one or more"))
    return PodTemplate(
        kind=manifest["kind"],
        name=name if isinstance(name, str) else "",
        namespace=namespace if isinstance(namespace, str) else None,
        role=role,
        path=path,
        spec=spec,
        owner_path=_path(owner_steps),
        owner=_at(manifest, owner_steps),
        labels=_mapping(above.get("labels"), path, faults, tell=False),
        annotations=_mapping(above.get("annotations"), path, faults, tell=False),
        containers=containers,
        init_containers=read_containers(spec, "initContainers", path, faults),
        volumes=_volumes(spec, path, faults),
        node_selector=_mapping(spec.get("nodeSelector"), f"{path}.nodeSelector", faults),
        host_network=spec.get("hostNetwork") is True,
        faults=tuple(faults),
    )


def _mapping(
    value: Any, path: str, faults: list[Issue], *, required: bool = False, tell: bool = True
) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    if tell and (value is not None or required):
        faults.append(Issue(path, "wrong_type", "not what is wanted here", "a mapping", type(value).__name__))
    return {}


def _volumes(spec: Mapping[str, Any], path: str, faults: list[Issue]) -> tuple[Volume, ...]:
    listed = spec.get("volumes")
    found = []
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        here = f"{path}.volumes[{index}]"
        volume = _mapping(item, here, faults, required=True)
        name = volume.get("name")
        kind, source = next(((k, v) for k, v in volume.items() if k != "name"), ("", None))
        if isinstance(name, str):
            found.append(Volume(name, kind, source, here))
        elif volume:
            faults.append(Issue(here, "wrong_type", "a volume without a name", "name: text"))
    return tuple(found)
