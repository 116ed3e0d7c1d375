"""Volumes and claims: where weights lie, what is mounted, what fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from moeplan.errors import InputError
from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.pod_templates import Volume
from moeplan.manifests.quantities import parse_bytes
from moeplan_infera.reading import engines_by_role, groups, mapping, place_of, value, volume_at, weights_volume

__all__ = ["RULES"]

_SHARED = ("nfs", "cephfs", "glusterfs")
_NETWORK = (
    *("nfs*", "*-nfs*", "cifs*", "smb*", "network*", "lustre*", "ceph*", "glusterfs*", "beegfs*", "gpfs*", "fuse*"),
    *("9p*", "s3*", "remote*", "shared*", "*-export*"),
)
"""What a site calls storage that is not its nodes' own."""
_MANY = ("ReadWriteMany", "ReadOnlyMany")


def _claim(volume: Volume | None) -> str | None:
    """Return the name of the claim that a volume is."""
    if volume is None or volume.source_kind != "persistentVolumeClaim":
        return None
    name = mapping(volume.source).get("claimName")
    return name if isinstance(name, str) else None


def _claims(scene: Scene) -> dict[str, Subject]:
    """Return the PersistentVolumeClaims among the documents by name."""
    found = {}
    for subject in scene.documents:
        document = {} if subject.document is None else mapping(subject.document.value)
        if document.get("kind") == "PersistentVolumeClaim":
            found[str(mapping(document.get("metadata")).get("name"))] = subject
    return found


def _shared_volumes(scene: Scene) -> Iterator[tuple[Subject, Volume]]:
    """Yield each decode engine whose weights lie on the very volume that prefill's do."""
    for _, engines in groups(scene):
        prefill = engines_by_role(engines, "prefill")
        for decode in engines_by_role(engines, "decode"):
            ours = weights_volume(decode)
            for other in prefill:
                theirs = weights_volume(other)
                if ours is not None and theirs is not None and _is_one(ours, theirs):
                    yield decode, ours


def _is_one(left: Volume, right: Volume) -> bool:
    if _claim(left) is not None:
        return _claim(left) == _claim(right)
    return left.source_kind in _SHARED and right.source_kind == left.source_kind and left.source == right.source


def _not_local(scene: Scene) -> Iterator[Hit]:
    for decode, volume in _shared_volumes(scene):
        yield Hit(decode.place(volume.path), "prefill and decode mount one volume for the weights", decode)


def _remote(scene: Scene) -> Iterator[Hit]:
    """Yield weights that come over a network; where that was only ever slow (the stock image), for information."""
    stated = str(scene.site.get("modelStorage") or "")
    told = f"the site says {stated}" if stated else "the site says nothing of it"
    for engine in scene.engines():
        kind = value(engine, "derived model-volume-kind").value
        if kind in _SHARED or any(fnmatchcase(stated, pattern) for pattern in _NETWORK):
            volume = "no volume" if kind is None else f"a {kind} volume"
            severity = None if (scene.profile or "").startswith("opt/") else "info"
            message = f"the model's storage is not local: {volume}; {told}"
            place = value(engine, "argument --model").place or engine.place()
            yield Hit(place, message, engine, severity)


def _single_node_claim(scene: Scene) -> Iterator[Hit]:
    claims = _claims(scene)
    for decode, volume in _shared_volumes(scene):
        name = _claim(volume)
        if name is None:
            continue
        claim = claims.get(name)
        if claim is None:
            message = f"claim {name} must be ReadWriteMany or ReadOnlyMany to be mounted on two nodes"
            yield Hit(decode.place(volume.path), message, decode, "info")
            continue
        modes = value(claim, "document spec.accessModes").value
        listed = modes if isinstance(modes, list) else []
        if listed and not any(mode in _MANY for mode in listed):
            message = f"claim {name} is {', '.join(map(str, listed))} and mounted by prefill and decode"
            yield Hit(place_of(claim, "spec", "accessModes"), message, claim)


def _uncovered(scene: Scene) -> Iterator[Hit]:
    for engine in scene.engines():
        path = engine.model_reference
        if path is not None and path.startswith("/") and _is_outside(engine, path):
            place = value(engine, "argument --model").place or engine.place()
            yield Hit(place, f"{path} lies under no volume of the container", engine)


def _draft_uncovered(scene: Scene) -> Iterator[Hit]:
    for engine in scene.engines():
        draft = value(engine, "argument --speculative-config model")
        if not isinstance(draft.value, str) or engine.container is None:
            continue
        offline = value(engine, "environment HF_HUB_OFFLINE").value == "1"
        if draft.value.startswith("/") and _is_outside(engine, draft.value):
            yield Hit(draft.place or engine.place(), f"{draft.value} lies under no volume of the container", engine)
        elif not draft.value.startswith("/") and offline:
            message = f"the draft {draft.value} is no directory while HF_HUB_OFFLINE is 1"
            yield Hit(draft.place or engine.place(), message, engine)


def _is_outside(engine: Subject, path: str) -> bool:
    """Return whether a directory of an InferaDeployment's container is on no volume."""
    return engine.template is not None and bool(engine.group) and volume_at(engine, path) is None


def _unmounted(scene: Scene) -> Iterator[Hit]:
    for pod in scene.pods:
        template = pod.template
        if template is None or template.kind != "InferaDeployment" or template.owner.get("role") not in _HALVES:
            continue
        mounted = {m.volume for c in (*template.containers, *template.init_containers) for m in c.mounts}
        for volume in template.volumes:
            if volume.name not in mounted:
                yield Hit(pod.place(volume.path), f"volume {volume.name} of {template.role} is mounted nowhere", pod)


_HALVES = ("prefill", "decode")


def _too_small(scene: Scene) -> Iterator[Hit]:
    claims = _claims(scene)
    for daemon in scene.launches:
        most = value(daemon, "argument --long-bytes")
        path = value(daemon, "argument --long-path").value
        found = volume_at(daemon, path) if isinstance(path, str) else None
        claim = None if found is None else claims.get(_claim(found[1]) or "")
        if claim is None or not most.is_known:
            continue
        size = value(claim, "document spec.resources.requests.storage")
        try:
            fits = parse_bytes(size.value) > parse_bytes(most.value)
        except InputError:
            continue
        if not fits:
            message = f"the claim is {size.value}, --long-bytes is {most.value}"
            yield Hit(size.place or claim.place(), message, claim)


RULES: Mapping[str, Rule] = {
    "R-WT-001": _uncovered,
    "R-WT-002": _draft_uncovered,
    "R-WT-003": _remote,
    "R-WT-005": _not_local,
    "R-WT-006": _single_node_claim,
    "R-PD-006": _unmounted,
    "R-RES-008": _too_small,
}
"""Fact id → rule."""
