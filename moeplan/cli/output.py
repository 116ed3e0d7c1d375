"""What the commands print: documents and tables on stdout, notes and progress on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from moeplan.errors import Issue, MoeplanError, StoreError, escape

__all__ = ["emit_bytes", "emit_json", "emit_text", "note", "note_error", "silence", "table"]

_MOST_LINES = 100


def emit_bytes(data: bytes) -> None:
    """Write bytes to stdout as they are.

    Raises:
        StoreError: stdout is closed, or the device it leads to is full.
        BrokenPipeError: nobody reads any more.
    """
    if sys.stdout is None:  # closed by the caller
        raise StoreError(Issue("stdout", "file_write", "cannot write: standard output is closed", "an open output"))
    try:
        sys.stdout.flush()
        rest = memoryview(data)
        while rest:  # an unbuffered stdout (PYTHONUNBUFFERED) takes what a pipe has room for, and no more
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        from moeplan.wire.files import store_error

        raise store_error("stdout", error, "write") from None


def silence() -> None:
    """Let what is still buffered for stdout go nowhere, so that leaving does not fail on it once more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def emit_json(value: Any) -> None:
    """Write one JSON value to stdout in RFC 8785 form and one LF."""
    from moeplan.wire.canonical import canonical_line

    emit_bytes(canonical_line(value))


def emit_text(text: str) -> None:
    """Write one text and an LF to stdout, fit for a terminal."""
    emit_bytes((_plain(text) + "\n").encode("utf-8"))


def note(text: str) -> None:
    """Write one line to stderr; where that cannot be written there is nowhere left to say so."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(_plain(text), file=sys.stderr, flush=True)


def _plain(text: str) -> str:
    """Return a text of lines whose control characters and unpaired surrogates, wherever they come from, are escaped."""
    lines = text.split("\n")
    if all(line.isprintable() for line in lines):
        return text
    return "\n".join(escape(line, 10 * len(line)) for line in lines)


def note_error(error: MoeplanError) -> None:
    """Write an error's issues to stderr, one line each, at most 100."""
    lines = error.lines()
    for line in lines[:_MOST_LINES]:
        note(f"error: {line}")
    if len(lines) > _MOST_LINES:
        note(f"… and {len(lines) - _MOST_LINES} more")


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a plain text table with aligned columns; cells are escaped for a terminal."""
    cells = [[escape(str(cell), 400) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [list(headers), *cells]) for column in range(len(headers))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in [list(headers), ["-" * width for width in widths], *cells]
    ]
    return "\n".join(lines)
