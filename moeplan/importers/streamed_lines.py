"""JSON Lines of any size, one object a line, fast and still without anything on which two readers could differ.

Each line is read by ``msgspec`` and written again: where that gives the same bytes but for spaces, no key stands twice
and every number is its own shortest text. Any other line is read strictly, with fractions as exact decimals. Unlike in
``tool_lines``, integers are as large as nanoseconds since 1970.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import IO, Any

from moeplan.errors import InputError, Issue, escape

__all__ = ["at_line", "read_objects"]

_MOST_LINE_BYTES = 64 << 20
_MOST_NUMBER = 64


def at_line(number: int, path: str = "$") -> str:
    """Return where a value lies: the line, from 1, and the JSON path within it."""
    return f"line {number}: {path}"


def read_objects(data: bytes | IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line's number, from 1, and its object; blank lines are passed over.

    Fractions are floats where their text is the shortest that reads back as the same float, else exact Decimals.

    Raises:
        InputError: a line that is no JSON object, too long, with a key twice or a number that is none; a last line
            that breaks off is named ``partial_file``.
    """
    import msgspec

    lines = io.BytesIO(data) if isinstance(data, bytes) else data
    for number, line in enumerate(iter(lambda: lines.readline(_MOST_LINE_BYTES + 1), b""), 1):
        if len(line) > _MOST_LINE_BYTES:
            raise InputError(Issue(at_line(number), "too_large", "line too long", f"at most {_MOST_LINE_BYTES} bytes"))
        text = line.rstrip(b"\r\n")
        if not text.strip():
            continue
        try:
            value = msgspec.json.decode(text)
            again = msgspec.json.encode(value)
            # Other spaces alone leave no room for a key that stands twice, or a number written in another way.
            if again != text and again.translate(None, b" ") != text.translate(None, b" "):
                value = _strict(text, number)
        except msgspec.MsgspecError:
            value = _strict_or_partial(line, text, number)
        if type(value) is not dict:
            got = type(value).__name__
            raise InputError(Issue(at_line(number), "wrong_type", "not a JSON object", "one object a line", got))
        yield number, value


def _strict_or_partial(line: bytes, text: bytes, number: int) -> Any:
    """Return the value of a line that only the fast reader refuses, else raise why it is no JSON."""
    try:
        return _strict(text, number)
    except InputError as error:
        if line.endswith(b"\n") or error.issues[0].code != "invalid_json":
            raise
        message, step = "the last line is cut off", "take the file of a run that ended, or remove the last line"
        raise InputError(Issue(at_line(number), "partial_file", message, "whole lines", None, step)) from None


def _strict(text: bytes, number: int) -> Any:
    def refuse(token: str) -> Any:
        got = escape(token, 40)
        raise InputError(Issue(at_line(number), "not_a_number", "not a number to be held", "a finite number", got))

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise InputError(Issue(at_line(number), "duplicate_key", "key given more than once", "each key once"))
        return made

    def fraction(token: str) -> Decimal:
        return Decimal(token) if len(token) <= _MOST_NUMBER else refuse(token)

    def whole(token: str) -> int:
        return int(token) if len(token) <= _MOST_NUMBER else refuse(token)

    try:
        return json.loads(
            text.decode(), object_pairs_hook=unique, parse_float=fraction, parse_int=whole, parse_constant=refuse
        )
    except RecursionError:
        raise InputError(Issue(at_line(number), "too_deep", "nested too deep", "a record of the tool")) from None
    except ValueError as error:
        place = f"character {error.pos}" if isinstance(error, json.JSONDecodeError) else "its encoding"
        raise InputError(
            Issue(at_line(number), "invalid_json", f"not JSON at {place}", "one JSON object a line")
        ) from None
