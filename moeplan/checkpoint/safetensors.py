"""Read a safetensors header strictly: every tensor accounted for, every byte of the data claimed exactly once."""

from __future__ import annotations

from typing import Any, BinaryIO

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.checkpoint import DTYPE_BITS, MAX_HEADER_BYTES, Tensor
from moeplan.units import MAX_SAFE_INTEGER
from moeplan.wire.strict_json import child, parse_strict

__all__ = ["TensorHeader", "read_header"]

LENGTH_BYTES = 8
"""Little-endian unsigned length before the header. Source: safetensors README, "Format"."""

_KEYS = ("dtype", "shape", "data_offsets")
_MOST_ISSUES = 100
_LFS_POINTER = b"version https://git-lfs"


@attrs.frozen
class TensorHeader:
    """One tensor as its header declares it; offsets in bytes from the start of the data, ``end`` exclusive."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """The exact size of the tensor's data in bytes."""
        return self.end - self.start


def read_header(stream: BinaryIO, size: int, file: str) -> tuple[TensorHeader, ...]:
    """Return the tensors of a safetensors file in name order. Reads the header alone, not the data.

    Refused: a file shorter than it says, a header longer than the file or than 100 MB, JSON with duplicate or unknown
    keys, metadata that is not text to text, an unknown dtype, offsets that are negative, reversed, overlapping, leave a
    hole or differ from dtype × shape, and bytes after the last tensor.

    Args:
        stream: the file, at its start.
        size: the file's size in bytes.
        file: its name, for messages.

    Raises:
        InputError: with the file as ``source`` and every fault found, at most 100; the path names the tensor.

    Source: safetensors README, "Format".
    """
    try:
        header, length = _parse(stream, size)
        issues: list[Issue] = []
        tensors = _tensors(header, issues)
        if not issues:
            _check_layout(tensors, size - LENGTH_BYTES - length, issues)
        if issues:
            raise InputError(*issues[:_MOST_ISSUES])
    except InputError as error:
        error.source = escape(file, 400)
        raise
    return tuple(sorted(tensors, key=lambda tensor: tensor.name))


def _refuse(code: str, message: str, expected: str, got: str | None = None, hint: str | None = None) -> InputError:
    return InputError(Issue("$", code, message, expected, got, hint))


def _parse(stream: BinaryIO, size: int) -> tuple[dict[str, Any], int]:
    prefix = stream.read(LENGTH_BYTES)
    if size < LENGTH_BYTES or len(prefix) < LENGTH_BYTES:
        raise _refuse("safetensors_truncated", "file ends in the header length", "8 bytes or more", f"{size} bytes")
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER_BYTES:
        pointer = (prefix + stream.read(len(_LFS_POINTER))).startswith(_LFS_POINTER)
        hint = "this is a Git LFS pointer, not the file: fetch it with 'git lfs pull'" if pointer else None
        raise _refuse(
            "safetensors_header_too_large", "header too long", f"at most {MAX_HEADER_BYTES} bytes", f"{length}", hint
        )
    if length > size - LENGTH_BYTES:
        got = f"{length} bytes in a file of {size}"
        raise _refuse("safetensors_truncated", "header longer than the file", f"at most {size - LENGTH_BYTES}", got)
    data = stream.read(length)
    if len(data) < length:
        raise _refuse("safetensors_truncated", "file ends in the header", f"{length} bytes", f"{len(data)} bytes")
    if not data.startswith(b"{"):
        raise _refuse("safetensors_header", "header is not a JSON object", "'{' as its first byte")
    return parse_strict(data, max_bytes=MAX_HEADER_BYTES), length


def _tensors(header: dict[str, Any], issues: list[Issue]) -> list[TensorHeader]:
    found = []
    for name, entry in header.items():
        path = child("$", name)
        if name == "__metadata__":
            _check_metadata(entry, path, issues)
            continue
        try:
            found.append(_tensor(name, entry))
        except InputError as error:
            issues += [issue.under(path) for issue in error.issues]
    return found


def _check_metadata(entry: Any, path: str, issues: list[Issue]) -> None:
    if type(entry) is not dict or any(type(value) is not str for value in entry.values()):
        issues.append(Issue(path, "safetensors_metadata", "metadata is not a map of text to text", "text values only"))


def _tensor(name: str, entry: Any) -> TensorHeader:
    if type(entry) is not dict or set(entry) != set(_KEYS):
        raise _refuse("safetensors_tensor", "tensor entry of another form", "exactly dtype, shape and data_offsets")
    dtype, shape, offsets = (entry[key] for key in _KEYS)
    if type(dtype) is not str or dtype not in DTYPE_BITS:
        raise _refuse("safetensors_dtype", "unknown dtype", "one of " + ", ".join(DTYPE_BITS), _shown(dtype))
    if type(shape) is not list or any(type(extent) is not int or extent < 0 for extent in shape):
        raise _refuse("safetensors_shape", "shape is not a list of extents", "integers from 0", _shown(shape))
    if type(offsets) is not list or len(offsets) != 2 or any(type(at) is not int for at in offsets):
        raise _refuse("safetensors_offsets", "offsets are not two integers", "[begin, end]", _shown(offsets))
    if not 0 <= offsets[0] <= offsets[1]:
        raise _refuse("safetensors_offsets", "offsets negative or reversed", "0 <= begin <= end", _shown(offsets))
    held = offsets[1] - offsets[0]
    bits = _bits(dtype, shape)
    if bits != 8 * held:
        needed = f"{bits // 8} bytes" if bits % 8 == 0 else f"{bits} bits, which is no whole number of bytes"
        raise _refuse("safetensors_size", f"offsets do not hold {dtype} × {_shown(shape)}", needed, f"{held} bytes")
    _check_name(name)
    return TensorHeader(name, dtype, tuple(shape), offsets[0], offsets[1])


def _shown(value: Any) -> str:
    return escape(repr(value), 80)


def _bits(dtype: str, shape: list[int]) -> int:
    """Return the tensor's size in bits; a shape whose product is past every file's size is refused before it grows."""
    bits = DTYPE_BITS[dtype]
    if 0 in shape:
        return 0
    for extent in shape:
        bits *= extent
        if bits > 8 * MAX_SAFE_INTEGER:
            raise _refuse("safetensors_shape", "shape too large", f"at most {MAX_SAFE_INTEGER} bytes", _shown(shape))
    return bits


def _check_name(name: str) -> None:
    try:
        Tensor(name=name, file="x", dtype="U8", shape=(), bytes=1)
    except InputError as error:
        raise _refuse("safetensors_name", "tensor name refused", str(error.issues[0].expected), _shown(name)) from None


def _check_layout(tensors: list[TensorHeader], data_bytes: int, issues: list[Issue]) -> None:
    at, before = 0, "the start of the data"
    for tensor in sorted(tensors, key=lambda item: (item.start, item.end)):
        path, before_shown = child("$", tensor.name), escape(before, 80)
        if tensor.start != at:
            code = "safetensors_overlap" if tensor.start < at else "safetensors_hole"
            message = ("overlaps " if tensor.start < at else "leaves a hole after ") + before_shown
            issues.append(Issue(path, code, message, f"begin at {at}", f"{tensor.start}"))
            return
        at, before = tensor.end, tensor.name
    if at > data_bytes:
        issues.append(
            Issue("$", "safetensors_truncated", "file ends in the data", f"{at} bytes of data", f"{data_bytes}")
        )
    elif at < data_bytes:
        issues.append(
            Issue("$", "safetensors_trailing", "bytes after the last tensor", f"{at} bytes of data", f"{data_bytes}")
        )
