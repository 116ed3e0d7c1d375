"""Single values out of a tool's JSON, each refused by its path where it is not what the tool writes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from moeplan.errors import InputError, Issue
from moeplan.importers.shown import shown
from moeplan.model.evidence import Claim
from moeplan.wire.strict_json import child

__all__ = [
    "MOST_SECONDS",
    "MOST_TOKENS",
    "claim_text",
    "count_at",
    "list_at",
    "object_at",
    "refused",
    "seconds_at",
    "text_at",
]

MOST_SECONDS = 10**7
MOST_TOKENS = 10**9
_CLAIM_LENGTH = 64
_KINDS: dict[type, str] = {dict: "a JSON object", list: "a list"}


def refused(path: str, expected: str, value: Any) -> InputError:
    """Return the error that ``path`` holds something else than ``expected``; text of the file is not shown."""
    return InputError(Issue(path, "invalid_value", "value refused", expected, shown(value)))


def object_at(parent: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    """Return the object under a key.

    Raises:
        InputError: another type, or no such key.
    """
    return _typed(parent, key, path, dict)  # type: ignore[no-any-return]


def list_at(parent: dict[str, Any], key: str, path: str) -> list[Any]:
    """Return the list under a key; otherwise as :func:`object_at`."""
    return _typed(parent, key, path, list)  # type: ignore[no-any-return]


def _typed(parent: dict[str, Any], key: str, path: str, kind: type) -> Any:
    value = parent.get(key)
    if type(value) is not kind:
        raise refused(child(path, key), _KINDS[kind], value)
    return value


def text_at(parent: dict[str, Any], key: str, path: str) -> str:
    """Return printable text of 1 to 200 characters; otherwise as :func:`object_at`."""
    value = parent.get(key)
    if type(value) is not str or not 0 < len(value) <= 200 or not value.isprintable():
        raise refused(child(path, key), "printable text of 1 to 200 characters", value)
    return value


def count_at(value: Any, path: str, most: int = MOST_TOKENS) -> int:
    """Return a count from 0 to ``most``.

    Raises:
        InputError: anything else.
    """
    if type(value) is not int or not 0 <= value <= most:
        raise refused(path, f"an integer from 0 to {most}", value)
    return value


def seconds_at(value: Any, path: str, most: int = MOST_SECONDS) -> Decimal:
    """Return seconds from 0 to ``most`` as the decimal that the file holds.

    Raises:
        InputError: anything else.
    """
    if type(value) not in (int, Decimal) or not 0 <= value <= most:
        raise refused(path, f"seconds from 0 to {most}", value)
    return Decimal(value)


def claim_text(name: str, value: Any, path: str) -> Claim | None:
    """Return one figure that the tool reports of itself; None where it is null, which means not computed.

    Raises:
        InputError: no number.
    """
    if value is None:
        return None
    text = str(value)
    if type(value) not in (int, Decimal) or len(text) > _CLAIM_LENGTH:
        raise refused(path, "a number", value)
    return Claim(name, text)
