"""Lines and columns of what facts point at."""

from __future__ import annotations

from moeplan.facts.fields import follow, steps_of
from moeplan.facts.values import Place
from moeplan.manifests.commands import Word
from moeplan.manifests.yaml_positions import Document, Position
from moeplan.model.rendering import ManifestSource

__all__ = ["place_in_manifest", "place_in_script"]


def place_in_script(source: ManifestSource, word: Word | None) -> Place:
    """Return where a word of a launch script stands; its first line without one."""
    if word is None or word.offset is None:
        return Place(source.name, "$", 1 if word is None else word.line + 1, 1)
    begin = source.text.rfind("\n", 0, word.offset) + 1
    return Place(source.name, "$", word.line + 1, word.offset - begin + 1)


def place_in_manifest(source: ManifestSource, document: Document, path: str, word: Word | None = None) -> Place:
    """Return where a JSON path of a document stands, or a word of a script that stands there."""
    position = document.position(path if word is None else word.path)
    shown = document.root + (path if word is None else word.path).removeprefix("$")
    if word is None:
        return Place(source.name, shown, position.key_line, position.key_column)
    if word.offset is None:
        return Place(source.name, shown, position.line, position.column)
    lines = source.text.splitlines()[: position.last_line]
    if position.style == "|":
        return Place(source.name, shown, *_in_block(lines, position, word))
    return Place(source.name, shown, *_within(lines, position, word, document))


def _in_block(lines: list[str], position: Position, word: Word) -> tuple[int, int]:
    """Return line and column of a word in a literal block, which has the script's own lines."""
    line = min(position.line + 1 + word.line, len(lines))
    text = lines[line - 1]
    at = text.find(word.text) if word.text else -1
    return line, at + 1 if at >= 0 else len(text) - len(text.lstrip()) + 1


def _within(lines: list[str], position: Position, word: Word, document: Document) -> tuple[int, int]:
    """Return line and column of a word in a script that is written folded or in quotes, so that its lines are others'.

    A word that quotes or references make look otherwise there stands where the script begins.
    """
    script = follow(document.value, steps_of(word.path.removeprefix("$")))[0]
    before = script.count(word.text, 0, word.offset) if isinstance(script, str) and word.text else 0
    text = "\n".join(lines[position.line - 1 :])
    at, begin = -1, position.column - 1
    for _ in range(before + 1):
        at = text.find(word.text, begin) if word.text else -1
        if at < 0:
            break
        begin = at + 1
    if at < 0:
        return position.line, position.column
    line = text.count("\n", 0, at)
    return position.line + line, at - (text.rfind("\n", 0, at) + 1) + 1
