"""The checkpoint manifest: every file by digest, every tensor by name, and one root digest over the files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from math import prod

import attrs

from moeplan.errors import Issue, escape
from moeplan.model.fields import boolean, const, digest, integer, nested, sequence, text

__all__ = [
    "DTYPE_BITS",
    "MAX_HEADER_BYTES",
    "METADATA_BYTES",
    "PATH_PATTERN",
    "CheckpointFile",
    "CheckpointIndex",
    "CheckpointManifest",
    "Tensor",
    "root_digest",
]

PATH_PATTERN = r"^(?!/)(?!.*(^|/)\.{1,2}(/|$))(?!.*//)[^\u0000-\u001f\u007f-\u009f\\]*[^/\u0000-\u001f\u007f-\u009f\\]$"
"""A relative path with ``/`` separators, no empty, ``.`` or ``..`` part, no control character, no backslash."""


MAX_HEADER_BYTES = 100_000_000
"""Longest header accepted, in bytes. Source: safetensors README, "Benefits"; ``MAX_HEADER_SIZE`` of the Rust crate."""

DTYPE_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}
"""Bits of one element. Source: safetensors, ``safetensors/src/tensor.rs``, ``Dtype::bitsize``."""

METADATA_BYTES = 1 << 20
"""Most bytes of a safetensors header beside its tensors' entries: ``__metadata__`` and padding."""
_ENTRY_BYTES = 160
"""Most bytes of one tensor's header entry beside its name and shape."""


@attrs.frozen
class CheckpointFile:
    """One file: path below the checkpoint directory, size in bytes, SHA-256."""

    name: str = text(pattern=PATH_PATTERN, max_length=1024)
    size: int = integer()
    digest: str = digest()


@attrs.frozen
class Tensor:
    """One tensor as its safetensors header declares it; ``bytes`` is its exact data size."""

    name: str = text(max_length=1024)
    file: str = text(pattern=PATH_PATTERN, max_length=1024)
    dtype: str = text(pattern=r"^[A-Z0-9_]+$", max_length=32)
    shape: tuple[int, ...] = integer(many=True)
    bytes: int = integer()


@attrs.frozen
class CheckpointIndex:
    """What the checkpoint's own index claims, and whether the headers agree."""

    file: str = text(pattern=PATH_PATTERN, max_length=1024)
    total_size: int | None = integer(optional=True)
    agrees: bool = boolean()


@attrs.frozen
class CheckpointManifest:
    """Every file's SHA-256 and size, the tensor inventory, exact tensor bytes, the root digest."""

    kind: str = const("checkpoint_manifest")
    schema_version: str = const("1.0.0")
    repository: str | None = text(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", max_length=200, optional=True)
    revision: str | None = text(pattern=r"^([0-9a-f]{40}|sha256:[0-9a-f]{64})$", max_length=71, optional=True)
    root: str = digest()
    tensor_bytes: int = integer()
    index: CheckpointIndex | None = nested(CheckpointIndex, optional=True)
    files: tuple[CheckpointFile, ...] = sequence(CheckpointFile, min_items=1)
    tensors: tuple[Tensor, ...] = sequence(Tensor)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: a root, an order, a sum or a reference that does not hold."""
        names = [file.name for file in self.files]
        if names != sorted(set(names)):
            yield Issue("$.files", "not_sorted", "files out of order or repeated", "unique names in code point order")
        if self.root != root_digest(self.files):
            yield Issue(
                "$.root", "wrong_root", "root digest is not that of the files", root_digest(self.files), self.root
            )
        keys = [(tensor.file, tensor.name) for tensor in self.tensors]
        if keys != sorted(set(keys)):
            yield Issue("$.tensors", "not_sorted", "tensors out of order or repeated", "unique (file, name) in order")
        total = sum(tensor.bytes for tensor in self.tensors)
        if total != self.tensor_bytes:
            yield Issue("$.tensorBytes", "wrong_sum", "not the tensors' sum", f"{total} bytes", str(self.tensor_bytes))
        known = set(names)
        for index, tensor in enumerate(self.tensors):
            bits = DTYPE_BITS.get(tensor.dtype)
            if bits is None:
                expected = ", ".join(DTYPE_BITS)
                yield Issue(f"$.tensors[{index}].dtype", "unknown_dtype", "no such dtype", expected, tensor.dtype)
            elif bits * prod(tensor.shape) != 8 * tensor.bytes:
                at, expected = f"$.tensors[{index}].bytes", "dtype × shape"
                yield Issue(at, "wrong_tensor_size", "not what dtype and shape give", expected, str(tensor.bytes))
            if tensor.file not in known:
                yield Issue(
                    f"$.tensors[{index}].file",
                    "unknown_reference",
                    "no such file",
                    "a listed file",
                    escape(tensor.file),
                )
        yield from self._size_faults()
        if self.index is not None and self.index.file not in known:
            yield Issue("$.index.file", "unknown_reference", "no such file", "a listed file", self.index.file)

    def _size_faults(self) -> Iterator[Issue]:
        """Yield safetensors files whose size the tensors do not explain: the root covers files, not the inventory.

        A file is 8 bytes, its header and the tensors' data. The header names every tensor, so its length is bounded.
        Source: safetensors format, README, "Format".
        """
        data = dict.fromkeys((file.name for file in self.files), 0)
        header = dict(data)
        for tensor in self.tensors:
            if tensor.file in data:
                data[tensor.file] += tensor.bytes
                header[tensor.file] += _ENTRY_BYTES + 6 * len(tensor.name) + 24 * len(tensor.shape)
        for index, file in enumerate(self.files):
            if not file.name.endswith(".safetensors"):
                continue
            rest = file.size - 8 - data[file.name]
            most = min(header[file.name] + METADATA_BYTES, MAX_HEADER_BYTES)
            if not 2 <= rest <= most:
                yield Issue(
                    f"$.files[{index}].size",
                    "tensors_do_not_fill_file",
                    "the tensors listed for this file do not explain its size",
                    f"{data[file.name] + 10} to {data[file.name] + 8 + most} bytes",
                    str(file.size),
                    "digest the checkpoint again",
                )


def root_digest(files: Iterable[CheckpointFile]) -> str:
    """Return the root digest: SHA-256 over one line a file in name order, ``<hex>␠␠<size>␠␠<name>LF`` in UTF-8."""
    state = hashlib.sha256()
    for file in sorted(files, key=lambda item: item.name):
        state.update(f"{file.digest.removeprefix('sha256:')}  {file.size}  {file.name}\n".encode())
    return "sha256:" + state.hexdigest()
