"""The documents of a bundle, read strictly and only in their one form."""

from __future__ import annotations

from typing import TypeVar

import attrs

from moeplan.bundle.source import BundleSource
from moeplan.errors import InputError
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.inventory import EvidenceBundle
from moeplan.model.plan import Plan
from moeplan.model.registry import Registry
from moeplan.model.run_manifest import RunManifest
from moeplan.wire.documents import load_document, require_canonical, size_cap

__all__ = ["Contents", "Held", "read_contents"]

T = TypeVar("T")


@attrs.frozen
class Held:
    """A record or run manifest with where it lies and the digest of its bytes."""

    path: str
    digest: str
    document: EvidenceRecord | RunManifest


@attrs.frozen
class Contents:
    """Every document of a bundle."""

    plan: Plan
    registry: Registry | None
    checkpoint: CheckpointManifest | None
    checkpoint_digest: str | None
    records: tuple[Held, ...]
    runs: tuple[Held, ...]


def read_contents(source: BundleSource, inventory: EvidenceBundle) -> Contents:
    """Return the documents that the inventory lists.

    Raises:
        InputError: a document that is malformed or not in its one form, naming the file and the JSON path.
    """
    paths = {file.path: file for file in inventory.files}
    records, runs = [], []
    for file in inventory.files:
        if file.role == "evidence":
            records.append(Held(file.path, file.digest, _read(source, file.path, EvidenceRecord)))
        elif file.role == "run_manifest":
            runs.append(Held(file.path, file.digest, _read(source, file.path, RunManifest)))
    checkpoint = _read(source, "checkpoint.json", CheckpointManifest) if "checkpoint.json" in paths else None
    return Contents(
        plan=_read(source, "plan.json", Plan),
        registry=_read(source, "registry.json", Registry) if "registry.json" in paths else None,
        checkpoint=checkpoint,
        checkpoint_digest=paths["checkpoint.json"].digest if checkpoint is not None else None,
        records=tuple(records),
        runs=tuple(runs),
    )


def _read(source: BundleSource, path: str, cls: type[T]) -> T:
    data = source.read(path, size_cap(cls))
    document = load_document(data, cls, source=path)
    try:
        require_canonical(data, document)
    except InputError as error:
        error.source = path
        raise
    return document
