"""Which files a checkpoint directory holds: a documented rule, links followed for content, everything else refused."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import attrs

from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.model.checkpoint import PATH_PATTERN
from moeplan.wire.files import store_error

__all__ = ["LEFT_OUT", "MOST_FILES", "ListedFile", "list_files"]

LEFT_OUT = (".git", ".cache/huggingface")
"""Paths below the directory that are not part of a checkpoint: what ``git`` and ``hf download`` keep for themselves."""

MOST_FILES = 1_000_000
"""Most files accepted; a tree of links to directories could otherwise unfold without end."""

_NAME = re.compile(PATH_PATTERN.removeprefix("^").removesuffix("$"))


@attrs.frozen
class ListedFile:
    """One file as it lay when the directory was listed.

    Attributes:
        name: its path below the directory, with ``/``; for a link the link's own.
        path: where to open it.
        size: bytes.
        stamp: what changes when the content is changed or replaced: device, inode, size, mtime in ns.
    """

    name: str
    path: Path
    size: int
    stamp: tuple[int, int, int, int]


def list_files(directory: Path | str) -> tuple[ListedFile, ...]:
    """Return every file below a checkpoint directory in code point order of name.

    Left out: :data:`LEFT_OUT` at the top. Symbolic links are followed for content under the link's name, because a
    Hugging Face snapshot is links into ``../../blobs``; a dangling link, and a link to a directory that holds it, are
    refused. Devices, pipes and sockets are refused.

    Raises:
        StoreError: the directory or a file in it cannot be read, a link dangles or loops, or an entry is no file.
        InputError: the directory holds no file, or a name that no manifest can hold.
    """
    root = Path(directory)
    found: list[ListedFile] = []
    try:
        top = os.stat(root)
    except OSError as error:
        raise store_error(root, error, "read") from None
    if not stat.S_ISDIR(top.st_mode):
        raise StoreError(Issue(_shown(root), "not_a_directory", "not a directory", "a checkpoint directory"))
    for file in _walk(root, "", ((top.st_dev, top.st_ino),)):
        found.append(file)
        if len(found) > MOST_FILES:
            raise StoreError(Issue(_shown(root), "too_many_files", "too many files", f"at most {MOST_FILES}"))
    if not found:
        raise InputError(Issue(_shown(root), "no_files", "the directory holds no file", "a checkpoint directory"))
    return tuple(sorted(found, key=lambda file: file.name))


def _shown(path: Path | str) -> str:
    return escape(str(path), 400)


def _walk(folder: Path, prefix: str, above: tuple[tuple[int, int], ...]) -> Iterator[ListedFile]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError as error:
        raise store_error(folder, error, "read") from None
    for entry_name in names:
        name, path = prefix + entry_name, folder / entry_name
        if name in LEFT_OUT:
            continue
        _check_name(name, path)
        status = _status(path)
        here = (status.st_dev, status.st_ino)
        if stat.S_ISDIR(status.st_mode):
            if here in above:
                raise StoreError(Issue(_shown(path), "link_loop", "link to a directory that holds it", "no loop"))
            yield from _walk(path, name + "/", (*above, here))
        elif stat.S_ISREG(status.st_mode):
            yield ListedFile(name, path, status.st_size, (*here, status.st_size, status.st_mtime_ns))
        else:
            raise StoreError(
                Issue(_shown(path), "not_a_regular_file", "not a regular file", "files, and links to files")
            )


def _status(path: Path) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        if path.is_symlink():
            reason = error.strerror or type(error).__name__
            raise StoreError(
                Issue(
                    _shown(path),
                    "dangling_link",
                    f"link cannot be followed: {reason}",
                    "a link to a file",
                    escape(os.readlink(path)),
                    "finish the download, or remove the link",
                )
            ) from None
        raise store_error(path, error, "read") from None


def _check_name(name: str, path: Path) -> None:
    fits = _NAME.fullmatch(name) is not None and len(name) <= 1024
    if not fits or any("\ud800" <= c <= "\udfff" for c in name):
        raise InputError(
            Issue(
                _shown(path),
                "file_name",
                "a manifest cannot hold this file name",
                "UTF-8 of at most 1024 characters, no control character, no backslash",
                next="rename the file",
            )
        )
