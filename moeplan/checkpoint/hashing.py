"""Hash many files at once. hashlib releases the interpreter lock, so threads scale with cores and disks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import BinaryIO

from moeplan.checkpoint.listing import ListedFile
from moeplan.digest import CHUNK_BYTES, digest_chunks
from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.wire.files import open_regular

__all__ = ["MOST_WORKERS", "Progress", "Watcher", "changed", "default_workers", "hash_files", "open_listed"]

Progress = Callable[[int, int], None]
"""Called with the bytes hashed so far and the bytes in all; from one thread at a time, though not always the same."""

Watcher = Callable[[bytes], object]
"""Called with each chunk of one file, from its first byte on, in order and from one thread."""

MOST_WORKERS = 256


class _Stopped(Exception):
    """Another file failed; this one need not be read to its end."""


def default_workers() -> int:
    """Return the number of CPUs this process may use, at most 16."""
    return min(16, len(os.sched_getaffinity(0)))


@contextmanager
def open_listed(file: ListedFile) -> Iterator[BinaryIO]:
    """Open a listed file and refuse it when it is no longer what was listed.

    Raises:
        StoreError: missing, changed since it was listed, or changed while it was read.
    """
    with open_regular(file.path) as stream:
        status = os.fstat(stream.fileno())
        if (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) != file.stamp:
            raise changed(file)
        yield stream


def changed(file: ListedFile) -> StoreError:
    """Return the error for a file that is no longer what was listed."""
    where = escape(str(file.path), 400)
    hint = "stop what writes to the directory and run again"
    return StoreError(
        Issue(where, "changed_while_read", "file changed since it was listed", "a file at rest", None, hint)
    )


def hash_files(
    files: Sequence[ListedFile],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    watchers: Mapping[str, Watcher] | None = None,
) -> dict[str, str]:
    """Return the SHA-256 of each listed file by name.

    Args:
        files: what to hash; the largest are begun first.
        workers: threads, 1 to 256; the CPUs this process may use where None.
        progress: told after each chunk of at most 1 MiB.
        watchers: by a file's name, what else is to see its bytes as they are read.

    Raises:
        InputError: ``workers`` out of range.
        StoreError: a file vanished, cannot be read, or changed; the others are not read on.
    """
    count = default_workers() if workers is None else workers
    if not 1 <= count <= MOST_WORKERS:
        raise InputError(Issue("--workers", "invalid_value", "value refused", f"1 to {MOST_WORKERS}", str(count)))
    counter = _Counter(sum(file.size for file in files), progress)
    with ThreadPoolExecutor(min(count, max(1, len(files))), "moeplan-hash") as pool:
        ordered = sorted(files, key=lambda file: (-file.size, file.name))
        seeing = watchers or {}
        futures = {file.name: pool.submit(_hash, file, counter, seeing.get(file.name)) for file in ordered}
        try:
            _join(list(futures.values()))
        except BaseException:
            counter.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
        return {name: future.result() for name, future in futures.items()}


def _join(futures: list[Future[str]]) -> None:
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()


class _Counter:
    def __init__(self, total: int, progress: Progress | None) -> None:
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._done, self._total, self._progress = 0, total, progress

    def add(self, size: int) -> None:
        if self.stop.is_set():
            raise _Stopped
        if self._progress is not None:
            with self._lock:
                self._done += size
                self._progress(self._done, self._total)


def _hash(file: ListedFile, counter: _Counter, watcher: Watcher | None) -> str:
    with open_listed(file) as stream:
        digest, size = digest_chunks(_chunks(stream, counter, watcher))
        if size != file.size:
            raise changed(file)
    return digest


def _chunks(stream: BinaryIO, counter: _Counter, watcher: Watcher | None) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk
        if watcher is not None:
            watcher(chunk)
        counter.add(len(chunk))
