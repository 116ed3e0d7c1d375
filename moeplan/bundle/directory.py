"""An evidence bundle as a directory, walked and read without following a link out of it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import attrs

from moeplan.bundle.container import (
    ATTESTATIONS,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    check_name,
    check_names,
    fault,
)
from moeplan.digest import CHUNK_BYTES
from moeplan.errors import Issue, StoreError, escape
from moeplan.wire.files import open_regular, store_error
from moeplan.wire.strict_json import MAX_BYTES

__all__ = ["DirectorySource"]

_MAX_DEPTH = 32
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@attrs.frozen
class _Seen:
    """What the walk saw of a file; a later read must find the same.

    The change time is among it because, unlike the modification time, whoever writes cannot set it back.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> _Seen:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class DirectorySource:
    """The files below one directory.

    The directory the caller names may itself be a link; below it symbolic links, devices, pipes, sockets, empty
    directories (but for ``attestations``), odd names and names that collide are refused. Hard links are let through:
    what counts is the content by digest, and deduplicated backups are full of them.
    """

    def __init__(self, root: Path | str) -> None:
        """Walk ``root``.

        Raises:
            StoreError: it cannot be read.
            VerificationError: a file in it is none that a bundle may hold.
        """
        self.where = escape(str(root), 400)
        self._total = 0
        try:
            self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise store_error(root, error, "read") from None
        try:
            self._files = self._walk()
        except BaseException:
            os.close(self._root)
            raise

    def _walk(self) -> dict[str, _Seen]:
        found: dict[str, _Seen] = {}
        try:
            self._visit(self._root, "", found, 0)
        except OSError as error:
            raise store_error(self.where, error, "read") from None
        check_names(sorted(found))
        return dict(sorted(found.items()))

    def _visit(self, descriptor: int, prefix: str, found: dict[str, _Seen], depth: int) -> None:
        with os.scandir(descriptor) as entries:
            names = sorted(entry.name for entry in entries)
        if not names and prefix not in ("", ATTESTATIONS):
            raise fault(prefix, "container_empty_directory", "empty directory", "directories that hold files")
        for name in names:
            path = prefix + name
            check_name(path)
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if depth >= _MAX_DEPTH:
                    raise fault(path, "container_too_deep", "nested too deep", f"at most {_MAX_DEPTH} levels")
                with _opened(name, descriptor) as inner:
                    self._visit(inner, path + "/", found, depth + 1)
            else:
                self._take(path, status, found)

    def _take(self, path: str, status: os.stat_result, found: dict[str, _Seen]) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise fault(path, "container_not_regular", "not a regular file", "a regular file", _kind(status.st_mode))
        if status.st_size > MAX_FILE_BYTES:
            raise fault(path, "container_too_large", "file too large", f"at most {MAX_FILE_BYTES} bytes")
        found[path] = _Seen.of(status)
        if len(found) > MAX_FILES:
            raise fault(path, "container_too_many", "too many files", f"at most {MAX_FILES}")
        self._total += status.st_size
        if self._total > MAX_TOTAL_BYTES:
            raise fault(path, "container_too_large", "bundle too large", f"at most {MAX_TOTAL_BYTES} bytes in all")

    def paths(self) -> tuple[str, ...]:
        """Return every file's path, in code point order."""
        return tuple(self._files)

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return self._seen(path).size

    def read(self, path: str, max_bytes: int = MAX_BYTES) -> bytes:
        """Return a file's bytes; see :class:`moeplan.bundle.container.BundleSource`."""
        if self.size(path) > max_bytes:
            raise fault(path, "container_too_large", "file too large to read whole", f"at most {max_bytes} bytes")
        return b"".join(self._pieces(path, max_bytes))

    def chunks(self, path: str) -> Iterator[bytes]:
        """Yield a file's bytes piece by piece; see :class:`moeplan.bundle.container.BundleSource`."""
        return self._pieces(path, CHUNK_BYTES)

    def _pieces(self, path: str, most: int) -> Iterator[bytes]:
        """Yield a file in pieces of ``most`` bytes; of one piece there is but one copy in memory."""
        seen = self._seen(path)
        try:
            with self._opened(path) as stream:
                if _Seen.of(os.fstat(stream.fileno())) != seen:
                    raise self._changed(path)
                left = seen.size
                while left:
                    chunk = stream.read(min(most, left))
                    if not chunk:
                        raise self._changed(path)
                    left -= len(chunk)
                    yield chunk
                if _Seen.of(os.fstat(stream.fileno())) != seen:
                    raise self._changed(path)
        except StoreError as error:
            raise StoreError(*(attrs.evolve(issue, path=escape(path, 400)) for issue in error.issues)) from None

    def _seen(self, path: str) -> _Seen:
        if path not in self._files:
            raise fault(path, "container_missing", "no such file in the bundle")
        return self._files[path]

    @contextmanager
    def _opened(self, path: str) -> Iterator[BinaryIO]:
        *parents, name = path.split("/")
        descriptor = os.dup(self._root)
        try:
            for parent in parents:
                deeper = _open_directory(parent, descriptor, path)
                os.close(descriptor)
                descriptor = deeper
            with open_regular(name, dir_fd=descriptor, flags=os.O_NOFOLLOW) as stream:
                yield stream
        finally:
            os.close(descriptor)

    def _changed(self, path: str) -> StoreError:
        message = "file changed after the bundle was opened"
        return StoreError(
            Issue(path, "changed_while_read", message, "a file at rest", next="stop what writes to it and run again")
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._root)


def _open_directory(name: str, parent: int, path: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise fault(path, "container_not_regular", "a directory on the way is none", "a directory") from None
        raise store_error(path, error, "read") from None


@contextmanager
def _opened(name: str, parent: int) -> Iterator[int]:
    descriptor = _open_directory(name, parent, name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
