"""Bundle to deterministic tar and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moeplan.bundle.container import BundleSource
from moeplan.bundle.inventory import check_inventory, load_inventory
from moeplan.bundle.staging import staged_directory, write_member
from moeplan.bundle.ustar import END, header, padding
from moeplan.model.inventory import EvidenceBundle
from moeplan.wire.files import write_chunks

__all__ = ["pack", "unpack", "write_tar"]


def pack(source: BundleSource) -> Iterator[bytes]:
    """Yield the tar form of ``source``: the same bytes for the same paths and contents, whatever owner, mode or time.

    Checks no inventory.

    Raises:
        VerificationError: ``container_path_too_long``: a path fits no ustar header.
        StoreError: a file changed while it was read.
    """
    for path in source.paths():
        size = source.size(path)
        yield header(path, size)
        yield from source.chunks(path)
        yield bytes(padding(size))
    yield END


def write_tar(source: BundleSource, target: Path | str) -> tuple[EvidenceBundle, bytes]:
    """Check the inventory of ``source`` and write its tar form to ``target``, whole or not at all.

    Returns:
        The inventory and its bytes.

    Raises:
        VerificationError: the bundle is at fault, see :func:`moeplan.bundle.inventory.check_inventory`.
        StoreError: the target cannot be written.
    """
    inventory, data = load_inventory(source)
    check_inventory(source, inventory)
    write_chunks(target, pack(source))
    return inventory, data


def unpack(source: BundleSource, directory: Path | str) -> tuple[EvidenceBundle, bytes]:
    """Check the inventory of ``source``, and only then write its files to ``directory``, whole or not at all.

    Checks no signature.

    Returns:
        The inventory and its bytes.

    Raises:
        VerificationError: the bundle is at fault, see :func:`moeplan.bundle.inventory.check_inventory`.
        StoreError: the directory is not free, or cannot be written.
    """
    inventory, data = load_inventory(source)
    check_inventory(source, inventory)
    with staged_directory(directory) as staging:
        for path in source.paths():
            write_member(staging, path, source.chunks(path))
    return inventory, data
