"""Values of ``derived NAME`` fields that follow from Kubernetes alone; plugins add their engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError
from moeplan.facts.values import Value, absent, known, unknown
from moeplan.manifests.quantities import parse_bytes
from moeplan.wire.strict_json import child

if TYPE_CHECKING:
    from moeplan.facts.launches import Subject

__all__ = ["DERIVED", "nodes_of"]


def _probe(subject: Subject, name: str) -> tuple[dict[str, Any] | None, str]:
    if subject.container is None:
        return None, "$"
    probe = subject.container.spec.get(name)
    return (probe if isinstance(probe, dict) else None), child(subject.container.path, name)


def _seconds(subject: Subject, name: str) -> Value:
    """Return how long a probe lets a container be: delay + period × failures.

    Source: Kubernetes API reference, Probe: periodSeconds defaults to 10, failureThreshold to 3, the delay to 0.
    """
    probe, path = _probe(subject, name)
    place = subject.place(path)
    if probe is None:
        return absent(place)
    numbers = [
        probe.get(key, default)
        for key, default in (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3))
    ]
    if not all(type(number) is int for number in numbers):
        return unknown(place)
    return known(numbers[0] + numbers[1] * numbers[2], place)


def _accelerators(subject: Subject) -> Value:
    """Return how many accelerators the container asks for; resources of all vendors end in ``/gpu``."""
    container = subject.container
    if container is None:
        return absent(subject.place())
    path = child(container.path, "resources")
    for key, listed in (("limits", container.limits), ("requests", container.requests)):
        for name, amount in listed.items():
            if isinstance(name, str) and name.endswith("/gpu"):
                place = subject.place(child(child(path, key), name))
                text = str(amount)
                return known(int(text), place) if text.isascii() and text.isdigit() else unknown(place)
    return absent(subject.place(path))


def _shm_bytes(subject: Subject) -> Value:
    """Return the size limit of the memory volume at /dev/shm; a memory volume without a limit has none: absent."""
    container, template = subject.container, subject.template
    if container is None or template is None:
        return unknown(subject.place())
    for mount in container.mounts:
        if mount.mount_path.rstrip("/") == "/dev/shm":
            volume = template.volume(mount.volume)
            source = None if volume is None else volume.source
            limit = source.get("sizeLimit") if isinstance(source, dict) else None
            try:
                return known(None if limit is None else parse_bytes(str(limit)), subject.place(mount.path))
            except InputError:
                return unknown(subject.place(mount.path))
    return absent(subject.place(child(container.path, "volumeMounts")))


def nodes_of(subject: Subject) -> Value:
    """Return how many nodes the site has: a count, or the length of its list."""
    nodes = subject.scene.site.get("nodes")
    if type(nodes) is int:
        return known(nodes, subject.place())
    if isinstance(nodes, list | tuple):
        return known(len(nodes), subject.place())
    return unknown(subject.place())


DERIVED: dict[str, Callable[[Subject], Value]] = {
    "startup-budget-seconds": lambda subject: _seconds(subject, "startupProbe"),
    "liveness-budget-seconds": lambda subject: _seconds(subject, "livenessProbe"),
    "accelerators": _accelerators,
    "shm-bytes": _shm_bytes,
    "nodes": nodes_of,
}
"""Name → function of a subject."""
