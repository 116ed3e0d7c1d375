"""The directory that a rendering stands in: written whole or not at all, compared, never taken from anybody else."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.model.manifest_set import SET_NAME, ManifestSet
from moeplan.model.rendering import MAX_FILE_CHARACTERS
from moeplan.wire.documents import load_document
from moeplan.wire.files import read_file, store_error, write_file

__all__ = ["Change", "compare_directory", "write_directory"]

_MOST_BYTES = 4 * MAX_FILE_CHARACTERS
_MOST_FILES = 10_000


@attrs.frozen
class Change:
    """A file that differs: its bytes in the directory (None: not there) and as rendered (None: not rendered)."""

    name: str
    there: bytes | None
    rendered: bytes | None

    @property
    def word(self) -> str:
        """What writing would do to the file: ``added``, ``removed`` or ``changed``."""
        return "added" if self.there is None else "removed" if self.rendered is None else "changed"

    def lines(self) -> Iterator[str]:
        """Yield the lines of a unified diff, without line ends; empty labels of the side that has no such file."""
        from difflib import unified_diff

        before, after = (_lines(data) for data in (self.there, self.rendered))
        old = "/dev/null" if self.there is None else f"a/{self.name}"
        new = "/dev/null" if self.rendered is None else f"b/{self.name}"
        yield from unified_diff(before, after, old, new, lineterm="")


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else data.decode("utf-8", "backslashreplace").split("\n")


def compare_directory(directory: Path | str, files: Mapping[str, bytes]) -> tuple[Change, ...]:
    """Return what differs between a directory and the files that would stand in it, by name; it writes nothing.

    A directory that is not there has no files.

    Raises:
        StoreError: it cannot be read, or holds something that is no regular file.
    """
    where = Path(os.path.abspath(directory))
    there = {name: read_file(where / name, max_bytes=_MOST_BYTES) for name in _names(where)}
    both = sorted(there.keys() | files.keys())
    changes = (Change(name, there.get(name), files.get(name)) for name in both)
    return tuple(change for change in changes if change.there != change.rendered)


def write_directory(directory: Path | str, files: Mapping[str, bytes]) -> bool:
    """Let the files, and nothing else, stand in a directory; return whether anything had to be written.

    A directory that is there is replaced only where everything in it is as an earlier rendering left it.

    Raises:
        StoreError: it holds what no rendering left there, or cannot be written; it is as it was then.
    """
    where = Path(os.path.realpath(directory))
    there = _names(where)
    if there:
        _require_own(where, there)
        if not compare_directory(where, files):
            return False
    staging: Path | None = None
    try:
        staging = Path(tempfile.mkdtemp(dir=where.parent, prefix=f".{where.name[:40]}.", suffix=".tmp"))
        filled = staging / "new"
        filled.mkdir()
        for name, data in files.items():
            write_file(filled / name, data)
        _put_in_place(filled, where, staging / "old")
    except OSError as error:
        raise store_error(directory, error, "write") from None
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
    return True


def _put_in_place(filled: Path, where: Path, aside: Path) -> None:
    """Rename the new directory to its place; where that fails the old one goes back."""
    if not os.path.lexists(where):
        os.rename(filled, where)
        return
    os.rename(where, aside)
    try:
        os.rename(filled, where)
    except BaseException:
        os.rename(aside, where)
        raise


def _names(where: Path) -> list[str]:
    """Return the names in a directory; it may be missing, and holds nothing but regular files."""
    names: list[str] = []
    try:
        with os.scandir(where) as entries:
            for entry in entries:
                if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode) or len(names) == _MOST_FILES:
                    raise _foreign(where, entry.name)
                names.append(entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(where, error, "read") from None
    return sorted(names)


def _require_own(where: Path, names: list[str]) -> None:
    """Refuse a directory in which something is not as the manifest set that lies there says."""
    if SET_NAME not in names:
        raise _foreign(where, names[0])
    try:
        made = load_document(read_file(where / SET_NAME), ManifestSet)
    except InputError:
        raise _foreign(where, SET_NAME) from None
    listed = {file.name: file.digest for file in made.files}
    for name in names:
        if name == SET_NAME:
            continue
        if name not in listed:
            raise _foreign(where, name)
        if digest_bytes(read_file(where / name, max_bytes=_MOST_BYTES)) != listed[name]:
            told = "a file that was changed since it was rendered"
            step = "look at it with --diff; move it away, or render into another directory"
            raise StoreError(Issue(escape(str(where / name), 400), "edited_file", told, "as rendered", next=step))


def _foreign(where: Path, name: str) -> StoreError:
    told = "the directory holds what no rendering left there"
    step = "name a directory that does not exist yet, or an empty one"
    path = escape(str(where / name), 400)
    return StoreError(Issue(path, "foreign_file", told, "nothing, or an earlier rendering", next=step))
