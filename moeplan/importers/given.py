"""The files an importer is given: in memory, or where they lie, read again each time they are needed."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

from moeplan.digest import CHUNK_BYTES, digest_bytes, digest_chunks
from moeplan.errors import Issue, StoreError, escape
from moeplan.wire.files import open_regular

__all__ = ["GivenFile", "PiecedFile", "StoredFile", "chunks_of"]

_LARGE = 16 << 20


class GivenFile:
    """A file as it was given: its name, for people, and its bytes."""

    def __init__(self, name: str, data: bytes) -> None:
        """Take a file that is in memory."""
        self.name = name
        self._data = data

    @property
    def data(self) -> bytes:
        """The whole file."""
        return self._data

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return len(self._data)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return digest_bytes(self._data)

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file for reading from its beginning."""
        yield io.BytesIO(self._data)

    def content(self) -> bytes | GivenFile:
        """Return what is to be written where the file is enclosed: its bytes, or the file itself where it is stored."""
        return self._data


class PiecedFile(GivenFile):
    """A file that was made in memory, piece by piece."""

    def __init__(self, name: str, pieces: Sequence[bytes]) -> None:
        """Take the pieces in order."""
        super().__init__(name, b"")
        self.pieces = pieces

    @property
    def data(self) -> bytes:
        """The whole file, in one piece."""
        return b"".join(self.pieces)

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return sum(map(len, self.pieces))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return digest_chunks(self.pieces)[0]

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file for reading from its beginning."""
        yield io.BytesIO(self.data)

    def content(self) -> bytes | GivenFile:
        """Return the file itself where it is large, else its bytes."""
        return self if self.size > _LARGE else self.data


class StoredFile(GivenFile):
    """A file that stays where it lies; between two readings it must not change.

    The change time is compared because, unlike the modification time, whoever writes cannot set it back.
    """

    def __init__(self, path: str, max_bytes: int) -> None:
        """Look at the file without reading it.

        Raises:
            StoreError: missing, not a regular file, unreadable, or larger than ``max_bytes``.
        """
        super().__init__(Path(path).name, b"")
        self._path = path
        with open_regular(path) as stream:
            self._seen = _state(stream)
        if self.size > max_bytes:
            where, got = escape(path, 400), f"{self.size} bytes"
            raise StoreError(Issue(where, "too_large", "file too large", f"at most {max_bytes} bytes", got))

    @property
    def data(self) -> bytes:
        """The whole file, read anew."""
        with self.opened() as stream:
            return stream.read()

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return self._seen[0]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return digest_chunks(chunks_of(self))[0]

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open the file for reading from its beginning.

        Raises:
            StoreError: it cannot be read, or is not the file that was looked at first.
        """
        with open_regular(self._path) as stream:
            if _state(stream) != self._seen:
                message, step = "file changed after it was given", "stop what writes to it and run again"
                where = escape(self._path, 400)
                raise StoreError(Issue(where, "changed_while_read", message, "a file at rest", next=step))
            yield stream

    def content(self) -> bytes | GivenFile:
        """Return the file itself, to be copied from where it lies."""
        return self


def _state(stream: IO[bytes]) -> tuple[int, ...]:
    found = os.fstat(stream.fileno())
    return (found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def chunks_of(content: bytes | GivenFile) -> Iterable[bytes]:
    """Return content piece by piece; bytes are one piece."""
    if isinstance(content, PiecedFile):
        return content.pieces
    return (content,) if isinstance(content, bytes) else _pieces(content)


def _pieces(file: GivenFile) -> Iterator[bytes]:
    with file.opened() as stream:
        while piece := stream.read(CHUNK_BYTES):
            yield piece
