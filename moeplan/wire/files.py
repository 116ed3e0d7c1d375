"""Files at the edge: read whole and bounded, written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from moeplan.errors import Issue, StoreError, escape
from moeplan.wire.strict_json import MAX_BYTES

__all__ = [
    "lies_within",
    "open_regular",
    "read_file",
    "require_free",
    "store_error",
    "sync_directory",
    "write_chunks",
    "write_file",
]


_NEXT = {
    errno.ENOENT: "check the path",
    errno.EACCES: "check who may read and write there",
    errno.EPERM: "check who may read and write there",
    errno.EROFS: "write to another place; this file system is read-only",
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "free some space and run again",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EISDIR: "name a file, not a directory",
    errno.ENOTDIR: "check the path: a part of it is a file",
}
"""The next step by the system's error number."""


def store_error(path: Path | str, error: OSError, doing: str) -> StoreError:
    """Return the named error for a failed file operation."""
    reason = error.strerror or type(error).__name__
    where = escape(str(path), 400)
    step = _NEXT.get(error.errno or 0)
    return StoreError(Issue(where, "file_" + doing, f"cannot {doing}: {reason}", next=step), source=where)


@contextmanager
def open_regular(path: Path | str, *, dir_fd: int | None = None, flags: int = 0) -> Iterator[BinaryIO]:
    """Open a regular file for reading and refuse it when it changed by the time it is closed.

    Symbolic links named by the caller are followed unless ``flags`` has ``O_NOFOLLOW``; devices, pipes and
    directories are refused.

    Args:
        path: the file; relative to ``dir_fd`` where that is given.
        dir_fd: an open directory.
        flags: further flags for ``open``.

    Raises:
        StoreError: missing, not a regular file, unreadable, or changed while it was read.
    """
    try:
        descriptor = os.open(_plain(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags, dir_fd=dir_fd)
        with _stream(descriptor, path) as stream:
            before = os.fstat(descriptor)
            yield stream
            after = os.fstat(descriptor)
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                where = escape(str(path), 400)
                raise StoreError(
                    Issue(
                        where,
                        "changed_while_read",
                        "file changed while it was read",
                        "a file at rest",
                        next="stop what writes to it and run again",
                    )
                )
    except OSError as error:
        raise store_error(path, error, "read") from None


def _stream(descriptor: int, path: Path | str) -> BinaryIO:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _not_regular(path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: Path | str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return a regular file's bytes.

    Raises:
        StoreError: as :func:`open_regular`, or larger than ``max_bytes``.
    """
    with open_regular(path) as stream:
        data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise StoreError(Issue(escape(str(path), 400), "too_large", "file too large", f"at most {max_bytes} bytes"))
    return data


def write_file(path: Path | str, data: bytes) -> None:
    """Write a file whole or not at all: temporary name beside it, fsync, rename.

    Raises:
        StoreError: the directory is missing or read-only, the disk is full; nothing is left behind.
    """
    write_chunks(path, (data,))


def write_chunks(path: Path | str, chunks: Iterable[bytes]) -> None:
    """Write a file whole or not at all from ``chunks``, which are taken one at a time; as :func:`write_file`.

    Raises:
        StoreError: the directory is missing or read-only, the disk is full; nothing is left behind.
    """
    target = _writable(path)
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".tmp")
        with os.fdopen(descriptor, "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fchmod(descriptor, 0o666 & ~_umask())
            os.fsync(descriptor)
        os.replace(temporary, target)
        temporary = None
        sync_directory(target.parent)
    except OSError as error:
        raise store_error(path, error, "write") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def lies_within(path: Path | str, directory: Path | str) -> bool:
    """Return whether ``path``, links followed, is ``directory`` or lies below it; neither has to exist.

    Raises:
        StoreError: a directory on the way cannot be looked into.
    """
    try:
        return Path(os.path.realpath(_plain(path))).is_relative_to(os.path.realpath(_plain(directory)))
    except OSError as error:
        raise store_error(path, error, "read") from None


def require_free(where: Path) -> None:
    """Refuse a target directory that is anything but missing or an empty directory.

    Raises:
        StoreError: ``target_exists``.
        OSError: it cannot be looked into.
    """
    if not os.path.lexists(where):
        return
    if where.is_symlink() or not where.is_dir() or any(where.iterdir()):
        hint = "name a directory that does not exist yet, or an empty one"
        raise StoreError(
            Issue(escape(str(where), 400), "target_exists", "target is in the way", "a free name", next=hint)
        )


def _writable(path: Path | str) -> Path:
    """Return what ``path`` leads to; refuse a device, pipe or directory, lest the rename put a file in its place."""
    try:
        target = Path(os.path.realpath(_plain(path)))
        if target.exists() and not target.is_file():
            raise _not_regular(path)
    except OSError as error:
        raise store_error(path, error, "write") from None
    return target


def _plain(path: Path | str) -> Path | str:
    if "\0" in str(path):
        raise StoreError(Issue(escape(str(path), 400), "invalid_path", "path with a zero byte", "a file's path"))
    return path


def _not_regular(path: Path | str) -> StoreError:
    step = "write what comes through a pipe or device to a file first; plan --batch also takes - for standard input"
    where = escape(str(path), 400)
    return StoreError(Issue(where, "not_a_regular_file", "not a regular file", "a regular file", next=step))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_directory(path: Path | str) -> None:
    """Have a directory's entries written to the disk; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
