from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import attrs
import pytest

from moeplan.checkpoint.manifest import Digested, digest_checkpoint, verify_checkpoint
from moeplan.errors import InputError, StoreError
from moeplan.model.checkpoint import CheckpointManifest, root_digest
from moeplan.wire.documents import dump_document, load_document
from tests.unit.checkpoint.made import (
    TINY_MOE,
    entry,
    safetensors_bytes,
    second_reading,
    small_checkpoint,
    write_index,
)

shared = pytest.mark.skipif(not TINY_MOE.is_dir(), reason="the shared tiny-moe checkpoint is not beside the repository")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_checkpoint(tmp_path / "checkpoint")


def codes(digested: Digested) -> list[str]:
    return [finding.code for finding in digested.findings]


@pytest.mark.shared
@shared
class TestTinyMoe:
    def test_every_figure_a_second_way(self) -> None:
        digested = digest_checkpoint(TINY_MOE, repository="owner/tiny-moe", revision="0" * 40)
        manifest = digested.manifest
        lines, total = "", 0
        for path in sorted(TINY_MOE.iterdir()):
            data = path.read_bytes()
            total += len(data)
            lines += f"{hashlib.sha256(data).hexdigest()}  {len(data)}  {path.name}\n"
        assert len(manifest.files) == lines.count("\n") == 11
        assert manifest.root == "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
        assert digested.total_bytes == total
        held = {path.name: second_reading(path) for path in TINY_MOE.glob("*.safetensors")}
        found: dict[str, dict[str, tuple[str, tuple[int, ...], int]]] = {name: {} for name in held}
        for tensor in manifest.tensors:
            found[tensor.file][tensor.name] = (tensor.dtype, tensor.shape, tensor.bytes)
        assert found == held
        stated = json.loads((TINY_MOE / "model.safetensors.index.json").read_text())
        assert manifest.tensor_bytes == stated["metadata"]["total_size"] == 15_242_240
        assert {tensor.name: tensor.file for tensor in manifest.tensors} == stated["weight_map"]
        assert manifest.index is not None
        assert (manifest.index.total_size, manifest.index.agrees) == (15_242_240, True)
        assert digested.findings == ()
        assert load_document(dump_document(manifest), CheckpointManifest) == manifest

    def test_verifies_against_itself(self) -> None:
        manifest = digest_checkpoint(TINY_MOE, workers=1).manifest
        assert verify_checkpoint(manifest, TINY_MOE, workers=2) == ()


class TestDigest:
    def test_exact_root(self, folder: Path) -> None:
        listed = "".join(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.stat().st_size}  {path.name}\n"
            for path in sorted(folder.iterdir())
        )
        digested = digest_checkpoint(folder)
        assert digested.manifest.root == "sha256:" + hashlib.sha256(listed.encode()).hexdigest()
        assert digested.manifest.tensor_bytes == 18
        assert codes(digested) == []

    def test_links_give_the_same_root_as_copies(self, folder: Path, tmp_path: Path) -> None:
        snapshot = tmp_path / "snapshot"
        snapshot.mkdir()
        for path in folder.iterdir():
            (snapshot / path.name).symlink_to(path)
        assert digest_checkpoint(snapshot).manifest == digest_checkpoint(folder).manifest

    @pytest.mark.parametrize("declared", [{"repository": "no-slash"}, {"revision": "main"}])
    def test_declarations_are_checked_before_anything_is_read(self, tmp_path: Path, declared: dict[str, str]) -> None:
        with pytest.raises(InputError) as caught:
            digest_checkpoint(tmp_path / "missing", **declared)  # type: ignore[arg-type]
        assert caught.value.issues[0].path == "--" + next(iter(declared))

    def test_a_corrupt_shard_is_named(self, folder: Path) -> None:
        os.truncate(folder / "two.safetensors", 40)
        with pytest.raises(InputError) as caught:
            digest_checkpoint(folder)
        assert caught.value.source == "two.safetensors"
        assert caught.value.issues[0].code == "safetensors_truncated"

    def test_an_index_that_disagrees(self, folder: Path) -> None:
        write_index(folder, total_size=19, b="two.safetensors", d="two.safetensors")
        digested = digest_checkpoint(folder)
        assert codes(digested) == ["tensor_in_other_file", "tensor_missing", "total_size_differs"]
        assert digested.manifest.index is not None
        assert not digested.manifest.index.agrees

    def test_shards_without_an_index(self, folder: Path) -> None:
        (folder / "model.safetensors.index.json").unlink()
        digested = digest_checkpoint(folder)
        assert codes(digested) == ["index_missing"]
        assert digested.manifest.index is None
        (folder / "three.safetensors").write_bytes(safetensors_bytes({"a": entry("U8", [1], 0, 1)}, b"x"))
        assert codes(digest_checkpoint(folder)) == ["index_missing", "tensor_repeated"]

    def test_numbered_shards_that_are_not_whole(self, folder: Path) -> None:
        (folder / "model.safetensors.index.json").unlink()
        (folder / "two.safetensors").unlink()
        (folder / "one.safetensors").rename(folder / "model-00001-of-00005.safetensors")
        assert codes(digest_checkpoint(folder)) == ["shards_missing"]
        for number in range(2, 6):
            data = safetensors_bytes({f"t{number}": entry("U8", [1], 0, 1)}, b"x")
            (folder / f"model-0000{number}-of-00005.safetensors").write_bytes(data)
        assert codes(digest_checkpoint(folder)) == ["index_missing"]

    def test_one_shard_needs_no_index(self, folder: Path) -> None:
        (folder / "model.safetensors.index.json").unlink()
        (folder / "two.safetensors").unlink()
        assert codes(digest_checkpoint(folder)) == []

    def test_other_weight_formats_are_files_and_said_so(self, folder: Path) -> None:
        (folder / "pytorch_model.bin").write_bytes(b"x" * 100)
        (folder / "model.GGUF").write_bytes(b"y" * 10)
        digested = digest_checkpoint(folder)
        assert digested.manifest.tensor_bytes == 18
        assert "pytorch_model.bin" in [file.name for file in digested.manifest.files]
        assert codes(digested) == ["tensors_not_read"]
        assert "2 files (110 bytes)" in digested.findings[0].message

    def test_no_tensor_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text("{}")
        assert codes(digest_checkpoint(tmp_path)) == ["tensors_not_read"]

    @pytest.mark.parametrize("action", ["add", "remove", "alter"])
    def test_a_directory_that_changes_meanwhile(self, folder: Path, action: str) -> None:
        def disturb(done: int, total: int) -> None:
            if done == total:
                if action == "add":
                    (folder / "new").write_text("x")
                elif action == "remove":
                    (folder / "one.safetensors").unlink(missing_ok=True)
                else:
                    os.utime(folder / "one.safetensors", ns=(1, 1))

        with pytest.raises(StoreError) as caught:
            digest_checkpoint(folder, workers=1, progress=disturb)
        assert caught.value.issues[0].code == "changed_while_read"


