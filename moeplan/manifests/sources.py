"""Files as linters get them: manifests or launch scripts, told apart, with the comments that accept findings."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.manifests.suppressions import Suppression, find_suppressions
from moeplan.manifests.yaml_positions import Document, load_manifests

__all__ = ["SourceFile", "json_values", "read_source"]

_MANIFESTS = frozenset((".yaml", ".yml", ".json"))
_SCRIPTS = frozenset((".sh", ".bash", ".zsh", ".env"))


@attrs.frozen
class SourceFile:
    """A file read: ``documents`` is None for a launch script."""

    name: str
    text: str
    documents: tuple[Document, ...] | None
    faults: tuple[Issue, ...]
    suppressions: tuple[Suppression, ...]


def read_source(name: str, data: bytes) -> SourceFile:
    """Return a file as manifests where its name's ending says so or it reads as such, and as a launch script otherwise.

    Args:
        name: the file's name, ``-`` for standard input.
        data: its bytes, UTF-8.

    Raises:
        InputError: named as manifests and not readable as such, or no text.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in _MANIFESTS:
        return _manifests(name, data)
    if suffix not in _SCRIPTS and not data.startswith(b"#!"):
        try:
            read = _manifests(name, data)
        except InputError:
            return _script(name, data)
        if any(isinstance(document.value, dict) and "kind" in document.value for document in read.documents or ()):
            return read
    return _script(name, data)


def _manifests(name: str, data: bytes) -> SourceFile:
    read = load_manifests(data, source=escape(name, 400))
    return SourceFile(name, data.decode("utf-8-sig"), read.documents, read.faults, read.suppressions)


def _script(name: str, data: bytes) -> SourceFile:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        issue = Issue("$", "invalid_utf8", f"not UTF-8 at byte {error.start}", "a manifest or a script in UTF-8")
        raise InputError(issue, source=escape(name, 400)) from None
    if "\0" in text:
        raise InputError(
            Issue("$", "no_text", "has NUL characters", "a manifest or a script"), source=escape(name, 400)
        )
    suppressions, faults = find_suppressions(text, (), _continued(text))
    return SourceFile(name, text, None, faults, suppressions)


def _continued(text: str) -> dict[int, int]:
    """Return for each line that begins a command the last line of it, lines joined by a backslash being one."""
    lines = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", text)
    last: dict[int, int] = {}
    begin = 1
    for number, line in enumerate(lines, 1):
        if not line.rstrip().endswith("\\") or line.lstrip().startswith("#"):
            last[begin] = number
            begin = number + 1
    return last


def json_values(value: Any) -> Any:
    """Return a document's values as JSON has them, which is how hooks get them: exact decimals and keys are text."""
    if isinstance(value, dict):
        return {str(key): json_values(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_values(item) for item in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)
