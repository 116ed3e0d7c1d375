"""Values of shell variables: text of which parts may not be known, arrays of such, or nothing known at all."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

__all__ = ["Field", "Partial", "Value", "assigned", "join", "made", "split", "text_of", "whole"]


@attrs.frozen
class Partial:
    """A variable's text of which parts are not known; they stand in it as written, and ``unresolved`` names them."""

    text: str
    unresolved: tuple[str, ...]

    def cut(self, text: str) -> str | Partial:
        """Return a field of the text, itself partial only where an unknown part stands in it."""
        names = tuple(name for name in self.unresolved if any(f"{lead}{name}" in text for lead in ("$", "${", "$(")))
        names += tuple(name for name in self.unresolved if name[:1] in "$`" and name in text and name not in names)
        return Partial(text, names) if names else text


Field = str | Partial
Value = Field | tuple[Field, ...] | None
"""A variable: text, an array, or not known."""


def made(text: str, unresolved: Sequence[str]) -> Field:
    """Return a field, partial where something in it is not known."""
    return Partial(text, tuple(dict.fromkeys(unresolved))) if unresolved else text


def assigned(text: str, unresolved: Sequence[str]) -> Field | None:
    """Return what an assignment gives a variable: None where all it gives is one thing that is not known."""
    alone = text in unresolved or (text.startswith("$") and not any(character.isspace() for character in text))
    return None if unresolved and alone else made(text, unresolved)


def text_of(field: Field) -> str:
    """Return a field's text, what is not known as written."""
    return field.text if isinstance(field, Partial) else field


def whole(value: Value) -> str | None:
    """Return a variable's text where all of it is known."""
    return value if isinstance(value, str) else None


def join(fields: Sequence[Field]) -> Field:
    """Return fields one after the other as one."""
    unresolved = [name for field in fields if isinstance(field, Partial) for name in field.unresolved]
    return made("".join(map(text_of, fields)), unresolved)


def split(field: Field) -> list[Field]:
    """Return the fields that blanks make of an unquoted value; blanks within a substitution make none."""
    if isinstance(field, str):
        return list(field.split())
    text, kept = field.text, [name for name in field.unresolved if any(map(str.isspace, name))]
    for number, name in enumerate(kept):
        text = text.replace(name, f"\0{number}\0")
    parts = []
    for part in text.split():
        for number, name in enumerate(kept):
            part = part.replace(f"\0{number}\0", name)
        parts.append(field.cut(part))
    return parts
