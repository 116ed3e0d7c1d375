"""Names of what can be asked of a launch, and of a path through JSON values.

A field is a space, a name and sometimes a path, apart by blanks: ``argument --kv-transfer-config kv_role``,
``environment UCX_TLS``, ``pod nodeSelector["kubernetes.io/hostname"]``, ``mount /dev/shm source.medium``. The spaces
are in :data:`SPACES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape

__all__ = ["SPACES", "Field", "follow", "parse_field", "steps_of"]

SPACES: dict[str, str] = {
    "argument": "an engine's argument by its canonical name, and a path in its JSON value",
    "environment": "an environment variable",
    "image": "the container's image: reference, repository, tag or digest",
    "init-image": "the image of the init container of this name",
    "pod": "a path in the pod's spec",
    "container": "a path in the container",
    "owner": "a path in what holds the pod: a service of an InferaDeployment, a Deployment's spec",
    "document": "a path in the whole manifest",
    "mount": "what is mounted at a path: volume, kind, source, readOnly, subPath",
    "resource": "a resource of the container: its limit, or else its request",
    "site": "a path in the site",
    "model": "an architecture value of the model that is served",
    "launch": "role, program, kind, profile, version, model or positional",
    "derived": "a value that a library or plugin computes",
}
"""Every space with what it holds."""

_STEP = re.compile(r'\.?([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]+|\*)\]|\[("(?:[^"\\]|\\.)*")\]')


@attrs.frozen
class Field:
    """A field: its space, its name there, and the steps of a path below it; ``*`` stands for every item."""

    space: str
    name: str
    steps: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        path = "".join(_shown(step) for step in self.steps).lstrip(".")
        return " ".join(part for part in (self.space, self.name, path) if part)


def _shown(step: str | int) -> str:
    if isinstance(step, int) or step == "*":
        return f"[{step}]"
    return f".{step}" if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", step) else f"[{json.dumps(step)}]"


def parse_field(text: Any, path: str = "$") -> Field:
    """Return the field that ``text`` names.

    Raises:
        InputError: no such field.
    """
    words = text.split(" ") if isinstance(text, str) else []
    if not words or words[0] not in SPACES or not 2 <= len(words) <= 3 or not all(words):
        expected = "a space, a name and perhaps a path; spaces are " + ", ".join(SPACES)
        raise InputError(Issue(path, "invalid_field", "no field", expected, escape(repr(text), 120)))
    space, name = words[0], words[1]
    if space in ("pod", "container", "owner", "document", "site"):
        return Field(space, "", steps_of(name, path))
    return Field(space, name, steps_of(words[2], path) if len(words) == 3 else ())


def steps_of(text: str, path: str = "$") -> tuple[str | int, ...]:
    """Return the steps of a path such as ``a.b[0]["kubernetes.io/hostname"]``.

    Raises:
        InputError: no path.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise InputError(Issue(path, "invalid_field", "no path", 'such as a.b[0]["c/d"]', escape(text, 120)))
        name, index, quoted = match.groups()
        steps.append(name or (json.loads(quoted) if quoted else "*" if index == "*" else int(index)))
        at = match.end()
    return tuple(steps)


def follow(value: Any, steps: tuple[str | int, ...]) -> tuple[Any, tuple[str | int, ...]]:
    """Return what ``steps`` lead to and the steps that could be taken; None where a step is missing.

    After ``*`` the result is the list of what the rest leads to in each item, missing ones left out.
    """
    for number, step in enumerate(steps):
        if step == "*":
            items = value if isinstance(value, list | tuple) else ()
            found = [follow(item, steps[number + 1 :])[0] for item in items]
            return [one for one in found if one is not None], steps[:number]
        if isinstance(step, int):
            below = value[step] if isinstance(value, list | tuple) and step < len(value) else None
        else:
            below = value.get(step) if isinstance(value, Mapping) else None
        if below is None:
            return None, steps[:number]
        value = below
    return value, steps
