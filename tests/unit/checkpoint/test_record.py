from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from moeplan.checkpoint.manifest import digest_checkpoint
from moeplan.checkpoint.record import make_record
from moeplan.errors import InputError
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.evidence import CheckpointDigest, EvidenceRecord, Interval
from moeplan.wire.documents import dump_document, load_document
from tests.unit.checkpoint.made import small_checkpoint

RUNTIME = RuntimeIdentity(role="serve", form="oci_image", digest="sha256:" + "1" * 64)
INTERVAL = Interval(start="2026-11-30T17:29:49Z", end="2026-11-30T17:29:51Z")


def made(folder: Path, node: str = "node-1") -> EvidenceRecord:
    manifest = digest_checkpoint(folder).manifest
    plan = "sha256:" + "2" * 64
    deployment = Deployment(manifest.root, None, (RUNTIME,), None, None, None, ("node-1", "node-2"), None)
    return make_record(manifest, plan=plan, node=node, deployment=deployment, interval=INTERVAL, version="1.2.3")


def test_says_what_was_hashed_where_and_when(tmp_path: Path) -> None:
    folder = small_checkpoint(tmp_path / "checkpoint")
    record, manifest = made(folder), digest_checkpoint(folder).manifest
    assert record.type == record.payload.type == "checkpoint_digest"
    assert isinstance(record.payload, CheckpointDigest)
    assert record.payload.manifest == "sha256:" + hashlib.sha256(dump_document(manifest)).hexdigest()
    assert record.payload.root == record.deployment.checkpoint_root == manifest.root
    assert record.payload.node == "node-1"
    assert record.payload.file_count == 4
    assert record.payload.total_bytes == sum(path.stat().st_size for path in folder.iterdir())
    assert record.deployment.runtimes == (RUNTIME,)
    assert record.deployment.nodes == ("node-1", "node-2")
    assert (record.collector.tool, record.collector.importer) == ("moeplan", "checkpoint")
    assert record.collector.tool_version == record.collector.importer_version == "1.2.3"
    assert record.attachments == ()
    assert load_document(dump_document(record), EvidenceRecord) == record


def test_a_node_that_is_no_identifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        made(small_checkpoint(tmp_path / "checkpoint"), node="Node 1")
