"""Logs as blocks of bytes: files, pipes and standard input; gzip is taken apart as it comes, in bounded memory."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import attrs

from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.wire.files import store_error

__all__ = ["BLOCK_BYTES", "Log", "OpenLog", "check_log", "open_log"]

BLOCK_BYTES = 1 << 17
"""Bytes read at a time; with what is made of them they fit a core's cache."""

Log = str | os.PathLike[str] | BinaryIO
"""A path, ``-`` for standard input, or a binary stream."""

_GZIP = b"\x1f\x8b"
_UNREADABLE = (
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "zstdcat LOG | moeplan diagnose -"),
    (b"\xfd7zXZ\x00", "compressed with xz", "xzcat LOG | moeplan diagnose -"),
    (b"BZh", "compressed with bzip2", "bzcat LOG | moeplan diagnose -"),
    (b"PK\x03\x04", "a zip archive", "unzip -p LOG | moeplan diagnose -"),
    (b"\xff\xfe", "UTF-16 text", "iconv -f UTF-16 -t UTF-8 LOG | moeplan diagnose -"),
    (b"\xfe\xff", "UTF-16 text", "iconv -f UTF-16 -t UTF-8 LOG | moeplan diagnose -"),
)
"""First bytes of what is no log as it lies, what it is, and what makes one of it."""


@attrs.define
class OpenLog:
    """A log that is being read; ``size`` and ``digest`` are of the bytes read so far, compressed ones as they lie.

    Attributes:
        name: what it is called in messages, escaped.
        total: the file's size in bytes when it was opened; None where that cannot be known.
        size: bytes read.
    """

    name: str
    total: int | None
    _stream: BinaryIO
    size: int = 0
    _state: hashlib._Hash = attrs.field(init=False, factory=hashlib.sha256, repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes read so far."""
        return "sha256:" + self._state.hexdigest()

    def blocks(self, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
        """Yield the log's bytes, decompressed where it is gzip; no block is much larger than ``block_bytes``.

        Raises:
            InputError: malformed or unfinished gzip, another compression, UTF-16, or a stream of text.
            StoreError: reading failed.
        """
        raw = self._raw(block_bytes)
        first = b""
        for block in raw:
            first += block
            if len(first) >= 6:
                break
        for magic, what, step in _UNREADABLE:
            if first.startswith(magic):
                raise self._refused("unreadable_log", f"this is {what}", "text, or text compressed with gzip", step)
        blocks = _with_first(first, raw)
        return self._inflated(blocks, block_bytes) if first.startswith(_GZIP) else blocks

    def _raw(self, block_bytes: int) -> Iterator[bytes]:
        try:
            while block := self._stream.read(block_bytes):
                if type(block) is not bytes:
                    raise self._refused(
                        "not_binary", "this stream gives text", "a stream of bytes", "open it with 'rb'"
                    )
                self._state.update(block)
                self.size += len(block)
                yield block
        except OSError as error:
            raise store_error(self.name, error, "read") from None

    def _inflated(self, blocks: Iterable[bytes], most: int) -> Iterator[bytes]:
        inflater = zlib.decompressobj(wbits=31)
        try:
            for block in blocks:
                while block:
                    if inflater.eof:  # members may follow each other, and zeros the last one
                        block = block.lstrip(b"\0")
                        if not block:
                            break
                        inflater = zlib.decompressobj(wbits=31)
                    yield from _some(inflater.decompress(block, most))
                    block = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                while not inflater.eof and (held := inflater.decompress(b"", most)):
                    yield held
        except zlib.error as error:
            step = "decompress it with zcat and give what comes of it to 'moeplan diagnose -'"
            raise self._refused("malformed_gzip", "gzip at fault", "gzip", step, str(error)) from None
        if not inflater.eof:
            step = "copy it again, or give what zcat makes of it to 'moeplan diagnose -'"
            raise self._refused("malformed_gzip", "gzip breaks off", "a whole gzip file", step)

    def _refused(self, code: str, message: str, wanted: str, step: str, got: str | None = None) -> InputError:
        told = None if got is None else escape(got)
        return InputError(Issue(self.name, code, message, wanted, told, step), source=self.name)


def _with_first(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield from _some(first)
    yield from rest


def _some(block: bytes) -> Iterator[bytes]:
    if block:
        yield block


@contextmanager
def open_log(log: Log) -> Iterator[OpenLog]:
    """Open a log for one reading. A file may grow meanwhile: what is there when its end is reached is read.

    Raises:
        StoreError: missing, unreadable, a directory, or standard input where that is closed.
    """
    if not isinstance(log, str | os.PathLike):
        name = getattr(log, "name", None)
        yield OpenLog(escape(name, 400) if type(name) is str else "stream", None, log)
    elif log == "-":
        if sys.stdin is None:  # closed by the caller
            raise StoreError(Issue("stdin", "file_read", "cannot read: standard input is closed", "an open input"))
        yield OpenLog("-", None, sys.stdin.buffer)
    else:
        with _opened(Path(log)) as opened:
            yield opened


def check_log(log: Log) -> None:
    """Refuse what cannot be a log without reading any of it, so that a long reading does not end on it.

    Raises:
        StoreError: as :func:`open_log`.
    """
    if not isinstance(log, str | os.PathLike) or log == "-":
        return
    name = escape(str(log), 400)
    if "\0" in str(log):
        raise StoreError(Issue(name, "invalid_path", "path with a zero byte", "a file's path"), source=name)
    try:
        mode = os.stat(log).st_mode
    except OSError as error:
        raise store_error(str(log), error, "read") from None
    if stat.S_ISDIR(mode):
        step = f"name its files: moeplan diagnose {name}/*.log"
        raise StoreError(Issue(name, "is_a_directory", "this is a directory", "a log", next=step), source=name)


@contextmanager
def _opened(path: Path) -> Iterator[OpenLog]:
    name = escape(str(path), 400)
    check_log(path)
    try:
        stream = path.open("rb", buffering=0)
    except OSError as error:
        raise store_error(path, error, "read") from None
    with stream:
        about = os.fstat(stream.fileno())
        yield OpenLog(name, about.st_size if stat.S_ISREG(about.st_mode) else None, stream)
