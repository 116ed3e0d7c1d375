"""What the model's classes compute themselves, against hand calculation and coreutils."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from moeplan.model.checkpoint import CheckpointFile, CheckpointManifest, root_digest
from moeplan.model.policy import Policy
from moeplan.model.registry import Registry
from moeplan.wire.converter import structure
from moeplan.wire.documents import load_document

VALID = Path(__file__).parents[2] / "conformance" / "corpus" / "valid"


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs coreutils")
def test_root_digest_is_what_sha256sum_shows_of_the_lines(tmp_path: Path) -> None:
    data = {"b.bin": b"22", "a.json": b"1", "ü/c": b"333"}
    files, lines = [], []
    for name, content in data.items():
        (tmp_path / "f").write_bytes(content)
        shown = subprocess.run(["sha256sum", tmp_path / "f"], capture_output=True, text=True, check=True).stdout
        files.append(CheckpointFile(name, len(content), "sha256:" + shown.split()[0]))
        lines.append((name, f"{shown.split()[0]}  {len(content)}  {name}\n"))
    (tmp_path / "lines").write_text("".join(line for _name, line in sorted(lines)), "utf-8")
    shown = subprocess.run(["sha256sum", tmp_path / "lines"], capture_output=True, text=True, check=True).stdout
    assert root_digest(files) == root_digest(reversed(files)) == "sha256:" + shown.split()[0]


def test_a_file_name_that_turns_text_around_is_shown_escaped() -> None:
    value = json.loads((VALID / "checkpoint_manifest-small.json").read_bytes())
    value["tensors"][1]["file"] = "model\u202e"
    manifest = structure(value, CheckpointManifest)
    issues = list(manifest.faults())
    assert [issue.code for issue in issues] == ["unknown_reference"]
    assert str(issues[0]).isprintable()


def test_memory_is_decimal_gigabytes() -> None:
    registry = load_document((VALID / "registry-two-models.json").read_bytes(), Registry)
    assert [item.memory_bytes for item in registry.hardware] == [141_000_000_000, None]


def test_least_binding_of_a_policy() -> None:
    policy = load_document((VALID / "policy-full.json").read_bytes(), Policy)
    assert policy.binding_for("workload_sla") == "hashed"
    assert policy.binding_for("runtime_load") == "declared"
