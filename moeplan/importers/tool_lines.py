"""JSON Lines that other tools wrote: one object a line, each read as ``tool_json`` reads a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moeplan.errors import InputError, Issue
from moeplan.importers.tool_json import MAX_TOOL_BYTES, parse_tool_json

__all__ = ["at_line", "parse_tool_lines"]


def at_line(issue: Issue, place: str) -> Issue:
    """Return an issue of one line's object with the line before its JSON path."""
    return issue.under(f"{place}: $") if issue.path.startswith("$") else issue


def parse_tool_lines(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ``line N`` and the object of each line that is not blank.

    A file that is one object over several lines is ``line 1``.

    Raises:
        InputError: too large, nothing in it, a line that is no object, or a last line that was cut off.
    """
    if len(data) > MAX_TOOL_BYTES:
        got = f"{len(data)} bytes"
        raise InputError(Issue("$", "too_large", "tool file too large", f"at most {MAX_TOOL_BYTES} bytes", got))
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise InputError(Issue("$", "empty_file", "nothing in the file", "one JSON object a line"))
    if len(lines) > 1 and lines[0][1].strip() in (b"{", b"["):
        lines = [(1, data)]
    for number, line in lines:
        last = number == lines[-1][0] and not data.endswith(b"\n")
        yield f"line {number}", _object(line, f"line {number}", last)


def _object(line: bytes, place: str, last: bool) -> dict[str, Any]:
    try:
        value = parse_tool_json(line)
    except InputError as error:
        if last and any(issue.code == "invalid_json" for issue in error.issues):
            step = "take the file of a run that ended, or remove the last line"
            raise InputError(
                Issue(place, "partial_file", "the last line is cut off", "one whole JSON object", None, step)
            ) from None
        raise InputError(*(at_line(issue, place) for issue in error.issues)) from None
    if type(value) is not dict:
        raise InputError(Issue(place, "wrong_type", "not a run's result", "a JSON object", type(value).__name__))
    return value
