"""Containers of a pod template: image, command, environment, mounts, resources, each with its JSON path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from moeplan.errors import Issue, escape

__all__ = ["Container", "EnvVar", "Mount", "read_containers"]


@attrs.frozen
class EnvVar:
    """An environment variable.

    Attributes:
        name: its name.
        value: its value as given, references to other variables unexpanded; None where it comes from elsewhere.
        source: where it comes from (``fieldRef``, ``secretKeyRef``), None where it has a value.
        path: JSON path of the list item.
    """

    name: str
    value: str | None
    source: str | None
    path: str


@attrs.frozen
class Mount:
    """A volume mounted into a container."""

    volume: str
    mount_path: str
    read_only: bool
    sub_path: str | None
    path: str


@attrs.frozen
class Container:
    """One container.

    Attributes:
        name: its name.
        init: whether it is an init container.
        path: JSON path of the list item.
        image: the image reference, None where none is given.
        command: the command, None where the image's entrypoint runs.
        args: the arguments, None where the image's hold (and with a command, none).
        env: its environment variables in order; the last of a name holds.
        env_from: whether further variables come from config maps or secrets, whose names are not known.
        mounts: its volume mounts.
        requests: requested resources as given.
        limits: resource limits as given.
        spec: the container as given: ports, probes, security context.
    """

    name: str
    init: bool
    path: str
    image: str | None
    command: tuple[str, ...] | None
    args: tuple[str, ...] | None
    env: tuple[EnvVar, ...]
    env_from: bool
    mounts: tuple[Mount, ...]
    requests: Mapping[str, Any]
    limits: Mapping[str, Any]
    spec: Mapping[str, Any]

    def variable(self, name: str) -> EnvVar | None:
        """Return the variable of this name that holds: the last one."""
        return next((variable for variable in reversed(self.env) if variable.name == name), None)


def read_containers(spec: Mapping[str, Any], key: str, path: str, faults: list[Issue]) -> tuple[Container, ...]:
    """Return the containers under ``key`` of a pod's spec at ``path``; what is malformed is added to ``faults``."""
    reader = _Reader(faults)
    items = reader.listed(spec.get(key), f"{path}.{key}")
    return tuple(reader.container(item, f"{path}.{key}[{i}]", key == "initContainers") for i, item in enumerate(items))


class _Reader:
    """Reads with all faults noted: a value of the wrong type is a fault and counts as absent."""

    def __init__(self, faults: list[Issue]) -> None:
        self._faults = faults

    def container(self, value: Any, path: str, init: bool) -> Container:
        spec = self._mapping(value, path)
        resources = self._mapping(spec.get("resources"), f"{path}.resources")
        return Container(
            name=self._text(spec.get("name"), f"{path}.name") or "",
            init=init,
            path=path,
            image=self._text(spec.get("image"), f"{path}.image"),
            command=self._words(spec.get("command"), f"{path}.command"),
            args=self._words(spec.get("args"), f"{path}.args"),
            env=tuple(self._env(spec.get("env"), f"{path}.env")),
            env_from=bool(spec.get("envFrom")),
            mounts=tuple(self._mounts(spec.get("volumeMounts"), f"{path}.volumeMounts")),
            requests=self._mapping(resources.get("requests"), f"{path}.resources.requests"),
            limits=self._mapping(resources.get("limits"), f"{path}.resources.limits"),
            spec=spec,
        )

    def listed(self, value: Any, path: str) -> list[Any]:
        if value is not None and not isinstance(value, list):
            self._fault(path, "a list", value)
        return value if isinstance(value, list) else []

    def _env(self, value: Any, path: str) -> list[EnvVar]:
        found = []
        for index, item in enumerate(self.listed(value, path)):
            here = f"{path}[{index}]"
            variable = self._mapping(item, here)
            name = self._text(variable.get("name"), f"{here}.name")
            if name is None:
                continue
            source = next(iter(self._mapping(variable.get("valueFrom"), f"{here}.valueFrom")), None)
            given = self._text(variable.get("value"), f"{here}.value")
            found.append(EnvVar(name, None if source else given or "", source, here))
        return found

    def _mounts(self, value: Any, path: str) -> list[Mount]:
        found = []
        for index, item in enumerate(self.listed(value, path)):
            here = f"{path}[{index}]"
            mount = self._mapping(item, here)
            volume = self._text(mount.get("name"), f"{here}.name") or ""
            target = self._text(mount.get("mountPath"), f"{here}.mountPath") or ""
            sub_path = self._text(mount.get("subPath"), f"{here}.subPath")
            found.append(Mount(volume, target, mount.get("readOnly") is True, sub_path, here))
        return found

    def _words(self, value: Any, path: str) -> tuple[str, ...] | None:
        if value is None:
            return None
        return tuple(self._text(item, f"{path}[{i}]") or "" for i, item in enumerate(self.listed(value, path)))

    def _mapping(self, value: Any, path: str) -> Mapping[str, Any]:
        if value is not None and not isinstance(value, dict):
            self._fault(path, "a mapping", value)
        return value if isinstance(value, dict) else {}

    def _text(self, value: Any, path: str) -> str | None:
        """Return text; a number or boolean is a fault (Kubernetes refuses it) and read as it was meant."""
        if value is None or isinstance(value, str):
            return value
        self._fault(path, "text; put it in quotes", value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return None if isinstance(value, dict | list) else str(value)

    def _fault(self, path: str, expected: str, value: Any) -> None:
        self._faults.append(Issue(path, "wrong_type", "not what is wanted here", expected, _shown(value)))


def _shown(value: Any) -> str:
    return type(value).__name__ if isinstance(value, dict | list) else escape(str(value)[:200], 60)
