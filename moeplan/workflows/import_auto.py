"""Recognise files and folders, and say for each group what imports it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import attrs

from moeplan.errors import InputError, Issue, MoeplanError, StoreError, escape
from moeplan.importers.prometheus import MAX_METRICS_BYTES, read_snapshot
from moeplan.importers.recognise import recognise
from moeplan.importers.table import IMPORTERS
from moeplan.wire.files import read_file

__all__ = ["FoundFile", "Group", "find_files", "groups_of"]

_MOST_FILES = 10_000
_TOGETHER = frozenset({"vllm-bench", "benchmark-serving", "lm-eval", "torch-trace", "vllm-metrics"})
"""Actions whose files of one folder go into one import: trials of one run, results with their samples."""
_WHOLE_FOLDER = frozenset({"probe"})
_SUMMARIES = {"aiperf": "aiperf export: summary", "inference-perf": "inference-perf: report of a stage or of all"}
_PAGES = "vllm-metrics"


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
        metrics: the engine's pages before the first file and after each; nothing where there are none.
    """

    command: str
    files: tuple[str, ...]
    summaries: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Group, ...]:
        """One group a file, each with the pages around it; nothing where there is but one."""
        if len(self.files) < 2:
            return ()
        around = tuple(pairwise(self.metrics)) or ((),) * len(self.files)
        return tuple(
            Group(self.command, (path,), self.summaries, pages) for path, pages in zip(self.files, around, strict=True)
        )

    @property
    def words(self) -> list[str]:
        """The words that import them, after ``moeplan import``."""
        beside = (("--summary", self.summaries), ("--metrics", self.metrics))
        return [self.command, *self.files, *(word for name, paths in beside if paths for word in (name, *paths))]


def find_files(paths: Sequence[Path]) -> tuple[FoundFile, ...]:
    """Return every file given, or lying below a folder given, with what it is; links are passed over.

    A file in a folder that cannot be read is named, and the rest goes on.

    Raises:
        StoreError: a path given is not there, or cannot be read.
        InputError: more than 10,000 files.
    """
    return tuple(_look(path, given) for path, given in _files(paths).items())


def _files(paths: Sequence[Path]) -> dict[str, bool]:
    """Return the files in order, each with whether it was given itself."""
    found: dict[str, bool] = {}
    for path in paths:
        if not path.is_dir() and not path.is_file():
            raise StoreError(
                Issue(escape(str(path), 400), "cannot_read", "no file and no folder", "a path that is there")
            )
        for one in _below(path) if path.is_dir() else (str(path),):
            found[one] = found.get(one, False) or path.is_file()
            if len(found) > _MOST_FILES:
                raise InputError(Issue("PATH", "too_many_files", "too many files", f"at most {_MOST_FILES}"))
    return found


def _below(folder: Path) -> Iterator[str]:
    for root, names, files in os.walk(folder):
        names.sort(key=_in_order)
        for name in sorted(files, key=_in_order):
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def _in_order(name: str) -> tuple[list[tuple[int, str]], str]:
    """Order names as people number them: ``trial-2`` before ``trial-10``."""
    parts = re.findall(r"([0-9]*)([^0-9]*)", name)
    return [(int(number[:18] or 0), rest) for number, rest in parts], name


def _look(path: str, given: bool) -> FoundFile:
    try:
        with open(path, "rb") as stream:
            seen = recognise(stream)
    except OSError as error:
        why = error.strerror or "cannot be read"
        if not given:
            return FoundFile(path, "not read", "certain", why, None, "it cannot be read")
        raise StoreError(Issue(escape(path, 400), "cannot_read", why, "a readable file")) from None
    command = seen.format.command
    note, why = seen.format.note, seen.why
    if seen.packed:
        why += ", read through gzip"
        if command is not None and command != "torch-trace":
            command, note = None, f"unpack it, then 'moeplan import {command}' reads it"
    return FoundFile(path, seen.format.tool, seen.sure, why, command, note)


def groups_of(found: Sequence[FoundFile]) -> tuple[Group, ...]:
    """Return what goes into one import each, in the order of the first file.

    Of the files themselves it reads pages of counters that lie beside trials, one more than there are trials.
    """
    folders: dict[str, list[FoundFile]] = defaultdict(list)
    for item in found:
        folders[os.path.dirname(item.path)].append(item)
    return tuple(group for folder, items in folders.items() for group in _of_folder(folder or ".", items))


def _of_folder(folder: str, items: Sequence[FoundFile]) -> list[Group]:
    commands = {item.command for item in items}
    companions = {tool for command, tool in _SUMMARIES.items() if command in commands}
    made: dict[tuple[str, str], list[str]] = {}
    for item in items:
        if item.command is None or item.tool in companions:
            continue
        if item.command in _WHOLE_FOLDER:
            made[item.command, folder] = [folder]
        else:
            own = folder if item.command in _TOGETHER else item.path
            made.setdefault((item.command, own), []).append(item.path)
    around = _pages_around(made, folder)
    groups = []
    for (command, _), files in made.items():
        if around and command == _PAGES:
            continue
        wanted = _SUMMARIES.get(command)
        summaries = tuple(item.path for item in items if item.tool == wanted)
        groups.append(Group(command, tuple(files), summaries, around if command in IMPORTERS else ()))
    return groups


def _pages_around(made: Mapping[tuple[str, str], Sequence[str]], folder: str) -> tuple[str, ...]:
    """Return pages of counters in the order of what they count, where they lie before and after a folder's trials.

    They do where the folder holds trials for one import and one page more than trials, no two pages of which count
    the same requests. Whether they count these trials the import tells.
    """
    runs = [files for (command, _), files in made.items() if command in IMPORTERS]
    pages = made.get((_PAGES, folder), ())
    if len(runs) != 1 or len(pages) != len(runs[0]) + 1:
        return ()
    try:
        counts = {read_snapshot(read_file(path, max_bytes=MAX_METRICS_BYTES)).requests: path for path in pages}
    except MoeplanError:
        return ()
    return tuple(counts[count] for count in sorted(counts)) if len(counts) == len(pages) else ()
