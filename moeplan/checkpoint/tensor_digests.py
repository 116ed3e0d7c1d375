"""Digest each tensor's byte range while its file is hashed: one reading for both."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from moeplan.checkpoint.safetensors import TensorHeader
from moeplan.errors import InputError, Issue, escape
from moeplan.model.series import TensorDigestTable

__all__ = ["FILES_RANK", "TensorDigester", "refuse_repeated", "tensor_table"]

FILES_RANK = "files"
"""Whose reading the table is of: no rank of an engine, the files alone."""


class TensorDigester:
    """Takes a safetensors file chunk by chunk, from its first byte on, and digests the range of each tensor.

    Args:
        headers: the file's tensors, as :func:`moeplan.checkpoint.safetensors.read_header` gives them: they lie side by
            side and end with the file.
        size: the file's size in bytes.
    """

    def __init__(self, headers: Sequence[TensorHeader], size: int) -> None:
        data = size - max((header.end for header in headers), default=0)
        self._ranges = sorted(((data + h.start, data + h.end, h.name) for h in headers), reverse=True)
        self._at = 0
        self._state = hashlib.sha256()
        self.digests: dict[str, str] = {}

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file."""
        begin, view = self._at, memoryview(chunk)
        self._at += len(chunk)
        while self._ranges and self._ranges[-1][0] <= self._at:
            start, end, name = self._ranges[-1]
            self._state.update(view[max(start - begin, 0) : max(end - begin, 0)])
            if end > self._at:
                return
            self.digests[name] = "sha256:" + self._state.hexdigest()
            self._state = hashlib.sha256()
            self._ranges.pop()


def tensor_table(
    headers: Mapping[str, Sequence[TensorHeader]], digesters: Mapping[str, TensorDigester]
) -> TensorDigestTable:
    """Return the digests of all files' tensors as a table, in order of name.

    Args:
        headers: the tensors of each file, by the file's name.
        digesters: what took each of these files whole.

    Raises:
        InputError: see :func:`refuse_repeated`, or a checkpoint without a tensor.
    """
    refuse_repeated(headers)
    rows = sorted(
        (header.name, header.bytes, digesters[file].digests[header.name])
        for file, held in headers.items()
        for header in held
    )
    return TensorDigestTable(
        rank=(FILES_RANK,) * len(rows),
        tensor=tuple(name for name, _size, _digest in rows),
        bytes=array("q", [size for _name, size, _digest in rows]),
        digest=tuple(digest for _name, _size, digest in rows),
    )


def refuse_repeated(headers: Mapping[str, Iterable[TensorHeader]]) -> None:
    """Refuse tensors that cannot be told apart by name, and a checkpoint that holds none.

    Raises:
        InputError: two files hold a tensor of one name, or no file holds any.
    """
    counts = Counter(header.name for held in headers.values() for header in held)
    if not counts:
        hint = "record it without --tensors"
        raise InputError(Issue("tensors", "tensors_not_read", "no safetensors file holds a tensor", "one", None, hint))
    name, most = max(counts.items(), key=lambda item: (item[1], item[0]))
    if most > 1:
        message = f"tensor {escape(name, 200)} stands in {most} files, and a loader may take either"
        hint = "leave one set of weights in the directory, or record it without --tensors"
        raise InputError(Issue("tensors", "tensor_repeated", message, "each tensor in one file", None, hint))
