"""Which node each part of an InferaDeployment runs on, where weights come from the node itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from moeplan.facts.derived import nodes_of
from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene, Subject
from moeplan.facts.values import Value
from moeplan_infera.programs import infera_role
from moeplan_infera.reading import (
    engines_by_role,
    groups,
    hostname,
    infera_documents,
    mapping,
    place_of,
    value,
    weights_volume,
)

__all__ = ["RULES"]


_ADDRESS = re.compile(r"(?!0\.|127\.)[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$")
"""An IPv4 address of a node; of loopbacks and wildcards the fact's data tells."""


def _host_path(subject: Subject) -> str | None:
    """Return the directory of the node that a launch's weights lie in; None where they lie elsewhere."""
    volume = weights_volume(subject)
    if volume is None or volume.source_kind != "hostPath":
        return None
    path = mapping(volume.source).get("path")
    return path.rstrip("/") or "/" if isinstance(path, str) else None


def _pairs(scene: Scene) -> Iterator[tuple[tuple[Subject, ...], Subject, Subject]]:
    """Yield the routers, a prefill and a decode engine of each disaggregated deployment.

    Where roles and KV roles contradict each other (R-ARG-017) nobody can say which half is which.
    """
    for routers, engines in groups(scene):
        if any(infera_role(one) not in ("mixed", one.role) for one in engines):
            continue
        for prefill in engines_by_role(engines, "prefill")[:1]:
            for decode in engines_by_role(engines, "decode")[:1]:
                yield routers, prefill, decode


def _apart(scene: Scene) -> Iterator[Hit]:
    for _, prefill, decode in _pairs(scene):
        first, second = hostname(prefill), hostname(decode)
        place = second.place or decode.place()
        if second.state == "absent" and _host_path(decode) is not None:
            yield Hit(decode.place(_pod(decode)), "decode is not pinned to a node", decode)
        elif first.is_known and second.is_known and first.value == second.value:
            severity = None if _collide(prefill, decode) else "info"
            yield Hit(place, f"prefill and decode are both on {second.value}", decode, severity)
        elif nodes_of(decode).value == 1 and _collide(prefill, decode):
            yield Hit(place, "prefill and decode need a node each, the site has one", decode)


_GPUS_A_NODE = 8
"""GPUs of a node where the site does not say. Source: fact R-CHO-004."""


def _collide(prefill: Subject, decode: Subject) -> bool:
    """Return whether one node cannot run both: more GPUs than it has, or the same ports of its network."""
    asked = [value(one, "derived accelerators") for one in (prefill, decode)]
    there = prefill.scene.site.get("acceleratorsPerNode")
    most = there if type(there) is int else _GPUS_A_NODE
    if all(one.is_known for one in asked) and sum(one.value for one in asked) > most:
        return True
    ports = [value(one, "derived listening-port").value for one in (prefill, decode)]
    on_host = all(one.template is not None and one.template.host_network for one in (prefill, decode))
    return on_host and ports[0] == ports[1]


def _pod(subject: Subject) -> str | None:
    return None if subject.template is None else subject.template.path


def _apart_or_alike(subject: Subject, other: Subject, told: str) -> Iterator[Hit]:
    """Yield where two launches that read weights from their node are not kept on one."""
    first, second = hostname(subject), hostname(other)
    for one, node in ((subject, first), (other, second)):
        if node.state == "absent":
            yield Hit(one.place(_pod(one)), f"the {_named(one)} is not pinned to a node; {told}", one)
            return
    if "unknown" in (first.state, second.state):
        message = f"whether {_named(subject)} and {_named(other)} land on one node is not known; {told}"
        yield Hit(subject.place(_pod(subject)), message, subject, "info")
    if first.is_known and second.is_known and first.value != second.value:
        message = f"the {_named(subject)} is on {first.value}, the {_named(other)} on {second.value}; {told}"
        yield Hit(first.place or subject.place(), message, subject)


def _named(subject: Subject) -> str:
    return (
        "router" if subject.kind == "router" else f"{subject.role} worker" if subject.role == "mixed" else subject.role
    )


def _router_at_prefill(scene: Scene) -> Iterator[Hit]:
    for routers, prefill, _ in _pairs(scene):
        for router in routers:
            path, other = _host_path(router), _host_path(prefill)
            if path is None:
                continue
            yield from _apart_or_alike(router, prefill, "the router must be with prefill")
            if other is not None and path != other:
                volume = weights_volume(router)
                place = router.place(None if volume is None else volume.path)
                yield Hit(place, f"the router mounts {path}, prefill {other}", router)


def _router_at_worker(scene: Scene) -> Iterator[Hit]:
    for routers, engines in groups(scene):
        mixed = engines_by_role(engines, "mixed")
        if len(mixed) != len(engines):
            continue
        for router in routers:
            for worker in mixed:
                if _host_path(router) is not None and _host_path(worker) is not None:
                    yield from _apart_or_alike(router, worker, "both must be on one")


def _same_directory(scene: Scene) -> Iterator[Hit]:
    for _, prefill, decode in _pairs(scene):
        path, volume = _host_path(prefill), weights_volume(decode)
        if path is not None and volume is not None and path == _host_path(decode):
            yield Hit(decode.place(volume.path), f"both roles mount {path} of their node", decode)


def _one_address(scene: Scene) -> Iterator[Hit]:
    for _, prefill, decode in _pairs(scene):
        first, second = (value(one, "argument --data-parallel-address") for one in (prefill, decode))
        if first.is_known and first.value == second.value and _ADDRESS.match(str(first.value)):
            message = f"both roles advertise {first.value}, which is the address of one node at most"
            yield Hit(second.place or decode.place(), message, decode)


def _nodes(scene: Scene, group: str) -> dict[str, Value]:
    """Return the nodes whose GPUs a group's engines ask for, each with where that is said."""
    asked = [one for one in scene.engines(group) if value(one, "derived accelerators").is_known]
    return {str(node.value): node for one in asked if (node := hostname(one)).is_known}


def _two_on_a_node(scene: Scene) -> Iterator[Hit]:
    taken: dict[str, str] = {}
    for document in infera_documents(scene):
        name = str(value(document, "document metadata.name").shown())
        nodes = _nodes(scene, document.group)
        for node in nodes:
            if node in taken:
                message = f"{name} and {taken[node]} both ask for the GPUs of {node}"
                yield Hit(place_of(document, "metadata", "name"), message, document)
        taken.update(dict.fromkeys(nodes, name))


def _more_than_there(scene: Scene) -> Iterator[Hit]:
    there = scene.site.get("acceleratorsPerNode")
    for engine in scene.engines():
        asked = value(engine, "derived accelerators")
        if type(there) is int and asked.is_known and asked.value > there:
            yield Hit(asked.place or engine.place(), f"{asked.value} GPUs asked for, a node has {there}", engine)


RULES: Mapping[str, Rule] = {
    "R-ARG-018": _one_address,
    "R-PH-004": _apart,
    "R-PH-005": _same_directory,
    "R-PH-006": _router_at_prefill,
    "R-PH-007": _router_at_worker,
    "R-RES-003": _more_than_there,
    "R-RES-004": _two_on_a_node,
}
"""Fact id → rule."""
