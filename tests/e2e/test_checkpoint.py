"""The checkpoint that the engine serves: the same bytes everywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import e2e.checkpoint
from e2e.checkpoint import NAME, ROOT_DIGEST, make_checkpoint
from e2e.processes import StepFailedError
from moeplan.checkpoint.manifest import digest_checkpoint


def test_its_root_is_pinned_and_moeplan_computes_the_same(tmp_path: Path) -> None:
    directory = make_checkpoint(tmp_path / "models")
    assert directory == tmp_path / "models" / NAME
    manifest = digest_checkpoint(directory).manifest
    assert manifest.root == ROOT_DIGEST == "sha256:775fbd85ccb49e572123915beeeb0e3ebe555b51cfa38c59f5461c63f5de2661"
    index = json.loads((directory / "model.safetensors.index.json").read_bytes())
    assert manifest.tensor_bytes == index["metadata"]["total_size"] == 15_242_240
    assert len(set(index["weight_map"].values())) == 5


def test_a_changed_byte_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(e2e.checkpoint._SOURCE, changed)
    shard = changed / "model-00003-of-00005.safetensors"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)
    monkeypatch.setattr(e2e.checkpoint, "_SOURCE", changed)
    with pytest.raises(StepFailedError, match=f"and {ROOT_DIGEST} was expected"):
        make_checkpoint(tmp_path / "models")
