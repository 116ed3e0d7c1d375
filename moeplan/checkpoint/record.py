"""The evidence record that says: these files were hashed on this node, for this plan, in this interval."""

from __future__ import annotations

from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.deployment import Deployment
from moeplan.model.evidence import CheckpointDigest, Collector, EvidenceRecord, Interval
from moeplan.wire.documents import identify

__all__ = ["make_record"]


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
        collector=Collector(tool="moeplan", tool_version=version, importer="checkpoint", importer_version=version),
        interval=interval,
        engine_start=None,
        payload=CheckpointDigest(
            manifest=identify(manifest),
            root=manifest.root,
            node=node,
            file_count=len(manifest.files),
            total_bytes=sum(file.size for file in manifest.files),
        ),
        attachments=(),
    )
