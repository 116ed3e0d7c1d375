"""Recognise files and folders, and say for each group what imports it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.importers.recognise import recognise

__all__ = ["FoundFile", "Group", "find_files", "groups_of"]

_MOST_FILES = 10_000
_TOGETHER = frozenset({"vllm-bench", "benchmark-serving", "lm-eval", "torch-trace", "vllm-metrics"})
"""Actions whose files of one folder go into one import: trials of one run, results with their samples."""
_WHOLE_FOLDER = frozenset({"probe"})
_SUMMARIES = {"aiperf": "aiperf export: summary", "inference-perf": "inference-perf: report of a stage or of all"}


@attrs.frozen
class FoundFile:
    """A file and what it is taken for: tool, certainty, why, the action of ``moeplan import``, a note."""

    path: str
    tool: str
    sure: str
    why: str
    command: str | None
    note: str


@attrs.frozen
class Group:
    """Files that one import takes together.

    Attributes:
        command: action of ``moeplan import``.
        files: its files, or the one folder.
        summaries: reports of the tool that go with them.
    """

    command: str
    files: tuple[str, ...]
    summaries: tuple[str, ...]

    @property
    def parts(self) -> tuple[Group, ...]:
        """One group a file; nothing where there is but one."""
        return tuple(Group(self.command, (path,), self.summaries) for path in self.files) if len(self.files) > 1 else ()

    @property
    def words(self) -> list[str]:
        """The words that import them, after ``moeplan import``."""
        return [self.command, *self.files, *(["--summary", *self.summaries] if self.summaries else [])]


def find_files(paths: Sequence[Path]) -> tuple[FoundFile, ...]:
    """Return every file given, or lying below a folder given, with what it is; links are passed over.

    Raises:
        StoreError: a path is not there, or cannot be read.
        InputError: more than 10,000 files.
    """
    return tuple(_look(path) for path in _files(paths))


def _files(paths: Sequence[Path]) -> list[str]:
    found: list[str] = []
    for path in paths:
        if path.is_dir():
            found += _below(path)
        elif path.is_file():
            found.append(str(path))
        else:
            raise StoreError(
                Issue(escape(str(path), 400), "cannot_read", "no file and no folder", "a path that is there")
            )
        if len(found) > _MOST_FILES:
            raise InputError(Issue("PATH", "too_many_files", "too many files", f"at most {_MOST_FILES}"))
    return list(dict.fromkeys(found))


def _below(folder: Path) -> Iterator[str]:
    for root, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def _look(path: str) -> FoundFile:
    try:
        with open(path, "rb") as stream:
            seen = recognise(stream)
    except OSError as error:
        shown = escape(path, 400)
        raise StoreError(Issue(shown, "cannot_read", error.strerror or "cannot be read", "a readable file")) from None
    command = seen.format.command
    note, why = seen.format.note, seen.why
    if seen.packed:
        why += ", read through gzip"
        if command is not None and command != "torch-trace":
            command, note = None, f"unpack it, then 'moeplan import {command}' reads it"
    return FoundFile(path, seen.format.tool, seen.sure, why, command, note)


def groups_of(found: Sequence[FoundFile]) -> tuple[Group, ...]:
    """Return what goes into one import each, in the order of the first file. Pure."""
    made: dict[tuple[str, str], list[str]] = {}
    for item in found:
        if item.command is None or _is_companion(item, found):
            continue
        folder = os.path.dirname(item.path) or "."
        if item.command in _WHOLE_FOLDER:
            made[item.command, folder] = [folder]
        else:
            own = folder if item.command in _TOGETHER else item.path
            made.setdefault((item.command, own), []).append(item.path)
    return tuple(Group(key[0], tuple(files), _summaries(key[0], files[0], found)) for key, files in made.items())


def _is_companion(item: FoundFile, found: Sequence[FoundFile]) -> bool:
    """Whether a report goes with raw data of its tool in the same folder, or a scrape with trials there."""
    beside = {other.command for other in found if os.path.dirname(other.path) == os.path.dirname(item.path)}
    return any(tool == item.tool and command in beside for command, tool in _SUMMARIES.items())


def _summaries(command: str, path: str, found: Sequence[FoundFile]) -> tuple[str, ...]:
    wanted, folder = _SUMMARIES.get(command), os.path.dirname(path)
    return tuple(item.path for item in found if item.tool == wanted and os.path.dirname(item.path) == folder)
