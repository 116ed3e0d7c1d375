"""An evidence bundle as a tar file, read in place: nothing is unpacked, and only the one exact form is accepted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from moeplan.bundle.container import MAX_FILES, MAX_TOTAL_BYTES, check_name, check_names, fault
from moeplan.bundle.ustar import BLOCK, END, padding, parse_header
from moeplan.digest import CHUNK_BYTES
from moeplan.errors import Issue, StoreError, escape
from moeplan.wire.files import open_regular, store_error
from moeplan.wire.strict_json import MAX_BYTES

__all__ = ["TarSource"]


class TarSource:
    """The files of a bundle's deterministic tar form.

    Accepted: ustar headers in the exact bytes of :func:`moeplan.bundle.ustar.header`, paths strictly in code point
    order, zeros as padding, two zero blocks, and then the end of the file.
    """

    def __init__(self, path: Path | str) -> None:
        """Read every header of the file ``path``.

        Raises:
            StoreError: it cannot be read.
            VerificationError: it is not in the one form; the code names the fault.
        """
        self.where = escape(str(path), 400)
        self._stack = ExitStack()
        self._stream = self._stack.enter_context(open_regular(path))
        self._descriptor = self._stream.fileno()
        try:
            status = os.fstat(self._descriptor)
            self._length, self._times = status.st_size, (status.st_mtime_ns, status.st_ctime_ns)
            self._files = self._scan()
        except BaseException:
            self._stream.close()
            raise

    def _scan(self) -> dict[str, tuple[int, int]]:
        """Return offset and size of every file, in the archive's order."""
        found: dict[str, tuple[int, int]] = {}
        at, last, total = 0, "", 0
        while (block := self._pread(at, BLOCK)) != bytes(BLOCK):
            if len(block) < BLOCK:
                raise fault(self.where, "container_truncated", "archive ends early", "two zero blocks at its end")
            path, size = parse_header(block, at)
            check_name(path)
            if path <= last:
                raise fault(
                    path, "container_order", f"stands after {escape(last)}", "paths in code point order, each once"
                )
            total += size
            if len(found) >= MAX_FILES:
                raise fault(path, "container_too_many", "too many files", f"at most {MAX_FILES}")
            if total > MAX_TOTAL_BYTES:
                raise fault(path, "container_too_large", "bundle too large", f"at most {MAX_TOTAL_BYTES} bytes in all")
            self._check_padding(path, at + BLOCK + size, padding(size))
            found[path] = (at + BLOCK, size)
            last, at = path, at + BLOCK + size + padding(size)
        if self._length != at + len(END) or self._pread(at, len(END)) != END:
            raise fault(
                self.where, "container_end", "archive does not end as it must", f"zeros from byte {at} to {at + 1024}"
            )
        check_names(found)
        return found

    def _check_padding(self, path: str, at: int, length: int) -> None:
        found = self._pread(at, length)
        if at > self._length or len(found) < length:
            raise fault(path, "container_truncated", "archive ends within the file", f"{at + length} bytes before it")
        if found != bytes(length):
            raise fault(
                path, "container_padding", "bytes after the file that are not zero", "zeros up to the block's end"
            )

    def _pread(self, at: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, at)
        except OSError as error:
            raise store_error(self.where, error, "read") from None

    def paths(self) -> tuple[str, ...]:
        """Return every file's path, in code point order."""
        return tuple(self._files)

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return self._place(path)[1]

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
        at, left = self._place(path)
        while left:
            chunk = self._pread(at, min(most, left))
            if not chunk:
                break
            at, left = at + len(chunk), left - len(chunk)
            yield chunk
        status = os.fstat(self._descriptor)
        times = (status.st_mtime_ns, status.st_ctime_ns)
        if left or (status.st_size, times) != (self._length, self._times):
            message = "archive changed after it was opened"
            hint = "stop what writes to it and run again"
            raise StoreError(Issue(self.where, "changed_while_read", message, "a file at rest", next=hint))

    def _place(self, path: str) -> tuple[int, int]:
        if path not in self._files:
            raise fault(path, "container_missing", "no such file in the bundle")
        return self._files[path]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._stack.close()
        else:  # the error of the block is what counts, not whether the archive is still the same
            self._stream.close()
