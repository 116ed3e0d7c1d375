"""A small import directory and the bundle made of it, from the corpus' valid documents."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from moeplan.bundle.create import create_bundle

VALID = Path(__file__).parents[2] / "conformance" / "corpus" / "valid"
PLAN = VALID / "deployment_validation_plan-small.json"
ATTACHMENTS = {"requests.parquet": b"PAR1 requests", "chunk_gaps.parquet": b"PAR1 gaps", "before.txt": b"requests 0\n"}


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """What ``moeplan import`` leaves: one trial, its run manifest, three attachments."""
    root = tmp_path / "imported"
    (root / "evidence").mkdir(parents=True)
    (root / "attachments" / "trial-1").mkdir(parents=True)
    shutil.copy(VALID / "evidence_record-serving-trial.json", root / "evidence" / "trial-1.json")
    shutil.copy(VALID / "run_manifest-closed.json", root / "evidence" / "run-1.json")
    for name, data in ATTACHMENTS.items():
        (root / "attachments" / "trial-1" / name).write_bytes(data)
    return root


@pytest.fixture
def bundle(tmp_path: Path, imported: Path) -> Path:
    """A complete bundle directory."""
    out = tmp_path / "bundle"
    create_bundle(
        out,
        plan=PLAN.read_bytes(),
        checkpoint=(VALID / "checkpoint_manifest-small.json").read_bytes(),
        registry=(VALID / "registry-two-models.json").read_bytes(),
        evidence=[imported, VALID / "evidence_record-checkpoint-digest.json"],
    )
    return out
