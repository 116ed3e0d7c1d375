"""SHA-256 over bytes and streams. Knows no path."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import BinaryIO

__all__ = ["CHUNK_BYTES", "digest_bytes", "digest_chunks", "digest_stream", "hex_of"]

CHUNK_BYTES = 1 << 20
"""Bytes read at a time: large enough that hashlib releases the interpreter lock for most of the work."""


def digest_bytes(data: bytes) -> str:
    """Return the digest of ``data`` as ``sha256:`` and 64 lower-case hex digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_chunks(chunks: Iterable[bytes]) -> tuple[str, int]:
    """Return the digest of the chunks joined, and their length in bytes."""
    state, size = hashlib.sha256(), 0
    for chunk in chunks:
        state.update(chunk)
        size += len(chunk)
    return "sha256:" + state.hexdigest(), size


def digest_stream(stream: BinaryIO) -> tuple[str, int]:
    """Return the digest of what remains in ``stream``, and its length in bytes."""
    return digest_chunks(iter(lambda: stream.read(CHUNK_BYTES), b""))


def hex_of(digest: str) -> str:
    """Return the 64 hex digits of a ``sha256:…`` digest, as ``sha256sum`` prints them."""
    return digest.removeprefix("sha256:")
