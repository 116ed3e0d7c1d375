"""Environment variables that a container takes from ConfigMaps which stand among the same manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from moeplan.facts.values import Value, absent, known, unknown

if TYPE_CHECKING:
    from moeplan.facts.launches import Subject

__all__ = ["given_by_config_map", "taken_from_config_maps"]


def given_by_config_map(subject: Subject, name: str, path: str) -> Value:
    """Return the value of a variable listed with ``valueFrom``: unknown unless its ConfigMap is there.

    Args:
        subject: the launch.
        name: the variable's.
        path: JSON path of the variable in the container's ``env``.
    """
    place = subject.place(path)
    for item in reversed(_listed(subject, "env")):
        reference = _mapping(_mapping(item.get("valueFrom")).get("configMapKeyRef"))
        if item.get("name") == name and reference:
            data = _config_map(subject, reference.get("name"))
            value = None if data is None else data.get(str(reference.get("key")))
            return unknown(place) if value is None else known(str(value), place)
    return unknown(place)


def taken_from_config_maps(subject: Subject, name: str, path: str) -> Value:
    """Return the value that ``envFrom`` gives a variable; absent only where every source is there and none has it.

    Source: Kubernetes API reference, Container.envFrom: of a key in several sources the last one's value holds.
    """
    open_ = False
    sources = _listed(subject, "envFrom")
    for index in range(len(sources) - 1, -1, -1):
        place = subject.place(f"{path}[{index}]")
        data = _config_map(subject, _mapping(sources[index].get("configMapRef")).get("name"))
        if data is None:
            open_ = True
            continue
        prefix = str(sources[index].get("prefix") or "")
        key = name.removeprefix(prefix)
        if name.startswith(prefix) and key in data:
            return unknown(place) if open_ else known(str(data[key]), place)
    return unknown(subject.place(path)) if open_ else absent(subject.place(path))


def _listed(subject: Subject, key: str) -> list[Mapping[str, Any]]:
    spec = {} if subject.container is None else subject.container.spec
    listed = spec.get(key)
    return [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []


def _config_map(subject: Subject, name: Any) -> Mapping[str, Any] | None:
    """Return the data of the ConfigMap of this name in the launch's namespace."""
    found = [one for one in _config_maps(subject) if _mapping(one.get("metadata")).get("name") == name]
    return _mapping(found[-1].get("data")) if found and isinstance(name, str) else None


def _config_maps(subject: Subject) -> Iterator[Mapping[str, Any]]:
    own = None if subject.template is None else subject.template.namespace
    for one in subject.scene.documents:
        value = _mapping(None if one.document is None else one.document.value)
        namespace = _mapping(value.get("metadata")).get("namespace")
        if value.get("kind") == "ConfigMap" and (own is None or namespace in (None, own)):
            yield value


def _mapping(what: Any) -> Mapping[str, Any]:
    return what if isinstance(what, Mapping) else {}
