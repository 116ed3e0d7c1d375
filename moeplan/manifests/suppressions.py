"""``# moeplan: ignore ID reason``: findings that a manifest's author has looked at and accepts."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import attrs

from moeplan.errors import Issue, escape

__all__ = ["Span", "Suppression", "find_suppressions"]

Span = tuple[int, int, int, int]
"""First line, first column, last line, column after the last character; all from 1."""

_COMMENT = re.compile(r"(?:^|(?<=\s))#[ \t]*moeplan:[ \t]*ignore\b(?P<rest>.*)$")
_REST = re.compile(
    r"[ \t]+(?P<ids>[A-Za-z0-9][A-Za-z0-9._-]*(?:,[A-Za-z0-9][A-Za-z0-9._-]*)*)(?:[ \t]+(?P<reason>\S.*))?"
)


@attrs.frozen
class Suppression:
    """One accepted finding.

    Attributes:
        id: the finding's identifier.
        reason: why it is accepted; never empty.
        line: line of the comment, from 1.
        first_line: first line covered.
        last_line: last line covered.
    """

    id: str
    reason: str
    line: int
    first_line: int
    last_line: int

    def covers(self, finding_id: str, line: int) -> bool:
        """Return whether a finding of this id at this line is suppressed."""
        return finding_id == self.id and self.first_line <= line <= self.last_line


def find_suppressions(
    text: str, scalars: Sequence[Span], entries: Mapping[int, int]
) -> tuple[tuple[Suppression, ...], tuple[Issue, ...]]:
    """Return the suppressions in a YAML text, and as issues the comments that name no id or no reason.

    A comment at the end of a line covers what begins on that line; one on its own line covers what begins on the next
    line that holds anything but a comment. What begins there is the widest key or list item, to its last line.

    Args:
        text: the file.
        scalars: the spans of all scalars in order, as a comment within one is none.
        entries: for each line on which keys or list items begin, the last line of the widest.
    """
    lines = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text)
    if "moeplan:" not in text:
        return (), ()
    following = _next_content(lines)
    found: list[Suppression] = []
    faults: list[Issue] = []
    for number, line in enumerate(lines, 1):
        match = _COMMENT.search(line) if "moeplan:" in line else None
        if match is None or _within(scalars, number, match.start() + 1):
            continue
        told = _REST.fullmatch(match["rest"].rstrip())
        if told is None or told["reason"] is None:
            message = (
                f"a suppression without id or reason at line {number} column {match.start() + 1}; it has no effect"
            )
            got = escape(match[0].strip(), 80)
            faults.append(Issue("$", "suppression_without_reason", message, "# moeplan: ignore ID reason", got))
            continue
        target = number if line[: match.start()].strip() else following[number - 1]
        last = entries.get(target, target)
        found.extend(Suppression(name, told["reason"], number, target, last) for name in told["ids"].split(","))
    return tuple(found), tuple(faults)


def _within(scalars: Sequence[Span], line: int, column: int) -> bool:
    index = bisect_right(scalars, (line, column + 1)) - 1
    return index >= 0 and (line, column) < scalars[index][2:]


def _next_content(lines: Sequence[str]) -> list[int]:
    """Return for each line the number of the next one that holds more than a comment, or its own where none does."""
    following = []
    content = 0
    for number in range(len(lines), 0, -1):
        following.append(content or number)
        shown = lines[number - 1].strip()
        if shown and not shown.startswith("#"):
            content = number
    return following[::-1]