class TestVerify:
    @pytest.fixture
    def manifest(self, folder: Path) -> CheckpointManifest:
        return digest_checkpoint(folder).manifest

    def found(self, manifest: CheckpointManifest, folder: Path) -> list[tuple[str, str | None]]:
        findings = verify_checkpoint(manifest, folder)
        assert all(finding.severity == "error" for finding in findings)
        return [(finding.code, finding.where) for finding in findings]

    def test_same(self, manifest: CheckpointManifest, folder: Path) -> None:
        assert self.found(manifest, folder) == []

    def test_every_difference_at_once(self, manifest: CheckpointManifest, folder: Path) -> None:
        (folder / "config.json").unlink()
        (folder / "extra").write_text("x")
        os.truncate(folder / "one.safetensors", 10)
        data = bytearray((folder / "two.safetensors").read_bytes())
        data[-1] ^= 1
        (folder / "two.safetensors").write_bytes(data)
        assert self.found(manifest, folder) == [
            ("file_missing", "config.json"),
            ("file_extra", "extra"),
            ("file_size", "one.safetensors"),
            ("file_digest", "two.safetensors"),
        ]

    def test_the_digests_are_shown(self, manifest: CheckpointManifest, folder: Path) -> None:
        before = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
        (folder / "config.json").write_text("[]\n")
        after = hashlib.sha256(b"[]\n").hexdigest()
        (finding,) = verify_checkpoint(manifest, folder)
        assert finding.message == f"config.json: sha256:{after}, expected sha256:{before}"

    def test_a_manifest_that_misstates_its_files_content(self, manifest: CheckpointManifest, folder: Path) -> None:
        other = (attrs.evolve(manifest.tensors[0], dtype="I32"), *manifest.tensors[1:])
        assert self.found(attrs.evolve(manifest, tensors=other), folder) == [("tensors_differ", "tensors")]
        assert manifest.index is not None
        lying = attrs.evolve(manifest, index=attrs.evolve(manifest.index, agrees=False))
        assert self.found(lying, folder) == [("index_differs", "model.safetensors.index.json")]

    def test_hostile_names_are_escaped(self, manifest: CheckpointManifest, folder: Path) -> None:
        (folder / "a\u202etxt").write_text("x")
        (finding,) = verify_checkpoint(manifest, folder)
        assert finding.where == "a\\u202etxt"

    def test_root_depends_on_names_sizes_and_digests(self, manifest: CheckpointManifest) -> None:
        file = manifest.files[0]
        roots = {
            root_digest(files)
            for files in (
                (file,),
                (attrs.evolve(file, name="x"),),
                (attrs.evolve(file, size=file.size + 1),),
                (attrs.evolve(file, digest="sha256:" + "0" * 64),),
            )
        }
        assert len(roots) == 4
