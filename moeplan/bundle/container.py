"""What every form of an evidence bundle has in common: names, limits, faults, and the way its files are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Protocol, Self

from moeplan.errors import Issue, VerificationError, escape
from moeplan.wire.strict_json import MAX_BYTES

__all__ = [
    "ATTESTATIONS",
    "BUNDLE_FILE",
    "MAX_FILES",
    "MAX_FILE_BYTES",
    "MAX_PATH",
    "MAX_TOTAL_BYTES",
    "BundleSource",
    "check_name",
    "check_names",
    "fault",
]

BUNDLE_FILE = "bundle.json"
"""Name of the inventory, which does not list itself."""
ATTESTATIONS = "attestations/"
"""Directory of the attestations, which the inventory does not list either."""

MAX_FILES = 65_536
"""Most files of a bundle."""
MAX_FILE_BYTES = 8**11 - 1
"""Largest file: what eleven octal digits hold. Source: POSIX.1-2017, pax, ustar interchange format."""
MAX_TOTAL_BYTES = 64 << 30
"""Most bytes of all files together."""
MAX_PATH = 512
"""Longest path in characters, as in the inventory's schema."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")


class BundleSource(Protocol):
    """The files of an evidence bundle, read-only, wherever they lie. Nothing read from it is trusted yet."""

    @property
    def where(self) -> str:
        """The bundle's own path, escaped, for messages."""

    def paths(self) -> tuple[str, ...]:
        """Return every file's path, in code point order."""

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""

    def read(self, path: str, max_bytes: int = MAX_BYTES) -> bytes:
        """Return a file's bytes.

        Raises:
            VerificationError: no such file, or larger than ``max_bytes``.
            StoreError: unreadable, or changed since the bundle was opened.
        """

    def chunks(self, path: str) -> Iterator[bytes]:
        """Yield a file's bytes piece by piece; raises as :meth:`read`, a change at the latest after the last piece."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def fault(path: str, code: str, message: str, expected: str | None = None, got: str | None = None) -> VerificationError:
    """Return the error for one fault of a bundle's form; ``path`` and ``got`` are escaped here."""
    shown = None if got is None else escape(got)
    return VerificationError(Issue(escape(path, 400) or "(empty name)", code, message, expected, shown))


def check_name(path: str) -> None:
    """Refuse a path that no bundle may hold.

    Raises:
        VerificationError: ``container_name``: absolute, a ``.`` or ``..`` or hidden part, not plain ASCII, too long.
    """
    if len(path) > MAX_PATH or not _NAME.fullmatch(path):
        wanted = "parts of A-Z a-z 0-9 . _ - that begin with a letter or digit, joined by /"
        raise fault(
            path, "container_name", "no name for a file of a bundle", f"{wanted}; at most {MAX_PATH} characters"
        )


def check_names(paths: Iterable[str]) -> None:
    """Refuse paths that some file system cannot hold side by side.

    Raises:
        VerificationError: ``container_collision``: paths that differ only in case, or a file where a directory stands.
    """
    seen: dict[str, str] = {}
    listed = list(paths)
    for path in listed:
        folded = path.lower()
        if folded in seen:
            raise fault(
                path, "container_collision", f"collides with {seen[folded]}", "names that differ in more than case"
            )
        seen[folded] = path
    for path in listed:
        for parent in _parents(path.lower()):
            if parent in seen:
                raise fault(path, "container_collision", f"lies below the file {seen[parent]}", "a file or a directory")


def _parents(path: str) -> Iterator[str]:
    at = path.find("/")
    while at != -1:
        yield path[:at]
        at = path.find("/", at + 1)
