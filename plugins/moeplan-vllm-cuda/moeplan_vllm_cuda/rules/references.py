"""References in a container's command that nothing declares."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moeplan_vllm.rules.reading import is_set

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.commands import Word

__all__ = ["undeclared"]

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_INJECTED = re.compile(r"LWS_[A-Z_]+|[A-Z0-9_]+_SERVICE_(?:HOST|PORT)|[A-Z0-9_]+_PORT(?:_[A-Z0-9_]+)?")
"""Variables that nobody declares: LeaderWorkerSet's and those of services.

Source: LeaderWorkerSet documentation, "Labels, annotations and environment variables"; Kubernetes documentation,
"Discovering services".
"""


def undeclared(scene: Scene) -> Iterator[Hit]:
    """V-POD-001: every ``$(NAME)`` in a command is a variable of the container; names in lower case are commands."""
    for one in scene.launches:
        if one.document is None or one.container is None or one.container.env_from or one.command is None:
            continue
        for word in one.command.words:
            for name in _missing(one, word):
                yield Hit(one.place(word=word), f"$({name}) is used and the container has no variable {name}", one)


def _missing(subject: Subject, word: Word) -> list[str]:
    found = dict.fromkeys(_REFERENCE.findall(word.text))
    return [
        name
        for name in found
        if name != name.lower() and not _INJECTED.fullmatch(name) and not is_set(subject, f"environment {name}")
    ]
