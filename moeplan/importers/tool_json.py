"""JSON that other tools wrote: fractions are exact decimals; what would make two readers disagree is refused.

moeplan's own documents hold no fraction and go through ``wire.strict_json``.
"""

from __future__ import annotations

import codecs
import json
from decimal import Decimal
from typing import Any

from moeplan.errors import InputError, Issue, escape
from moeplan.units import MAX_SAFE_INTEGER
from moeplan.wire.strict_json import child

__all__ = ["MAX_STREAMED_BYTES", "MAX_TOOL_BYTES", "parse_tool_json"]

MAX_TOOL_BYTES = 512 << 20
"""Cap on a tool's file in bytes: about 300,000 requests of a thousand chunks."""
MAX_STREAMED_BYTES = 8**11 - 1
"""Cap on a tool's file that is read piece by piece: the largest file of an evidence bundle."""
_MAX_DEPTH = 32
_MAX_TOKEN = 64
_MAX_EXPONENT = 400
_MOST_ISSUES = 100
_PLAIN = (int, Decimal, str, bool, type(None))


class _Refused:
    """A number that is none, or that no exact reader should have to hold."""

    def __init__(self, token: str) -> None:
        self.token = token


class _Repeated:
    """An object in which a key occurs more than once."""

    def __init__(self, key: str) -> None:
        self.key = key


def parse_tool_json(data: bytes, *, max_bytes: int = MAX_TOOL_BYTES) -> Any:
    """Return the JSON value in ``data``: integers as int, fractions as the exact Decimal of their text.

    Refused: more than ``max_bytes``, a byte-order mark, any encoding but UTF-8, nesting beyond 32 levels, duplicate
    keys, NaN and infinities, integers beyond 2^53 - 1, numbers of more than 64 characters, anything after the value.

    Raises:
        InputError: with every fault found and its JSON path; syntax errors name line and column.
    """
    if len(data) > max_bytes:
        raise _error("too_large", "tool file too large", f"at most {max_bytes} bytes", f"{len(data)} bytes")
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _error("wrong_encoding", "byte-order mark", "UTF-8 without a byte-order mark")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_Refused,
        )
    except UnicodeDecodeError as error:
        raise _error("wrong_encoding", f"not UTF-8 at byte {error.start}", "UTF-8") from None
    except json.JSONDecodeError as error:
        raise _syntax_error(error) from None
    except RecursionError:
        raise _error("too_deep", "nested too deep", f"at most {_MAX_DEPTH} levels") from None
    issues: list[Issue] = []
    _walk(value, "$", 0, issues)
    if issues:
        raise InputError(*issues[:_MOST_ISSUES])
    return value


def _error(code: str, message: str, expected: str, got: str | None = None, step: str | None = None) -> InputError:
    return InputError(Issue("$", code, message, expected, got, step))


def _syntax_error(error: json.JSONDecodeError) -> InputError:
    place = f"line {error.lineno} column {error.colno}"
    step = None
    if error.msg == "Extra data":
        step = "a file of several results (JSON Lines, --append-result) is split into one file a result first"
    return _error("invalid_json", f"not JSON at {place}: {error.msg}", "one JSON value", None, step)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeated:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    return _Repeated(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]


def _integer(token: str) -> int | _Refused:
    if len(token) > 17:
        return _Refused(token)
    value = int(token)
    return value if abs(value) <= MAX_SAFE_INTEGER else _Refused(token)


def _fraction(token: str) -> Decimal | _Refused:
    if len(token) > _MAX_TOKEN:
        return _Refused(token)
    value = Decimal(token)
    return value if value.is_finite() and abs(value.adjusted()) <= _MAX_EXPONENT else _Refused(token)


def _walk(value: Any, path: str, depth: int, issues: list[Issue]) -> None:
    if depth > _MAX_DEPTH:
        issues.append(Issue(path, "too_deep", "nested too deep", f"at most {_MAX_DEPTH} levels"))
    elif type(value) is list:
        for index, item in enumerate(value):
            if type(item) not in _PLAIN:
                _walk(item, f"{path}[{index}]", depth + 1, issues)
    elif type(value) is dict:
        for key, item in value.items():
            if type(item) not in _PLAIN:
                _walk(item, child(path, key), depth + 1, issues)
    elif type(value) is _Repeated:
        issues.append(Issue(child(path, value.key), "duplicate_key", "key given more than once", "each key once"))
    elif type(value) is _Refused:
        shown = escape(value.token, 40)
        if value.token in ("NaN", "Infinity", "-Infinity"):
            issues.append(Issue(path, "not_a_number", "not a JSON number", "a finite number", shown))
        else:
            issues.append(
                Issue(path, "number_out_of_range", "number too large or too long", "magnitude below 2^53", shown)
            )
