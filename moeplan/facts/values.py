"""What a field of a manifest holds: a value, nothing, or something that only running would tell."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["ABSENT", "Place", "Value", "absent", "known", "unknown"]


@attrs.frozen
class Place:
    """Where a value stands: a source's name, a JSON path in it, line and column from 1 where known."""

    file: str
    path: str
    line: int | None = None
    column: int | None = None


@attrs.frozen
class Value:
    """A field's value.

    Attributes:
        state: ``known``, ``absent``, or ``unknown``: it is set, or may be, to something the manifest does not tell.
        value: the value, where known.
        place: where it stands, or where it would.
    """

    state: str
    value: Any = None
    place: Place | None = None

    @property
    def is_known(self) -> bool:
        """Return whether there is a value and it is known."""
        return self.state == "known"

    def shown(self) -> str:
        """Return the value for a message."""
        if self.state != "known":
            return "not set" if self.state == "absent" else "not known"
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, list) and all(isinstance(one, str) for one in self.value):
            return ", ".join(self.value)
        return str(self.value)


def known(value: Any, place: Place | None = None) -> Value:
    """Return a known value; None counts as absent."""
    return Value("absent" if value is None else "known", value, place)


def absent(place: Place | None = None) -> Value:
    """Return the value of a field that is not set."""
    return Value("absent", None, place)


def unknown(place: Place | None = None) -> Value:
    """Return the value of a field that only running would tell."""
    return Value("unknown", None, place)


ABSENT = Value("absent")
