"""What a file is, told by its structure; its name never decides. Reads its beginning, and moderate JSON whole."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from functools import cached_property
from typing import IO, Any

import attrs

from moeplan.importers.recognised_formats import FORMATS, OTHER, Format

__all__ = ["HEAD_BYTES", "WHOLE_BYTES", "Recognised", "recognise"]

HEAD_BYTES = 256 << 10
"""As much of a file is looked at where it is no JSON."""
WHOLE_BYTES = 32 << 20
"""A JSON file up to this size is parsed whole; of a larger one the keys at its beginning count."""
_GZIP = b"\x1f\x8b"
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:?)')


@attrs.frozen
class Recognised:
    """What a file is taken for.

    Attributes:
        format: the row of the table.
        sure: ``certain``, ``likely`` or ``guess``.
        why: what told it.
        packed: whether it was read through gzip.
    """

    format: Format
    sure: str
    why: str
    packed: bool


@attrs.frozen(slots=False)
class _Look:
    """The beginning of a file, seen in each way a rule may ask for."""

    head: bytes
    whole: bool

    @cached_property
    def text(self) -> str | None:
        data = self.head.removeprefix(b"\xef\xbb\xbf")
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16", "replace")
        if b"\0" in data[:4096]:
            return None
        return data.decode("utf-8", "replace").replace("\r\n", "\n")

    @cached_property
    def value(self) -> Any:
        """The parsed JSON file; None where it is none, or was not read whole."""
        return _parsed(self.text) if self.whole and self.text is not None else None

    @cached_property
    def first(self) -> Any:
        """The first line, where it is a JSON value of its own and the file is not one value over several lines."""
        line = (self.text or "").lstrip().partition("\n")[0]
        return _parsed(line) if line.startswith("{") else None

    @cached_property
    def keys(self) -> dict[str, Any]:
        """Keys of the JSON object that the file begins with; of a cut one those that are seen, without values."""
        if isinstance(self.value, dict):
            return self.value
        text = (self.text or "").lstrip()
        return dict.fromkeys(_keys_at_depth_one(text)) if text.startswith("{") and self.value is None else {}

    @cached_property
    def item(self) -> Any:
        """The first item of a JSON array of objects; of a cut one its keys."""
        if isinstance(self.value, list):
            return self.value[0] if self.value else None
        text = (self.text or "").lstrip()
        match = re.match(r"\[\s*(?=\{)", text)
        return None if match is None else dict.fromkeys(_keys_at_depth_one(text[match.end() :]))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _keys_at_depth_one(text: str) -> list[str]:
    """Return the keys of the object that ``text`` begins with, as far as the text goes. Linear."""
    keys, depth, at = [], 0, 0
    while at < len(text):
        c = text[at]
        if c == '"':
            match = _KEY.match(text, at)
            if match is None:
                break
            if depth == 1 and match[2]:
                keys.append(match[1])
            at = match.end()
            continue
        depth += (c in "{[") - (c in "}]")
        if depth == 0 and at:
            break
        at += 1
    return keys


def recognise(stream: IO[bytes]) -> Recognised:
    """Return what a file is taken for. Never raises for what the file holds; reads at most 32 MiB of it.

    Args:
        stream: the file, at its beginning; a gzip file is read through.
    """
    head, whole, packed = _read(stream)
    look = _Look(head, whole)
    if not head.strip():
        return Recognised(attrs.evolve(OTHER, tool="empty file", note="no evidence"), "certain", "it is empty", packed)
    for one in FORMATS:
        why = _fits(one, look)
        if why is not None:
            sure = one.sure if whole or one.shape != "object" else "likely"
            return Recognised(one, sure, why, packed)
    return Recognised(OTHER, "guess", "no mark of a known format", packed)


def _read(stream: IO[bytes]) -> tuple[bytes, bool, bool]:
    """Return the beginning, whether it is all, and whether it was packed."""
    data = stream.read(HEAD_BYTES)
    packed = data.startswith(_GZIP)
    if packed:
        data += stream.read(WHOLE_BYTES - len(data))
        unpacking = zlib.decompressobj(31)
        try:
            data = unpacking.decompress(data, WHOLE_BYTES)
        except zlib.error:
            return data, False, False
        return data, unpacking.eof, True
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        data += stream.read(WHOLE_BYTES - len(data))
    return data, len(data) < WHOLE_BYTES and not stream.read(1), packed


def _fits(one: Format, look: _Look) -> str | None:
    """Return what told the format, None where it is another."""
    if one.shape == "binary":
        return _found(one, look.head[:4096].decode("latin-1"))
    if one.shape == "text":
        return None if look.text is None or look.value is not None else _found(one, look.text[:HEAD_BYTES])
    seen: Any = {"object": look.keys, "items": look.item, "lines": look.first}[one.shape]
    if not isinstance(seen, Mapping) or (
        one.shape == "lines" and look.value is not None and "\n" in str(look.text).strip()
    ):
        return None
    marks = one.marks if look.whole else one.cut or one.marks
    if not all(_has(seen, mark) for mark in marks):
        return None
    if any(seen.get(key) not in (None, *words) or (seen.get(key) is None and look.whole) for key, words in one.values):
        return None
    return "keys " + ", ".join(marks)


def _found(one: Format, text: str) -> str | None:
    match = re.search(one.marks[0], text, re.MULTILINE)
    return None if match is None else "its beginning" if match.start() == 0 else "its text"


def _has(seen: Any, mark: str) -> bool:
    for part in mark.split("."):
        if isinstance(seen, list) and part.isdigit() and int(part) < len(seen):
            seen = seen[int(part)]
        elif isinstance(seen, Mapping) and part in seen:
            seen = seen[part]
        else:
            return False
    return True
