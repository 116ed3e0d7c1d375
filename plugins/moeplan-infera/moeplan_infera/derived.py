"""Values of ``derived NAME`` fields that follow from how Infera starts its programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moeplan.errors import InputError
from moeplan.facts.launches import Subject
from moeplan.facts.values import Value, absent, known, unknown
from moeplan.manifests.quantities import parse_quantity
from moeplan_infera.programs import DEFAULT_PORTS
from moeplan_infera.reading import mapping, value, volume_at, weights_volume

__all__ = ["DERIVED"]


def _connectors(subject: Subject) -> Value:
    """Return the names of an engine's KV connectors, those within a MultiConnector among them."""
    given = value(subject, "argument --kv-transfer-config")
    if given.state == "unknown":
        return given
    config = mapping(given.value)
    children = mapping(config.get("kv_connector_extra_config")).get("connectors")
    listed = [config, *(children if isinstance(children, list) else [])]
    return known([str(name) for one in listed if (name := mapping(one).get("kv_connector"))], given.place)


def _wrapped(subject: Subject) -> Value:
    """Return whether the command runs through the overlay's wrapper."""
    command = subject.command
    if command is None or not command.words:
        return absent(subject.place())
    return known(command.words[0].text.rsplit("/", 1)[-1] == "infera-exec", subject.place())


def _copied(subject: Subject) -> Value:
    """Return whether an init container writes to the volume that is mounted at /overlay."""
    if subject.template is None:
        return absent(subject.place())
    found = volume_at(subject, "/overlay")
    volume = None if found is None else found[0].volume
    writers = [
        one.name
        for one in subject.template.init_containers
        for mount in one.mounts
        if mount.volume == volume and not mount.read_only
    ]
    return known(bool(writers), subject.place())


def _weights_kind(subject: Subject) -> Value:
    """Return what kind of volume the weights lie on."""
    volume = weights_volume(subject)
    return absent(subject.place()) if volume is None else known(volume.source_kind, subject.place(volume.path))


def _probe_port(subject: Subject) -> Value:
    """Return the port that the startup probe asks, a named one looked up among the container's ports."""
    port = value(subject, "container startupProbe.httpGet.port")
    if not port.is_known or not isinstance(port.value, str) or port.value.isdigit():
        return port
    listed = value(subject, "container ports").value
    for item in listed if isinstance(listed, list) else ():
        if mapping(item).get("name") == port.value:
            return known(mapping(item).get("containerPort"), port.place)
    return unknown(port.place)


def _listening_port(subject: Subject) -> Value:
    given = value(subject, "argument --port")
    return _default_port(subject) if given.state == "absent" else given


def _default_port(subject: Subject) -> Value:
    return known(DEFAULT_PORTS.get("" if subject.program is None else subject.program.name), subject.place())


_ASKED = ("cpu", "memory", "amd.com/gpu")


def _alike(subject: Subject) -> Value:
    """Return whether a container requests what it is limited to, by value, of CPUs, memory and GPUs.

    Source: Kubernetes, Resource Management for Pods and Containers: a request that is not given is the limit;
    extended resources need a limit, and no other request.
    """
    container = subject.container
    if container is None:
        return absent(subject.place())
    place = subject.place(f"{container.path}.resources")
    for name in _ASKED:
        limit = container.limits.get(name)
        request = container.requests.get(name, limit)
        if limit is None and (request is None or "/" not in name):
            continue
        try:
            if limit is None or parse_quantity(request) != parse_quantity(limit):
                return known(False, place)
        except InputError:
            return unknown(place)
    return known(True, place)


def _cpus(subject: Subject) -> Value:
    """Return the CPUs that a container gets, whole ones, rounded down."""
    given = value(subject, "resource cpu")
    if not given.is_known:
        return given
    try:
        return known(int(parse_quantity(given.value)), given.place)
    except InputError:
        return unknown(given.place)


def _tensor_parallel_size(subject: Subject) -> Value:
    given = value(subject, "argument --tensor-parallel-size")
    return known(1, given.place) if given.state == "absent" else given


DERIVED: Mapping[str, Callable[[Subject], Value]] = {
    "infera-connectors": _connectors,
    "infera-wrapped": _wrapped,
    "overlay-copied": _copied,
    "model-volume-kind": _weights_kind,
    "startup-probe-port": _probe_port,
    "listening-port": _listening_port,
    "default-port": _default_port,
    "requests-like-limits": _alike,
    "cpus": _cpus,
    "tensor-parallel-size": _tensor_parallel_size,
}
"""Name → function of a launch."""
