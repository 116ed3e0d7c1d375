"""Lines and columns of what facts point at."""

from __future__ import annotations

import re

from moeplan.facts.values import Place
from moeplan.manifests.commands import Word
from moeplan.manifests.yaml_positions import Document
from moeplan.model.rendering import ManifestSource

__all__ = ["place_in_manifest", "place_in_script"]

_BLOCK = re.compile(r"[|>][0-9+-]*\s*(?:#.*)?$")


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
    line, column = position.line, position.column
    if word is None or word.offset is None:
        if word is None:
            line, column = position.key_line, position.key_column
        return Place(source.name, shown, line, column)
    lines = source.text.splitlines()
    if word.line == 0 and not (line <= len(lines) and _BLOCK.search(lines[line - 1])):
        return Place(source.name, shown, line, column)
    line += word.line + (1 if line <= len(lines) and _BLOCK.search(lines[line - 1]) else 0)
    text = lines[line - 1] if line <= len(lines) else ""
    at = text.find(word.text) if word.text else -1
    return Place(source.name, shown, line, at + 1 if at >= 0 else len(text) - len(text.lstrip()) + 1)
