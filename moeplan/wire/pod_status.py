"""What ``kubectl get pods -o json`` says of pods that a record may hold: images by digest, restarts, terminations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs

from moeplan.errors import InputError, Issue

__all__ = ["MAX_PODS_BYTES", "ContainerStatus", "PodStatus", "read_items", "read_pods"]

MAX_PODS_BYTES = 1 << 28
_STATUSES = (
    ("initContainerStatuses", "init"),
    ("containerStatuses", "container"),
    ("ephemeralContainerStatuses", "ephemeral"),
)
_DIGEST = re.compile(r"(?:^|@)(sha256:[0-9a-f]{64})$")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


@attrs.frozen
class ContainerStatus:
    """One container of a pod, of whatever kind.

    Attributes:
        kind: ``init``, ``container`` or ``ephemeral``; a sidecar is an ``init`` that goes on running.
        name: its name in the pod.
        image: digest of its image as it was pulled; None where the status names none.
        restarts: how often it was restarted.
        reason: why it is not running, or did not, last: ``OOMKilled``, ``CrashLoopBackOff`` …; None where nothing says.
    """

    kind: str
    name: str
    image: str | None
    restarts: int
    reason: str | None


@attrs.frozen
class PodStatus:
    """One pod: its names, the node it is on, its phase and its containers."""

    name: str
    namespace: str
    node: str | None
    phase: str
    started: str | None
    containers: tuple[ContainerStatus, ...]


def read_pods(data: bytes) -> tuple[PodStatus, ...]:
    """Return the pods of a list or of one pod, in the file's order.

    Source: Kubernetes API, ``PodStatus.initContainerStatuses``, ``containerStatuses``, ``ephemeralContainerStatuses``.

    Raises:
        InputError: not JSON, or no pods.
    """
    items = read_items(data, "Pod")
    if not items:
        raise InputError(Issue("$.items", "no_pods", "no pod is listed", "at least one pod"))
    return tuple(_pod(item) for item in items)


def read_items(data: bytes, kind: str) -> list[dict[str, Any]]:
    """Return the objects of one kind in what ``kubectl get -o json`` wrote: a list, or one object.

    Raises:
        InputError: not JSON, another kind, or another shape.
    """
    value = _parse(data)
    listed = value.get("items") if str(value.get("kind", "")).endswith("List") else [value]
    if type(listed) is not list or not all(type(item) is dict for item in listed):
        raise InputError(Issue("$.items", "wrong_type", "not a list of objects", "what 'kubectl get -o json' writes"))
    kinds = {str(item.get("kind", kind)) for item in listed}
    if kinds - {kind}:
        words = sorted(name for name in kinds if re.fullmatch(r"[A-Za-z]{1,30}", name))
        raise InputError(Issue("$.kind", "wrong_kind", "objects of another kind", kind, ", ".join(words) or None))
    return listed


def _parse(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError(Issue("$", "invalid_json", "not JSON", "what 'kubectl get -o json' writes")) from None
    if type(value) is not dict:
        raise InputError(Issue("$", "wrong_type", "not an object of Kubernetes", "a JSON object", type(value).__name__))
    return value


def _pod(item: dict[str, Any]) -> PodStatus:
    metadata, spec, status = (_object(item, key) for key in ("metadata", "spec", "status"))
    node, started = spec.get("nodeName"), status.get("startTime")
    return PodStatus(
        str(metadata.get("name", "")),
        str(metadata.get("namespace", "")),
        node if type(node) is str else None,
        _word(status.get("phase")) or "Unknown",
        started if type(started) is str else None,
        tuple(_containers(status)),
    )


def _object(item: dict[str, Any], key: str) -> dict[str, Any]:
    value = item.get(key)
    return value if type(value) is dict else {}


def _containers(status: dict[str, Any]) -> Iterator[ContainerStatus]:
    for key, kind in _STATUSES:
        listed = status.get(key)
        for one in listed if type(listed) is list else ():
            if type(one) is dict:
                yield _container(kind, one)


def _container(kind: str, one: dict[str, Any]) -> ContainerStatus:
    image = _DIGEST.search(str(one.get("imageID", "")))
    restarts = one.get("restartCount")
    return ContainerStatus(
        kind,
        str(one.get("name", "")),
        image[1] if image else None,
        restarts if type(restarts) is int and restarts >= 0 else 0,
        _reason(one),
    )


def _reason(one: dict[str, Any]) -> str | None:
    """Return why a container is waiting or was ended, the latter first: it says what happened."""
    states = (_object(one, "lastState"), _object(one, "state"))
    for where, key in ((states[1], "terminated"), (states[0], "terminated"), (states[1], "waiting")):
        found = _word(_object(where, key).get("reason"))
        if found is not None and found != "Completed":
            return found
    return None


def _word(value: object) -> str | None:
    return value if type(value) is str and _WORD.fullmatch(value) else None
