"""The journal: on the disk at every step, whatever comes after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.collectors.journal import Journal
from moeplan.errors import StoreError
from moeplan.model.run_manifest import RunManifest, RunObservation, RunTrial
from moeplan.wire.documents import load_document

DIGEST = "sha256:" + "a" * 64
MANIFEST = RunManifest(
    run="run-1",
    plan=DIGEST,
    deployment=DIGEST,
    announced=False,
    state="closed",
    planned_trials=2,
    planned_requests=5,
    requested_input_tokens=1,
    requested_output_tokens=1,
    declared_concurrency=None,
    warmup_requests=0,
    trials=(),
)


def on_disk(root: Path) -> dict[str, Any]:
    data = (root / "evidence" / "run-1.json").read_bytes()
    load_document(data, RunManifest)
    made: dict[str, Any] = json.loads(data)
    return made


def test_each_step_is_on_the_disk(tmp_path: Path) -> None:
    root = tmp_path / "run"
    journal = Journal(root, MANIFEST)
    assert (on_disk(root)["announced"], on_disk(root)["state"], on_disk(root)["trials"]) == (True, "open", [])
    journal.add_trial(RunTrial(1, "complete", DIGEST, ()), {"attachments/run-1/a.txt": (b"one", b"two")})
    assert (root / "attachments/run-1/a.txt").read_bytes() == b"onetwo"
    assert [trial["number"] for trial in on_disk(root)["trials"]] == [1]
    journal.add_observation(RunObservation("smoke", None, ()), {})
    assert on_disk(root)["observations"] == [{"files": [], "record": None, "type": "smoke"}]
    assert on_disk(root)["state"] == "open"
    journal.close()
    assert on_disk(root)["state"] == "closed"


def test_a_trial_whose_files_cannot_be_written_is_not_listed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run", MANIFEST)
    (tmp_path / "run" / "attachments").write_text("in the way")
    with pytest.raises(StoreError):
        journal.add_trial(RunTrial(1, "complete", DIGEST, ()), {"attachments/run-1/a.txt": (b"x",)})
    assert on_disk(tmp_path / "run")["trials"] == []


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("x")
    with pytest.raises(StoreError) as refused:
        Journal(tmp_path / "run", MANIFEST)
    assert refused.value.issues[0].code == "target_exists"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


def test_an_empty_directory_is_taken_and_a_missing_parent_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    Journal(tmp_path / "run", MANIFEST)
    with pytest.raises(StoreError):
        Journal(tmp_path / "no" / "run", MANIFEST)
