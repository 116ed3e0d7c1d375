"""Kubernetes' own expansion of ``$(NAME)`` in commands, arguments and environment values.

Source: Kubernetes API reference, Container.command: ``$(NAME)`` is replaced where the container's environment has NAME
and stays as it is otherwise; ``$$`` is an escaped ``$``. A variable sees those listed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from moeplan.errors import InputError, Issue
from moeplan.manifests.containers import EnvVar

__all__ = ["MAX_EXPANDED", "Expanded", "expand", "resolve_environment"]

MAX_EXPANDED = 1 << 20
"""Most characters a text may grow to, so that references to references stay bounded."""


@attrs.frozen
class Expanded:
    """A text after expansion.

    Attributes:
        text: the text; a reference that cannot be resolved stands in it as written.
        used: names whose values went into it.
        unresolved: names it refers to whose values are not known from the manifest.
    """

    text: str
    used: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()


def resolve_environment(variables: Iterable[EnvVar]) -> dict[str, Expanded | None]:
    """Return each name's value, expanded; None where it comes from a field, secret or config map.

    Raises:
        InputError: a value grows beyond :data:`MAX_EXPANDED`.
    """
    known: dict[str, Expanded | None] = {}
    for variable in variables:
        known[variable.name] = None if variable.value is None else expand(variable.value, known, variable.path)
    return known


def expand(text: str, environment: Mapping[str, Expanded | None], path: str = "$") -> Expanded:
    """Return ``text`` with its ``$(NAME)`` references replaced as far as the values are known.

    Raises:
        InputError: the text grows beyond :data:`MAX_EXPANDED`.
    """
    if "$" not in text:
        return Expanded(text)
    pieces: list[str] = []
    used: list[str] = []
    unresolved: list[str] = []
    size = at = 0
    while at < len(text):
        piece, at = _piece(text, at, environment, used, unresolved)
        pieces.append(piece)
        size += len(piece)
        if size > MAX_EXPANDED:
            message = "text grows too long when its references are replaced"
            raise InputError(Issue(path, "expansion_too_long", message, f"at most {MAX_EXPANDED} characters"))
    return Expanded("".join(pieces), tuple(dict.fromkeys(used)), tuple(dict.fromkeys(unresolved)))


def _piece(
    text: str, at: int, environment: Mapping[str, Expanded | None], used: list[str], unresolved: list[str]
) -> tuple[str, int]:
    """Return the next piece of the expansion and where the text goes on."""
    if text[at] != "$":
        end = text.find("$", at)
        end = len(text) if end < 0 else end
        return text[at:end], end
    if text.startswith("$$", at):
        return "$", at + 2
    end = text.find(")", at) if text.startswith("$(", at) else -1
    if end < 0:
        # No reference opens here, or none closes from here on: then none does later either.
        return (text[at:], len(text)) if text.startswith("$(", at) and "$$" not in text[at:] else ("$", at + 1)
    name = text[at + 2 : end]
    value = environment.get(name)
    if value is None:
        unresolved.append(name)
        return text[at : end + 1], end + 1
    used.extend((name, *value.used))
    unresolved.extend(value.unresolved)
    return value.text, end + 1
