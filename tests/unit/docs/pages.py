"""The pages, their fenced blocks, and how a shown output is compared with a real one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
CUT = "…"
"""On a line of its own it stands for any lines, within a line for any text."""

_FENCE = re.compile(r"^```(.*)\n((?:(?!```).*\n)*)```$", re.MULTILINE)
_EXIT = re.compile(r"\[exit ([0-9]+)\]")


@attrs.frozen
class Block:
    """One fenced block: the line its fence stands on, the words after the fence, and its lines."""

    line: int
    info: str
    text: str


@attrs.frozen
class Step:
    """One command of a console block with the output it shows and its exit status."""

    line: int
    command: str
    shown: tuple[str, ...]
    status: int


def blocks(page: Path) -> list[Block]:
    """Return a page's fenced blocks in order."""
    text = page.read_text("utf-8")
    return [Block(text.count("\n", 0, m.start()) + 1, m[1].strip(), m[2]) for m in _FENCE.finditer(text)]


def steps(block: Block) -> Iterator[Step]:
    """Yield the commands of a console block; a backslash continues a command on the next line."""
    lines = block.text.replace("\\\n", "\\\0").splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        shown = [line for line in lines[start + 1 : stop] if line]
        told = _EXIT.fullmatch(shown[-1]) if shown else None
        command = lines[start][2:].replace("\\\0", "\\\n")
        yield Step(
            block.line + 1 + start,
            command,
            tuple(shown[:-1] if told else shown),
            int(told[1]) if told is not None else 0,
        )


def sections(page: Path, level: int) -> dict[str, str]:
    """Return heading to text for the headings of one level; each ends at the next of that level or above."""
    parts = re.split(rf"^(#{{1,{level}}}) (.*)\n", page.read_text("utf-8"), flags=re.MULTILINE)
    found = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    return {title: text for marks, title, text in found if len(marks) == level}


def table_rows(text: str) -> list[list[str]]:
    """Return the rows of the first Markdown table in ``text``, without its head."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("|")), len(lines))
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[2:]


def shows(shown: Sequence[str], got: str) -> bool:
    """Return whether the output ``got`` is the one shown; cuts are allowed, and columns may be as wide as they like."""
    parts = []
    for line in map(_narrow, shown):
        if line == CUT:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append("[^\n]*?".join(re.escape(word) for word in line.split(CUT)) + r"\n")
    real = "".join(_narrow(line) + "\n" for line in got.splitlines() if line.strip())
    return re.fullmatch("".join(parts), real) is not None


def _narrow(line: str) -> str:
    return re.sub("-{3,}", "---", re.sub(" +", " ", line)).strip()
