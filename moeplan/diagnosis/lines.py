"""Whole lines of bytes from blocks: lines of any length in bounded memory, colour codes taken out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import attrs

__all__ = ["LINE_BYTES", "LineCount", "readings", "whole_lines", "without_colours"]

LINE_BYTES = 64 << 10
"""What of a line is looked at; the rest is skipped and the line counted as cut."""

_COLOURS = re.compile(rb"\x1b\[[0-9;]*+m")
"""The sequences that set colours, by far the most frequent ones. Source: ECMA-48 section 8.3.117."""
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[0-Z\\^-~])")
"""Other control sequences, operating-system commands and shorter escapes. Source: ECMA-48 sections 5.3 to 5.6."""
_COLOURS_IN_JSON = re.compile(rb"\\u001[bB]\[[0-?]*[ -/]*[@-~]")


@attrs.define
class LineCount:
    """Lines seen so far, and how many of them were longer than ``LINE_BYTES``."""

    lines: int = 0
    cut: int = 0


def whole_lines(blocks: Iterable[bytes], count: LineCount) -> Iterator[bytes]:
    """Yield pieces of one or more lines, each ended with LF, the last one too; the blocks' borders leave no trace.

    Args:
        blocks: bytes, in order.
        count: is told of lines that were cut; lines are counted by who takes the pieces.
    """
    rest, skipping = b"", False
    for block in blocks:
        if skipping:
            end = block.find(b"\n")
            if end < 0:
                continue
            block, skipping = block[end:], False
        data = rest + block
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if len(rest) > LINE_BYTES:
            rest, skipping = rest[:LINE_BYTES], True
            count.cut += 1
        if end:
            yield _short_lines(data[:end], count)
    if rest:
        yield rest + b"\n"


def _short_lines(piece: bytes, count: LineCount) -> bytes:
    """Return a piece with what its lines have beyond ``LINE_BYTES`` taken out; a jump a line's bound, not each line."""
    kept, start, parts = 0, 0, []
    while len(piece) - start > LINE_BYTES + 1:
        end = piece.rfind(b"\n", start, start + LINE_BYTES + 1)
        if end < 0:
            end = piece.find(b"\n", start)
            parts.append(piece[kept : start + LINE_BYTES])
            kept = end
            count.cut += 1
        start = end + 1
    return b"".join((*parts, piece[kept:])) if parts else piece


def without_colours(piece: bytes) -> bytes:
    """Return lines without terminal escapes, colours first, then others, then as JSON writes them; no line is lost."""
    if b"\x1b" in piece:
        piece = _COLOURS.sub(b"", piece)
    if b"\x1b" in piece:
        piece = _ESCAPES.sub(b"", piece)
    if b"\\" in piece and b"\\u001" in piece:
        piece = _COLOURS_IN_JSON.sub(b"", piece)
    return piece


def readings(line: bytes) -> tuple[bytes, ...]:
    """Return what a line says, as valid UTF-8: the line, and where it is a JSON object each text of it.

    Container runtimes write one JSON object a line, with the text escaped inside. What is no UTF-8 is replaced, and
    line ends are taken off.
    """
    line = line.rstrip(b"\r")
    if not line.isascii():
        line = line.decode("utf-8", "replace").encode()
    if not (line.startswith(b"{") and line.endswith(b"}")):
        return (line,)
    try:
        values = json.loads(line).values()
    except (ValueError, RecursionError):
        return (line,)
    texts = (value.rstrip("\r\n").encode("utf-8", "replace") for value in values if type(value) is str)
    return (line, *texts)
