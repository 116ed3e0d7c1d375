"""What a plain (unquoted) YAML word stands for: as kubectl reads it, and whether any reader takes it for no text.

Source: ``resolve`` of go-yaml v2, which kubectl uses through sigs.k8s.io/yaml. Its booleans are YAML 1.1's: ``yes``,
``no``, ``on``, ``off``, ``y`` and ``n`` are booleans, a leading zero means octal, underscores between digits are
dropped, while YAML 1.1's sexagesimal numbers (``1:30``) are text and so are timestamps.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

__all__ = ["is_ambiguous", "resolve_plain"]

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_WORDS = {
    form: value
    for value, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MOST_DIGITS = 400
"""Longest number read as one; a binary64 has at most 309 digits before its point."""

_OTHER_FORMS = re.compile(
    r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?"  # YAML 1.1: sexagesimal integers and floats
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"  # YAML 1.1: timestamps
    r"|[-+]?0[xX][0-9a-fA-F.]+(?:[pP][-+]?[0-9]+)?"
    r"|[-+]?0[oObB]?[0-9]+|[-+]?\.?[0-9][0-9,]*\.?[0-9]*(?:[eE][-+]?[0-9]*)?"
    r"|[-+]?\.?(?:inf|nan|infinity)|=|<<|[-+.]",
    re.ASCII | re.IGNORECASE,
)
_OTHER_WORDS = frozenset(("", "~", "null", "y", "n", "yes", "no", "on", "off", "true", "false"))


def resolve_plain(word: str) -> Any:
    """Return what kubectl takes a plain word for: None, a bool, an int, a :class:`~decimal.Decimal`, or text.

    Numbers with a point or exponent stay exact decimals; one beyond binary64 is text, as it is for go-yaml.

    Raises:
        ValueError: an infinity or NaN, which JSON and therefore the Kubernetes API cannot hold.
    """
    if word in _NULLS:
        return None
    if word in _WORDS:
        return _WORDS[word]
    if _NO_NUMBER.fullmatch(word):
        raise ValueError(word)
    if word[0] not in "+-.0123456789":
        return word
    digits = word.replace("_", "") if word[0] != "." else word
    if len(digits) > _MOST_DIGITS:
        return word
    match = _INTEGER.fullmatch(digits)
    if match is not None:
        sign, *forms = match.groups()
        number = next(int(form, base) for form, base in zip(forms, (16, 2, 8, 10), strict=True) if form is not None)
        return -number if sign == "-" else number
    if _FLOAT.fullmatch(digits):
        return _decimal(digits, word)
    return word


def _decimal(digits: str, word: str) -> Decimal | str:
    nearest = float(digits)
    if nearest in (float("inf"), float("-inf")):
        return word
    return Decimal(digits) if nearest else Decimal(0)


def is_ambiguous(text: str) -> bool:
    """Return whether a YAML 1.1 or 1.2 reader could take the plain word ``text`` for anything but text."""
    if text.lower() in _OTHER_WORDS or _OTHER_FORMS.fullmatch(text.replace("_", "")):
        return True
    try:
        return not isinstance(resolve_plain(text), str)
    except ValueError:
        return True
