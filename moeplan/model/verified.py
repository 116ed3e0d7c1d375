"""What verification hands to ``evaluate``: records whose digests and signatures have been checked.

Only ``moeplan.load_evidence_bundle`` makes an :class:`EvidenceSet` from a bundle. An unverified bundle gives an
:class:`Inspection`, which ``evaluate`` refuses.
"""

from __future__ import annotations

import attrs

from moeplan.errors import InputError, Issue
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.evidence import RAW_TABLES, EvidenceRecord
from moeplan.model.inventory import EvidenceBundle
from moeplan.model.plan import Plan
from moeplan.model.run_manifest import RunManifest
from moeplan.model.series import ExpertCountTable, QualityTable, SeriesTable, TensorDigestTable
from moeplan.model.tables import ChunkGapTable, RequestTable

__all__ = ["EvidenceSet", "Inspection", "VerifiedRecord", "VerifiedRun", "VerifiedSigner"]


@attrs.frozen
class VerifiedSigner:
    """A signer whose signature was verified. Key signatures carry no verified time."""

    id: str
    fingerprint: str
    roles: tuple[str, ...]


@attrs.frozen(eq=False)
class VerifiedRecord:
    """An evidence record, the digest of its bytes, who signed it, and its raw tables where its type has them."""

    record: EvidenceRecord
    digest: str
    signers: tuple[VerifiedSigner, ...]
    requests: RequestTable | None = None
    chunk_gaps: ChunkGapTable | None = None
    series: SeriesTable | None = None
    experts: ExpertCountTable | None = None
    tensors: TensorDigestTable | None = None
    quality: QualityTable | None = None

    def __attrs_post_init__(self) -> None:
        missing = [name for name in RAW_TABLES[self.record.type] if getattr(self, name, True) is None]
        if missing:
            tables = ", ".join(missing)
            raise InputError(Issue("record", "tables_missing", f"a {self.record.type} without its raw tables", tables))


@attrs.frozen
class VerifiedRun:
    """A run manifest, the digest of its bytes, and who signed it."""

    manifest: RunManifest
    digest: str
    signers: tuple[VerifiedSigner, ...]


@attrs.frozen(eq=False)
class EvidenceSet:
    """Verified evidence.

    Attributes:
        checkpoint: the checkpoint manifest, if the bundle holds one, with the digest of its bytes.
        records: evidence records; their order is of no consequence.
        runs: run manifests; their order is of no consequence.
        listed: digests of every record, run manifest and checkpoint manifest that the verified inventory lists. What
            is listed here and absent above was taken away, and then nothing passes.
    """

    checkpoint: CheckpointManifest | None
    checkpoint_digest: str | None
    records: tuple[VerifiedRecord, ...]
    runs: tuple[VerifiedRun, ...]
    listed: tuple[str, ...]


@attrs.frozen(eq=False)
class Inspection:
    """What an unverified bundle says of itself. Claims only; ``evaluate`` refuses it."""

    plan: Plan
    inventory: EvidenceBundle
    checkpoint: CheckpointManifest | None
    records: tuple[EvidenceRecord, ...]
    runs: tuple[RunManifest, ...]
