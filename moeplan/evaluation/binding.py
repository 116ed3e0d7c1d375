"""Bytes hashed in the engine while it loaded them, against the checkpoint's files: what is the same, what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.series import TensorDigestTable

__all__ = ["Contents", "contents", "differing_tensors", "is_whole"]

_NOTHING = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""SHA-256 of no bytes: an emptied tensor, not a loaded one."""

Content = tuple[int, str]
"""Size in bytes and SHA-256."""
Contents = Mapping[str, frozenset[Content]]
"""Every content that is told of a tensor, by its name; one where all tell the same."""


@attrs.frozen
class _Collected:
    found: dict[str, set[Content]] = attrs.Factory(dict)

    def add(self, table: TensorDigestTable) -> None:
        for name, size, digest in zip(table.tensor, table.bytes, table.digest, strict=True):
            if size == 0 or digest != _NOTHING:
                self.found.setdefault(name, set()).add((size, digest))


def contents(tables: Iterable[TensorDigestTable | None]) -> Contents:
    """Return what tables together tell of each tensor, over all ranks.

    The digest of nothing for a tensor that has bytes tells nothing: engines empty a tensor once it is packed.
    """
    collected = _Collected()
    for table in tables:
        if table is not None:
            collected.add(table)
    return {name: frozenset(told) for name, told in collected.found.items()}


def differing_tensors(loaded: Contents, files: Contents) -> int:
    """Return how many tensors were loaded with another content than the files hold; one the files lack is not one."""
    return sum(name in files and told != files[name] for name, told in loaded.items())


def is_whole(loaded: Contents, files: Contents, manifest: CheckpointManifest) -> bool:
    """Return whether exactly the tensors of the checkpoint were loaded, every one as its files hold it."""
    sizes = {tensor.name: tensor.bytes for tensor in manifest.tensors}
    if not sizes or len(sizes) < len(manifest.tensors) or loaded.keys() != sizes.keys():
        return False
    return all(
        len(told) == 1 and files.get(name) == told and next(iter(told))[0] == sizes[name]
        for name, told in loaded.items()
    )
