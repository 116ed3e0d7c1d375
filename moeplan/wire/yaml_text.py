"""YAML for documents that people write: JSON's types only, no anchors, aliases or tags, no key twice.

Source: YAML 1.2.2 section 10.3.2 (core schema) for which plain words are null, booleans and integers. Stricter than
it: decimal integers with leading zeros are refused, because YAML 1.1 reads them as octal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from moeplan.errors import InputError, Issue, escape
from moeplan.wire.strict_json import MAX_DEPTH, RefusedNumber, check_value, child, document_text, integer_of, object_of

__all__ = ["MAX_YAML_BYTES", "parse_yaml_strict"]

MAX_YAML_BYTES = 256 << 10
"""Default cap on a YAML document's size in bytes: what a person writes, as the parser is not linear."""

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_DECIMAL = re.compile(r"[-+]?[0-9]+", re.ASCII)
_PADDED = re.compile(r"[-+]?0[0-9]+", re.ASCII)
_BASED = re.compile(r"0(?:o[0-7]+|x[0-9a-fA-F]+)", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)

Events = Iterator[Any]


def parse_yaml_strict(data: bytes, *, max_bytes: int = MAX_YAML_BYTES) -> Any:
    """Return the one YAML document in ``data`` as JSON values, or refuse it.

    Refused: more bytes than ``max_bytes``, any encoding but UTF-8, a second document, anchors, aliases, tags, keys
    that are not text, duplicate keys, fractions, integers beyond 2^53 - 1, nesting beyond 64.

    Raises:
        InputError: with the JSON path; syntax errors name line and column.
    """
    import yaml

    text = document_text(data, max_bytes)
    try:
        value = _document(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" at line {mark.line + 1} column {mark.column + 1}" if mark is not None else ""
        problem = escape(str(error.problem), 120)
        raise _error("$", "invalid_yaml", f"not YAML{place}: {problem}", "one YAML document") from None
    except yaml.YAMLError as error:
        raise _error("$", "invalid_yaml", f"not YAML: {escape(str(error), 120)}", "one YAML document") from None
    check_value(value)
    return value


def _error(path: str, code: str, message: str, expected: str, got: str | None = None) -> InputError:
    return InputError(Issue(path, code, message, expected, got))


def _document(events: Events) -> Any:
    next(events)  # the stream's start
    if type(next(events)).__name__ == "StreamEndEvent":
        raise _error("$", "invalid_yaml", "no document", "one YAML document")
    value = _node(next(events), events, "$", 1)
    next(events)  # the document's end
    if type(next(events)).__name__ != "StreamEndEvent":
        raise _error("$", "invalid_yaml", "a second document", "one YAML document")
    return value


def _node(event: Any, events: Events, path: str, depth: int) -> Any:
    kind = type(event).__name__
    if kind == "AliasEvent" or event.anchor is not None:
        raise _error(path, "yaml_alias", "anchor or alias", "the value written out", escape(str(event.anchor), 60))
    if event.tag is not None:
        raise _error(path, "yaml_tag", "tag", "a plain value", escape(event.tag, 60))
    if depth > MAX_DEPTH:
        raise _error("$", "too_deep", "nested too deep", f"at most {MAX_DEPTH} levels")
    if kind == "ScalarEvent":
        return _plain(event.value, path) if event.style is None else event.value
    if kind == "SequenceStartEvent":
        items: list[Any] = []
        while type(item := next(events)).__name__ != "SequenceEndEvent":
            items.append(_node(item, events, f"{path}[{len(items)}]", depth + 1))
        return items
    pairs: list[tuple[str, Any]] = []
    while type(item := next(events)).__name__ != "MappingEndEvent":
        key = _node(item, events, path, depth + 1)
        if type(key) is not str:
            raise _error(path, "key_not_text", "a key that is not text", "text; put it in quotes", _shown(key))
        pairs.append((key, _node(next(events), events, child(path, key), depth + 1)))
    return object_of(pairs)


def _shown(key: object) -> str:
    return escape(key.token if isinstance(key, RefusedNumber) else repr(key), 60)


def _plain(word: str, path: str) -> Any:
    if word in _NULLS:
        return None
    if word in _BOOLEANS:
        return _BOOLEANS[word]
    if _PADDED.fullmatch(word):
        expected = "no leading zeros, or quotes where text is meant"
        raise _error(path, "ambiguous_number", "a number with leading zeros", expected, escape(word, 40))
    if _DECIMAL.fullmatch(word):
        return integer_of(word)
    if _BASED.fullmatch(word):
        return integer_of(str(int(word, 0))) if len(word) <= 64 else RefusedNumber(word)
    if _FLOAT.fullmatch(word):
        return RefusedNumber(word)
    return word
