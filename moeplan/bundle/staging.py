"""Write a directory whole or not at all: fill a sibling, then rename it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from moeplan.digest import digest_stream
from moeplan.wire.files import open_regular, require_free, store_error, sync_directory, write_chunks

__all__ = ["place_member", "staged_directory", "write_member"]


@contextmanager
def staged_directory(target: Path | str) -> Iterator[Path]:
    """Give an empty directory beside ``target`` to fill; it becomes ``target`` when the block ends without an error.

    Raises:
        StoreError: ``target_exists`` where ``target`` is anything but missing or an empty directory; or the parent is
            missing or read-only, or the disk is full. Nothing is left behind.
    """
    where, staging = Path(os.path.abspath(target)), None
    try:
        require_free(where)
        staging = Path(tempfile.mkdtemp(dir=where.parent, prefix=f".{where.name}.", suffix=".tmp"))
        filling = staging / "content"
        filling.mkdir()
    except OSError as error:
        _discard(staging)
        raise store_error(target, error, "write") from None
    try:
        yield filling
        try:
            _sync(filling)
            os.rename(filling, where)
            sync_directory(where.parent)
        except OSError as error:
            raise store_error(target, error, "write") from None
    finally:
        _discard(staging)


def place_member(root: Path, path: str, chunks: Iterable[bytes]) -> Path:
    """Write one file below ``root``, making its directories; return where it lies.

    Raises:
        StoreError: the disk is full, or whatever reading ``chunks`` raises.
    """
    target = root / path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store_error(target, error, "write") from None
    write_chunks(target, chunks)
    return target


def write_member(root: Path, path: str, chunks: Iterable[bytes]) -> tuple[str, int]:
    """Write one file as :func:`place_member` does; return digest and size of what then lies there."""
    with open_regular(place_member(root, path, chunks)) as stream:
        return digest_stream(stream)


def _discard(staging: Path | None) -> None:
    if staging is not None:
        shutil.rmtree(staging, ignore_errors=True)


def _sync(root: Path) -> None:
    for directory, _directories, _files in os.walk(root):
        sync_directory(directory)
