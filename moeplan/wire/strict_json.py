"""Strict JSON: what ``json.loads`` lets through and RFC 8785 or RFC 7493 forbid is refused, with its place."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable
from typing import Any

from moeplan.errors import InputError, Issue, escape
from moeplan.units import MAX_SAFE_INTEGER

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "RefusedNumber",
    "check_value",
    "child",
    "document_text",
    "integer_of",
    "object_of",
    "parse_strict",
    "unknown_key",
]

MAX_BYTES = 32 << 20
"""Default cap on a document's size in bytes."""
MAX_DEPTH = 64
"""Deepest nesting of arrays and objects accepted."""

_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
"""Strings and brackets. Possessive, and a string without an end is taken whole: else hostile text costs its square."""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
_MOST_ISSUES = 100


class _Duplicates(dict[str, Any]):
    """An object some of whose keys occur more than once."""

    repeated: list[str]


class RefusedNumber:
    """A number that no exact integer model may hold; :func:`check_value` refuses it by its path."""

    def __init__(self, token: str) -> None:
        self.token = token


def child(path: str, key: str | int) -> str:
    """Return the JSON path of a member or element below ``path``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{_quoted(key)}]"


def unknown_key(path: str, key: str, known: Iterable[str]) -> Issue:
    """Return the fault of a key that the object at ``path`` does not have, with the nearest key it does have."""
    from difflib import get_close_matches

    near = get_close_matches(key[:80], list(known), 1)
    step = f"did you mean {near[0]!r}?" if near else None
    return Issue(child(path, key), "unknown_key", "key is not part of this document", "only known keys", next=step)


def _quoted(key: str) -> str:
    """Return a key as JSON text in plain ASCII, cut after 80 characters."""
    return escape(json.dumps(key if len(key) <= 80 else key[:80] + "…"), 1000)


def document_text(data: bytes, max_bytes: int) -> str:
    """Return a document's text.

    Raises:
        InputError: more bytes than ``max_bytes``, a byte-order mark, or any encoding but UTF-8.
    """
    if len(data) > max_bytes:
        raise _error("$", "too_large", "document too large", f"at most {max_bytes} bytes", f"{len(data)} bytes")
    if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _error("$", "wrong_encoding", "byte-order mark", "UTF-8 without a byte-order mark")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _error("$", "wrong_encoding", f"not UTF-8 at byte {error.start}", "UTF-8") from None


def parse_strict(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """Return the JSON value in ``data``, or refuse it.

    Refused: more bytes than ``max_bytes``, a byte-order mark, any encoding but UTF-8, nesting beyond
    ``max_depth``, duplicate keys, NaN and infinities, integers beyond 2^53 - 1, fractions and exponents
    (no moeplan document holds a float), unpaired surrogates, and anything after the value.

    Raises:
        InputError: with every fault found and its JSON path; syntax errors name line and column.
    """
    text = document_text(data, max_bytes)
    _check_depth(data, max_depth)
    try:
        value = _decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise _error("$", "invalid_json", f"not JSON at {place}: {error.msg}", "one JSON value") from None
    except RecursionError:
        raise _error("$", "too_deep", "nested too deep", f"at most {max_depth} levels") from None
    check_value(value)
    return value


def check_value(value: Any) -> None:
    """Refuse duplicate keys, unpaired surrogates and numbers that are not exact integers, each by its path.

    Raises:
        InputError: with every fault found, at most 100.
    """
    issues: list[Issue] = []
    _walk(value, "$", issues)
    if issues:
        raise InputError(*issues[:_MOST_ISSUES])


def _error(path: str, code: str, message: str, expected: str, got: str | None = None) -> InputError:
    return InputError(Issue(path, code, message, expected, got))


def _check_depth(data: bytes, max_depth: int) -> None:
    if data.count(b"[") + data.count(b"{") <= max_depth:
        return
    depth = 0
    for match in _STRUCTURE.finditer(data):
        token = data[match.start()]
        if token in b"[{":
            depth += 1
            if depth > max_depth:
                raise _error("$", "too_deep", f"nested too deep at byte {match.start()}", f"at most {max_depth} levels")
        elif token in b"]}":
            depth -= 1


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of key and value pairs; keys given twice are remembered for :func:`check_value` to refuse."""
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    marked = _Duplicates(made)
    again = (key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    marked.repeated = list(dict.fromkeys(again))
    return marked


def integer_of(token: str) -> int | RefusedNumber:
    """Return the integer in ``token``, or a mark for :func:`check_value` where it is beyond 2^53 - 1."""
    if len(token) > 17:
        return RefusedNumber(token)
    value = int(token)
    return value if abs(value) <= MAX_SAFE_INTEGER else RefusedNumber(token)


_decode = json.JSONDecoder(
    object_pairs_hook=object_of, parse_int=integer_of, parse_float=RefusedNumber, parse_constant=RefusedNumber
).decode


def _walk(value: Any, path: str, issues: list[Issue]) -> None:
    kind = type(value)
    if kind is str:
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            issues.append(Issue(path, "unpaired_surrogate", "text with an unpaired surrogate", "Unicode text"))
    elif kind is list:
        for index, item in enumerate(value):
            if len(issues) >= _MOST_ISSUES:
                return
            if type(item) is not int:
                _walk(item, f"{path}[{index}]", issues)
    elif isinstance(value, dict):
        for key in getattr(value, "repeated", ()):
            issues.append(Issue(child(path, key), "duplicate_key", "key given more than once", "each key once"))
        for key, item in value.items():
            if len(issues) >= _MOST_ISSUES:
                return
            if type(item) is not int or not key.isascii():
                _walk(key, child(path, key), issues) if not key.isascii() else None
                _walk(item, child(path, key), issues)
    elif kind is RefusedNumber:
        issues.append(_refused(path, value.token))


def _refused(path: str, token: str) -> Issue:
    shown = escape(token, 40)
    if token.lstrip("-").isdigit():
        return Issue(path, "integer_out_of_range", "integer too large", "at most 2^53 - 1 in magnitude", shown)
    if any(c.isdigit() for c in token):
        hint = "write whole units (ns, bytes, basis points)"
        return Issue(path, "not_an_integer", "fraction or exponent", "an exact integer", shown, hint)
    return Issue(path, "not_a_number", "not a JSON number", "an exact integer", shown)
