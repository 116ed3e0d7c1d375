"""The evidence record that says: these files were hashed on this node, for this plan, in this interval."""

from __future__ import annotations

from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.deployment import Deployment
from moeplan.model.evidence import CheckpointDigest, Collector, EvidenceRecord, Interval
from moeplan.model.series import TensorDigestTable
from moeplan.wire.documents import identify
from moeplan.wire.observation import MadeObservation, ObservationContext, make_observation

__all__ = ["make_record", "make_tensor_record"]


def make_record(
    manifest: CheckpointManifest,
    *,
    plan: str,
    node: str,
    deployment: Deployment,
    interval: Interval,
    version: str,
) -> EvidenceRecord:
    """Return a ``checkpoint_digest`` record; pure, so that the caller reads the clock.

    It says nothing about what was served: only an interval that ends before an engine start shows a digest before
    execution, and only for the node it names.

    Args:
        manifest: what the hashing gave.
        plan: identity of the plan.
        node: a pseudonym of the node whose mount was read.
        deployment: what this checkpoint is to be served with; its root is the manifest's.
        interval: whole seconds that enclose the hashing.
        version: this moeplan's version.

    Raises:
        InputError: a value that the record's model refuses.
    """
    return EvidenceRecord(
        type="checkpoint_digest",
        plan=plan,
        deployment=deployment,
        collector=_collector(version),
        interval=interval,
        engine_start=None,
        payload=_payload(manifest, node),
        attachments=(),
    )


def make_tensor_record(
    manifest: CheckpointManifest,
    tensors: TensorDigestTable,
    *,
    plan: str,
    node: str,
    deployment: Deployment,
    interval: Interval,
    version: str,
) -> MadeObservation:
    """Return a ``checkpoint_digest`` record with the digest of each tensor beside it, as the files of a directory.

    With it an engine's own digests of the bytes it loaded can be compared with the files. Arguments as of
    :func:`make_record`; ``tensors`` is what ``digest_checkpoint(…, tensor_digests=True)`` gave.

    Raises:
        InputError: a value that the record's model refuses.
    """
    return make_observation(
        _payload(manifest, node),
        {"tensors": tensors},
        context=ObservationContext(plan, deployment),
        collector=_collector(version),
        interval=interval,
    )


def _collector(version: str) -> Collector:
    return Collector(tool="moeplan", tool_version=version, importer="checkpoint", importer_version=version)


def _payload(manifest: CheckpointManifest, node: str) -> CheckpointDigest:
    return CheckpointDigest(
        manifest=identify(manifest),
        root=manifest.root,
        node=node,
        file_count=len(manifest.files),
        total_bytes=sum(file.size for file in manifest.files),
    )
