"""Frames in the pipes between the host and a plugin's process: a mark, a number, a length, and that many bytes of JSON.

A plugin can write into its own pipe. What is no frame, or bears another number than the question, is noticed.
"""

from __future__ import annotations

import os
import struct

from moeplan.hooks.faults import Fault

__all__ = ["HEADER_BYTES", "MAX_ANSWER_BYTES", "frame", "length_of", "read_frame", "too_large", "write_all"]

MAX_ANSWER_BYTES = 8 << 20
"""The most bytes of JSON one answer may have."""

_MARK = b"moeplan\n"
_HEADER = struct.Struct(">8sIQ")
HEADER_BYTES = _HEADER.size


def frame(number: int, data: bytes) -> bytes:
    """Return data as a frame; ``number`` counts the questions of a session from 1, an answer bears its question's."""
    return _HEADER.pack(_MARK, number, len(data)) + data


def length_of(header: bytes, number: int) -> int:
    """Return the length in bytes of what follows the header of the answer to question ``number``.

    Raises:
        Fault: it is no header, one of another question, or that of an answer that is too large.
    """
    mark, got, length = _HEADER.unpack(header)
    if mark != _MARK or got != number:
        raise Fault("malformed_result", "something was written to the host that is no answer to its question")
    if length > MAX_ANSWER_BYTES:
        raise too_large()
    return int(length)


def too_large() -> Fault:
    """Return the fault of an answer with more than :data:`MAX_ANSWER_BYTES`."""
    return Fault("too_large", f"the answer is larger than {MAX_ANSWER_BYTES} bytes")


def read_frame(fd: int) -> tuple[int, bytes] | None:
    """Return number and content of the next frame that the host wrote, or None at the end."""
    header = _read(fd, HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return None
    _mark, number, length = _HEADER.unpack(header)
    data = _read(fd, length)
    return (number, data) if len(data) == length else None


def _read(fd: int, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``, however long that takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
