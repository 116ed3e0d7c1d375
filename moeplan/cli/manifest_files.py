"""Manifests and launch scripts as a command line names them: files, directories, standard input."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from moeplan.errors import InputError, Issue, escape

__all__ = ["read_manifest_files"]

_SUFFIXES = (".yaml", ".yml", ".json", ".sh", ".bash")


def read_manifest_files(paths: list[str]) -> dict[str, bytes]:
    """Return the contents of files by name; a directory stands for the manifests and scripts within."""
    from moeplan.manifests.yaml_positions import MAX_MANIFEST_BYTES
    from moeplan.wire.files import read_file

    files: dict[str, bytes] = {}
    for path in paths:
        if path == "-":
            files["-"] = _stdin(MAX_MANIFEST_BYTES)
            continue
        for name in _within(path):
            files[name] = read_file(name, max_bytes=MAX_MANIFEST_BYTES)
    return files


def _within(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    found = sorted(str(file) for file in Path(path).rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
    if not found:
        shown = escape(path, 400)
        raise InputError(Issue(shown, "no_files", "a directory without manifests", f"files in {', '.join(_SUFFIXES)}"))
    return found


def _stdin(most: int) -> bytes:
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise InputError(Issue("-", "too_large", "standard input is too large", f"at most {most} bytes"))
    return data
