"""YAML and JSON manifests as plain values, with the line and column of every key and value.

Plain words mean what kubectl takes them for (:mod:`moeplan.manifests.yaml_scalars`): ``yes`` and ``no`` **are**
booleans there. Numbers with a fraction are exact decimals. Keys that are booleans or integers become text, as
sigs.k8s.io/yaml does it. Of a key given twice the last value holds, and the repetition is a fault beside the result.
Merge keys follow the YAML merge specification: what a mapping itself says wins. Anchors and aliases are followed as
far as the written-out document stays within the caps. Tags are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.manifests.suppressions import Suppression, find_suppressions
from moeplan.manifests.yaml_scalars import resolve_plain
from moeplan.wire.strict_json import child

__all__ = ["MAX_MANIFEST_BYTES", "MAX_NODES", "Document", "ManifestFile", "Position", "load_manifests"]

MAX_MANIFEST_BYTES = 8 << 20
"""Default cap on a file's size in bytes."""
MAX_NODES = 400_000
"""Most keys and values of a file, aliases written out."""
MAX_DEPTH = 64
"""Deepest nesting, aliases written out."""

_UNREADABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_LAST_STEP = re.compile(r'(?:\.[A-Za-z_][A-Za-z0-9_]*|\[[0-9]+\]|\["(?:[^"\\]|\\.)*"\])$')


@attrs.frozen
class Position:
    """Where a key and its value begin; lines and columns count from 1. Items of a list have no key of their own.

    Attributes:
        line: line of the value.
        column: column of the value.
        key_line: line of the key, or of the value where there is no key.
        key_column: column of the key, likewise.
        last_line: line that a scalar ends on; of mappings, lists and aliases the line they begin on.
        style: how a scalar is written: ``|``, ``>`` or a quote; empty for plain words, mappings, lists and aliases.
    """

    line: int
    column: int
    key_line: int
    key_column: int
    last_line: int
    style: str = ""


@attrs.frozen
class Document:
    """One object of a file; the items of a ``List`` are documents of their own.

    Attributes:
        value: the object as plain values.
        number: which YAML document of the file holds it, from 0.
        root: its JSON path within that YAML document: ``$``, or ``$.items[2]`` for an item of a list.
    """

    value: Any
    number: int
    root: str
    _positions: dict[str, Position] = attrs.field(repr=False, eq=False)

    def position(self, path: str) -> Position:
        """Return where ``path`` (JSON path from this document's root) lies, or else what lies nearest above it."""
        full = self.root + path.removeprefix("$")
        while full not in self._positions:
            shorter = _LAST_STEP.sub("", full)
            if shorter == full:
                return self._positions["$"]
            full = shorter
        return self._positions[full]

    def has_position(self, path: str) -> bool:
        """Return whether ``path`` itself is written in the file; what an alias or merge key brings is not."""
        return self.root + path.removeprefix("$") in self._positions


@attrs.frozen
class ManifestFile:
    """What a file holds.

    Attributes:
        documents: its objects in order; empty YAML documents are left out.
        faults: what is wrong without making the file unreadable, each message with line and column.
        suppressions: its ``# moeplan: ignore`` comments.
    """

    documents: tuple[Document, ...]
    faults: tuple[Issue, ...]
    suppressions: tuple[Suppression, ...]


def load_manifests(data: bytes, *, max_bytes: int = MAX_MANIFEST_BYTES, source: str | None = None) -> ManifestFile:
    """Return the manifests in ``data``: YAML with any number of documents, or JSON.

    Args:
        data: the bytes as received, UTF-8.
        max_bytes: most bytes accepted.
        source: where the bytes came from, for messages.

    Raises:
        InputError: not readable; the message names line and column where there is one.
    """
    try:
        return _load(data, max_bytes)
    except InputError as error:
        error.source = source
        raise


