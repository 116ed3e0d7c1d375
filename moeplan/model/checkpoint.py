"""The checkpoint manifest: every file by digest, every tensor by name, and one root digest over the files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import attrs

from moeplan.errors import Issue, escape
from moeplan.model.fields import boolean, const, digest, integer, nested, sequence, text

__all__ = ["CheckpointFile", "CheckpointIndex", "CheckpointManifest", "Tensor", "root_digest"]

PATH_PATTERN = r"^(?!/)(?!.*(^|/)\.{1,2}(/|$))(?!.*//)[^\u0000-\u001f\u007f-\u009f\\]*[^/\u0000-\u001f\u007f-\u009f\\]$"
"""A relative path with ``/`` separators, no empty, ``.`` or ``..`` part, no control character, no backslash."""


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
            if tensor.file not in known:
                yield Issue(
                    f"$.tensors[{index}].file",
                    "unknown_reference",
                    "no such file",
                    "a listed file",
                    escape(tensor.file),
                )
        if self.index is not None and self.index.file not in known:
            yield Issue("$.index.file", "unknown_reference", "no such file", "a listed file", self.index.file)


def root_digest(files: Iterable[CheckpointFile]) -> str:
    """Return the root digest: SHA-256 over one line a file in name order, ``<hex>␠␠<size>␠␠<name>LF`` in UTF-8."""
    state = hashlib.sha256()
    for file in sorted(files, key=lambda item: item.name):
        state.update(f"{file.digest.removeprefix('sha256:')}  {file.size}  {file.name}\n".encode())
    return "sha256:" + state.hexdigest()
