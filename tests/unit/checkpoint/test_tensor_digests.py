"""Digests of tensors while files are hashed, against hashlib over the byte ranges and against a real engine's."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from pathlib import Path

import pytest

from moeplan.checkpoint.manifest import digest_checkpoint
from moeplan.checkpoint.record import make_tensor_record
from moeplan.checkpoint.safetensors import TensorHeader
from moeplan.checkpoint.tensor_digests import TensorDigester
from moeplan.digest import CHUNK_BYTES
from moeplan.errors import InputError
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.evidence import CheckpointDigest, Interval
from moeplan.wire.closed_table import load_table
from moeplan.wire.series import TENSORS
from tests.unit.checkpoint.made import TINY_MOE, entry, safetensors_bytes, small_checkpoint

NOTHING = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def by_ranges(path: Path) -> dict[str, tuple[int, str]]:
    """Return size and digest of each tensor, read without the code under test."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    spans = {name: item["data_offsets"] for name, item in header.items()}
    return {
        name: (end - begin, sha(data[8 + length + begin : 8 + length + end])) for name, (begin, end) in spans.items()
    }


def told(folder: Path) -> dict[str, tuple[int, str]]:
    table = digest_checkpoint(folder, tensor_digests=True).tensors
    assert table is not None
    assert set(table.rank) == {"files"}
    assert list(table.tensor) == sorted(table.tensor)
    return {name: (size, digest) for name, size, digest in zip(table.tensor, table.bytes, table.digest, strict=True)}


def test_equals_the_ranges_of_the_files(tmp_path: Path) -> None:
    folder = small_checkpoint(tmp_path / "checkpoint")
    expected = {"a": (8, sha(bytes(range(8)))), "b": (4, sha(bytes(range(8, 12)))), "c": (6, sha(b"\1" * 6))}
    assert told(folder) == expected
    plain = digest_checkpoint(folder)
    assert plain.tensors is None
    assert plain.manifest == digest_checkpoint(folder, tensor_digests=True).manifest


def test_tensors_over_several_chunks_empty_ones_and_no_header_order(tmp_path: Path) -> None:
    made, at, data = {}, 0, random.Random(5).randbytes(3 * CHUNK_BYTES + 12345)
    for number, size in enumerate((0, 2 * CHUNK_BYTES, 7, CHUNK_BYTES - 9, 0, 12347, 0)):
        made[f"t{number}"] = entry("U8", [size], at, at + size)
        at += size
    assert at == len(data)
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    shuffled = dict(sorted(made.items(), reverse=True))
    (folder / "model.safetensors").write_bytes(safetensors_bytes(shuffled, data))
    found = told(folder)
    assert found == by_ranges(folder / "model.safetensors")
    assert found["t0"] == found["t4"] == found["t6"] == (0, NOTHING)


@pytest.mark.parametrize("step", [1, 3, 5, 100])
def test_the_size_of_the_chunks_is_of_no_consequence(step: int) -> None:
    headers = [
        TensorHeader("x", "U8", (4,), 0, 4),
        TensorHeader("e", "U8", (0,), 4, 4),
        TensorHeader("y", "U8", (3,), 4, 7),
    ]
    file = b"head" + b"abcdefg"
    digester = TensorDigester(headers, len(file))
    for start in range(0, len(file), step):
        digester.feed(file[start : start + step])
    assert digester.digests == {"x": sha(b"abcd"), "e": NOTHING, "y": sha(b"efg")}


def test_a_name_in_two_files_is_refused_before_anything_is_hashed(tmp_path: Path) -> None:
    folder = small_checkpoint(tmp_path / "checkpoint")
    (folder / "again.safetensors").write_bytes(safetensors_bytes({"c": entry("U8", [1], 0, 1)}, b"\2"))
    hashed: list[int] = []
    with pytest.raises(InputError) as caught:
        digest_checkpoint(folder, tensor_digests=True, progress=lambda done, _total: hashed.append(done))
    assert [issue.code for issue in caught.value.issues] == ["tensor_repeated"]
    assert not hashed
    digest_checkpoint(folder)


def test_a_checkpoint_without_tensors_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "model.bin").write_bytes(b"x")
    with pytest.raises(InputError) as caught:
        digest_checkpoint(folder, tensor_digests=True)
    assert [issue.code for issue in caught.value.issues] == ["tensors_not_read"]


def test_the_record_encloses_its_table(tmp_path: Path) -> None:
    digested = digest_checkpoint(small_checkpoint(tmp_path / "checkpoint"), tensor_digests=True)
    assert digested.tensors is not None
    runtime = RuntimeIdentity(role="serve", form="oci_image", digest="sha256:" + "1" * 64)
    made = make_tensor_record(
        digested.manifest,
        digested.tensors,
        plan="sha256:" + "2" * 64,
        node="node-1",
        deployment=Deployment(digested.manifest.root, None, (runtime,), None, None, None, ("node-1",), None),
        interval=Interval(start="2026-11-30T17:29:49Z", end="2026-11-30T17:29:51Z"),
        version="1.2.3",
    )
    assert isinstance(made.record.payload, CheckpointDigest)
    assert made.record.payload.file_count == 4
    (attachment,) = made.record.attachments
    assert attachment.role == "tensors"
    assert attachment.path is not None
    assert attachment.digest == sha(made.files[attachment.path])
    table = load_table(TENSORS, made.files[attachment.path])
    assert (table.tensor, list(table.bytes)) == (("a", "b", "c"), [8, 4, 6])


@pytest.mark.shared
@pytest.mark.skipif(not TINY_MOE.is_dir(), reason="needs ../shared")
def test_equals_what_a_real_engine_hashed_as_it_loaded() -> None:
    """Source: ../shared/samples/made/moeplan-probe-weights.json, vLLM 0.32.0 on CPU, 231 tensors."""
    engine = json.loads((TINY_MOE.parent / "moeplan-probe-weights.json").read_bytes())["tensors"]
    assert len(engine) == 231
    assert told(TINY_MOE) == {name: (item["bytes"], "sha256:" + item["sha256"]) for name, item in engine.items()}