def _load(data: bytes, max_bytes: int) -> ManifestFile:
    import yaml

    text = _text(data, max_bytes)
    reader = _Reader()
    try:
        trees = reader.documents(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" at line {mark.line + 1} column {mark.column + 1}" if mark is not None else ""
        raise _refused("$", "invalid_yaml", f"not YAML{place}: {escape(str(error.problem), 120)}") from None
    except yaml.YAMLError as error:
        raise _refused("$", "invalid_yaml", f"not YAML: {escape(str(error), 120)}") from None
    documents = tuple(document for number, tree in enumerate(trees) for document in _expanded(*tree, number))
    suppressions, without_reason = find_suppressions(text, reader.scalars, reader.entries)
    return ManifestFile(documents, (*reader.faults, *without_reason), suppressions)


def _refused(path: str, code: str, message: str, expected: str = "YAML or JSON", got: str | None = None) -> InputError:
    return InputError(Issue(path, code, message, expected, got))


def _text(data: bytes, max_bytes: int) -> str:
    if len(data) > max_bytes:
        raise _refused("$", "too_large", "file too large", f"at most {max_bytes} bytes", f"{len(data)} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise _refused("$", "wrong_encoding", f"not UTF-8 at line {line} byte {column}", "UTF-8") from None
    bad = _UNREADABLE.search(text)
    if bad is not None:
        line, column = text.count("\n", 0, bad.start()) + 1, bad.start() - text.rfind("\n", 0, bad.start())
        message = f"a character YAML does not allow at line {line} column {column}"
        raise _refused("$", "invalid_character", message, "printable text", escape(bad[0]))
    return _SURROGATES.sub(_joined, text) if text.lstrip()[:1] in ("{", "[") else text


def _joined(match: re.Match[str]) -> str:
    """Return JSON's escaped surrogate pair as YAML's escape of the one character it stands for."""
    high, low = int(match[2], 16), int(match[3], 16)
    return f"{match[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def _expanded(value: Any, positions: dict[str, Position], number: int) -> Iterator[Document]:
    if value is None:
        return
    if isinstance(value, dict) and isinstance(value.get("items"), list) and str(value.get("kind")).endswith("List"):
        for index, item in enumerate(value["items"]):
            yield Document(item, number, f"$.items[{index}]", positions)
    else:
        yield Document(value, number, "$", positions)


@attrs.frozen
class _Node:
    """A value read: how many keys and values it has, how deep it is, and the last line it stands on."""

    value: Any
    size: int
    depth: int
    last_line: int


class _Reader:
    """Turns parser events into values, noting positions, scalar spans and entries on the way."""

    def __init__(self) -> None:
        self.faults: list[Issue] = []
        self.scalars: list[tuple[int, int, int, int]] = []
        self.entries: dict[int, int] = {}
        self._nodes = 0
        self._anchors: dict[str, _Node] = {}
        self._positions: dict[str, Position] = {}

    def documents(self, events: Iterator[Any]) -> list[tuple[Any, dict[str, Position]]]:
        found = []
        for event in events:
            if type(event).__name__ in ("StreamStartEvent", "DocumentStartEvent", "DocumentEndEvent", "StreamEndEvent"):
                continue
            self._anchors, self._positions = {}, {}
            found.append((self._node(event, events, "$", 1).value, self._positions))
        return found

    def _node(self, event: Any, events: Iterator[Any], path: str, depth: int, key: Any = None) -> _Node:
        mark = event.start_mark
        start = (key or event).start_mark
        kind = type(event).__name__
        self._positions[path] = Position(
            mark.line + 1,
            mark.column + 1,
            start.line + 1,
            start.column + 1,
            _last_line(event) if kind == "ScalarEvent" else mark.line + 1,
            (event.style or "") if kind == "ScalarEvent" else "",
        )
        if kind == "AliasEvent":
            node = self._alias(event, path, depth)
        else:
            if event.tag is not None:
                raise _at(event, path, "yaml_tag", "a tag", "a plain value", event.tag)
            if depth > MAX_DEPTH:
                raise _at(event, path, "too_deep", "nested too deep", f"at most {MAX_DEPTH} levels")
            self._count(event, path, 1)
            if kind == "ScalarEvent":
                node = self._scalar(event, path)
            elif kind == "SequenceStartEvent":
                node = self._sequence(event, events, path, depth)
            else:
                node = self._mapping(event, events, path, depth)
            if event.anchor is not None:
                self._anchors[event.anchor] = node
        if path != "$":
            line = start.line + 1
            self.entries[line] = max(self.entries.get(line, line), node.last_line)
        return node

    def _count(self, event: Any, path: str, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise _at(event, path, "too_many_values", "too many values, aliases written out", f"at most {MAX_NODES}")

    def _alias(self, event: Any, path: str, depth: int) -> _Node:
        node = self._anchors.get(event.anchor)
        if node is None:
            expected = "an anchor that stands before it and does not hold it"
            raise _at(event, path, "unknown_alias", "an alias to no anchor", expected, event.anchor)
        self._count(event, path, node.size)
        if depth + node.depth - 1 > MAX_DEPTH:
            raise _at(event, path, "too_deep", "nested too deep", f"at most {MAX_DEPTH} levels")
        return attrs.evolve(node, last_line=event.start_mark.line + 1)

    def _scalar(self, event: Any, path: str) -> _Node:
        begin, end = event.start_mark, event.end_mark
        block = event.style in ("|", ">")
        # A comment may stand on the header line of a block scalar.
        first = (begin.line + 2, 1) if block else (begin.line + 1, begin.column + 1)
        self.scalars.append((*first, end.line + 1, end.column + 1))
        last = _last_line(event)
        if event.style:
            return _Node(event.value, 1, 1, last)
        try:
            return _Node(resolve_plain(event.value), 1, 1, last)
        except ValueError:
            raise _at(event, path, "not_a_number", "no finite number", "a number or quoted text", event.value) from None

    def _sequence(self, event: Any, events: Iterator[Any], path: str, depth: int) -> _Node:
        items: list[_Node] = []
        while type(item := next(events)).__name__ != "SequenceEndEvent":
            items.append(self._node(item, events, f"{path}[{len(items)}]", depth + 1))
        return _joined_node([item.value for item in items], items, event)

    def _mapping(self, event: Any, events: Iterator[Any], path: str, depth: int) -> _Node:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        inner: list[_Node] = []
        while type(key := next(events)).__name__ != "MappingEndEvent":
            name = self._key(key, path)
            below = child(path, name)
            if name in own:
                line, column = key.start_mark.line + 1, key.start_mark.column + 1
                message = f"key given more than once, again at line {line} column {column}; the last one holds"
                self.faults.append(Issue(below, "duplicate_key", message, "each key once"))
            self._count(key, path, 1)
            node = self._node(next(events), events, below, depth + 1, key)
            inner.append(node)
            if name == "<<" and not key.style:
                for source in node.value if isinstance(node.value, list) else [node.value]:
                    if not isinstance(source, dict):
                        raise _at(key, below, "invalid_merge", "a merge key without a mapping", "a mapping or a list")
                    self._count(key, below, len(source))
                    merged |= {k: v for k, v in source.items() if k not in merged}
            else:
                own[name] = node.value
        value = own if not merged else {**{k: v for k, v in merged.items() if k not in own}, **own}
        return _joined_node(value, inner, event)

    def _key(self, event: Any, path: str) -> str:
        if type(event).__name__ != "ScalarEvent" or event.tag is not None:
            issue = _at(event, path, "key_not_text", "a key that is not text", "text").issues[0]
            hint = "if this is a template, render it first (helm template)"
            raise InputError(attrs.evolve(issue, next=hint))
        self._scalar(event, path)
        value = event.value if event.style else resolve_plain(event.value)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Node(value, 1, 1, event.start_mark.line + 1)
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        raise _at(event, path, "key_not_text", "a key that is not text", "text; put it in quotes", event.value)


def _last_line(event: Any) -> int:
    begin, end = event.start_mark, event.end_mark
    return int(end.line if end.column == 0 and end.line > begin.line else end.line + 1)


def _joined_node(value: Any, inner: list[_Node], event: Any) -> _Node:
    size = 1 + sum(node.size + 1 for node in inner)
    depth = 1 + max((node.depth for node in inner), default=0)
    return _Node(value, size, depth, max((node.last_line for node in inner), default=event.end_mark.line + 1))


def _at(event: Any, path: str, code: str, message: str, expected: str, got: str | None = None) -> InputError:
    place = f"{message} at line {event.start_mark.line + 1} column {event.start_mark.column + 1}"
    return InputError(Issue(path, code, place, expected, None if got is None else escape(got, 60)))
