"""Which given files lie in a bundle: none, unless a word names them; the others are committed to by digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moeplan.errors import InputError, Issue, escape

__all__ = ["ENCLOSABLE", "enclosed_roles", "neutral_name"]

ENCLOSABLE: Mapping[str, tuple[str, ...]] = {
    "tool-output": ("tool_output",),
    "tool-summary": ("tool_summary",),
    "metrics": ("metrics_before", "metrics_after"),
}
"""Words of ``--enclose``, and the roles of attachments that each allows."""


def enclosed_roles(given: str | None, known: Sequence[str] = tuple(ENCLOSABLE)) -> frozenset[str]:
    """Return the roles of attachments that words joined by commas allow; none where nothing was given.

    Raises:
        InputError: a word that is none of ``known``.
    """
    words = [] if given is None else [word.strip() for word in given.split(",")]
    for word in words:
        if word not in known:
            step = "name each kind of file that may be read by whoever gets the bundle"
            shown = escape(repr(word), 80)
            raise InputError(Issue("--enclose", "invalid_value", "no kind of file", ", ".join(known), shown, step))
    return frozenset(role for word in words for role in ENCLOSABLE[word])


def neutral_name(role: str, ending: str, number: int | None = None) -> str:
    """Return what a record calls a given file: role and ending. The file's own name can hold a person's or a host's."""
    return role.replace("_", "-") + ("" if number is None else f"-{number}") + f".{ending}"
