"""The ``moeplan checkpoint`` command, through ``main``."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import moeplan
from moeplan.cli.main import main
from moeplan.model.evidence import CheckpointDigest, EvidenceRecord
from moeplan.units import parse_instant
from moeplan.wire.closed_table import load_table
from moeplan.wire.documents import dump_document, load_document
from moeplan.wire.series import TENSORS
from tests.unit.checkpoint.made import small_checkpoint, write_index

IMAGE = "sha256:" + "1" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return small_checkpoint(tmp_path / "checkpoint")


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    made = moeplan.plan(moeplan.load_registry(), moeplan.Scenario(model="kimi-k3", hardware="h200", devices=8))
    (tmp_path / "plan.json").write_bytes(dump_document(made))
    return tmp_path / "plan.json"


def call(*words: str | Path) -> int:
    return main(["checkpoint", *map(str, words)])


def error_of(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)["error"]


class TestDigest:
    def test_file_json_and_table_are_of_one_document(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "checkpoint.json"
        assert call("digest", folder, "-o", out, "--repository", "owner/name", "--revision", "0" * 40, "--json") == 0
        shown = capsys.readouterr()
        assert shown.out.encode() == out.read_bytes()
        assert shown.err == ""
        document = json.loads(out.read_bytes())
        assert (document["kind"], document["tensorBytes"]) == ("checkpoint_manifest", 18)
        assert (document["repository"], document["revision"]) == ("owner/name", "0" * 40)
        assert call("digest", folder) == 0
        text = capsys.readouterr().out
        assert document["root"] in text
        assert "agrees (total_size 18)" in text

    def test_disagreement_exits_1_and_is_written_all_the_same(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write_index(folder, total_size=17)
        assert call("digest", folder, "-o", tmp_path / "c.json") == 1
        shown = capsys.readouterr()
        assert "DISAGREES (total_size 17)" in shown.out
        assert "error: total_size_differs" in shown.err
        assert json.loads((tmp_path / "c.json").read_bytes())["index"]["agrees"] is False

    def test_a_warning_exits_0(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "model.bin").write_text("x")
        write_index(folder)
        assert call("digest", folder) == 0
        assert "warning: tensors_not_read" in capsys.readouterr().err

    def test_a_corrupt_shard_exits_2_and_writes_nothing(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        os.truncate(folder / "one.safetensors", 5)
        assert call("digest", folder, "-o", tmp_path / "c.json", "--json") == 2
        error = error_of(capsys)
        assert (error["source"], error["code"]) == ("one.safetensors", "safetensors_truncated")
        assert not (tmp_path / "c.json").exists()

    def test_outputs_inside_the_checkpoint_are_refused(
        self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = sorted(folder.iterdir())
        (tmp_path / "link").symlink_to(folder)
        for path in (folder / "c.json", tmp_path / "link/c.json", folder / "sub/../c.json"):
            assert call("digest", folder, "-o", path, "--json") == 2
            assert error_of(capsys)["code"] == "output_inside_checkpoint"
        assert sorted(folder.iterdir()) == before

    def test_an_unwritable_output(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert call("digest", folder, "-o", tmp_path / "missing/c.json", "--json") == 2
        assert error_of(capsys)["code"] == "file_write"

    @pytest.mark.parametrize("workers", ["0", "257", "x"])
    def test_workers(self, folder: Path, workers: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert call("digest", folder, "--workers", workers, "--json") == 2
        assert "--workers" in str(error_of(capsys))

    def test_progress_only_where_stderr_is_a_terminal(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        assert call("digest", folder, "--json") == 0
        total = sum(path.stat().st_size for path in folder.iterdir())
        assert terminal.getvalue().endswith(f"hashed {total} B of {total} B\033[K\n")
        assert capsys.readouterr().out.startswith("{")


class TestRecord:
    def words(self, folder: Path, plan_file: Path, **changes: str | None) -> list[str]:
        options = {"record": str(plan_file.with_name("r.json")), "plan": str(plan_file), "node": "node-1"}
        chosen = {**options, "runtime-image": IMAGE, **changes}
        pairs = [(f"--{key}", value) for key, value in chosen.items() if value is not None]
        return ["digest", str(folder), *(word for pair in pairs for word in pair), "--json"]

    def test_binds_digest_plan_node_runtime_and_time(
        self, folder: Path, plan_file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = time.time()
        assert call(*self.words(folder, plan_file)) == 0
        after = time.time()
        manifest = capsys.readouterr().out.encode()
        data = plan_file.with_name("r.json").read_bytes()
        record = load_document(data, EvidenceRecord)
        assert dump_document(record) == data
        assert record.plan == "sha256:" + hashlib.sha256(plan_file.read_bytes()).hexdigest()
        payload = record.payload
        assert isinstance(payload, CheckpointDigest)
        assert payload.manifest == "sha256:" + hashlib.sha256(manifest).hexdigest()
        assert payload.root == json.loads(manifest)["root"]
        assert payload.node == "node-1"
        (runtime,) = record.deployment.runtimes
        assert (runtime.role, runtime.form, runtime.digest) == ("serve", "oci_image", IMAGE)
        start, end = parse_instant(record.interval.start), parse_instant(record.interval.end)
        assert before - 1 < start <= before
        assert after - 1 < end <= after + 1
        assert start < end

    def test_tensors_make_a_directory_of_evidence(self, folder: Path, plan_file: Path) -> None:
        target = plan_file.with_name("hashed")
        assert call(*self.words(folder, plan_file, record=str(target)), "--tensors") == 0
        (path,) = (target / "evidence").iterdir()
        record = load_document(path.read_bytes(), EvidenceRecord)
        assert dump_document(record) == path.read_bytes()
        (attachment,) = record.attachments
        assert attachment.role == "tensors"
        raw = (target / str(attachment.path)).read_bytes()
        assert attachment.digest == "sha256:" + hashlib.sha256(raw).hexdigest()
        assert list(load_table(TENSORS, raw).bytes) == [8, 4, 6]

    def test_a_directory_in_the_way_is_named_before_the_hashing(
        self, folder: Path, plan_file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        target = plan_file.with_name("hashed")
        target.mkdir()
        (target / "x").write_text("mine")
        words = self.words(folder, plan_file, record=str(target), output=str(plan_file.with_name("c.json")))
        assert call(*words, "--tensors") == 2
        assert error_of(capsys)["code"] == "target_exists"
        assert not plan_file.with_name("c.json").exists()

    def test_tensors_without_a_record(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert call("digest", folder, "--tensors", "--json") == 2
        assert error_of(capsys)["path"] == "--tensors"

    def test_packages_are_digested_as_given(self, folder: Path, plan_file: Path) -> None:
        packages = plan_file.with_name("packages.txt")
        packages.write_bytes(b"vllm==0.32.0\r\n")
        assert call(*self.words(folder, plan_file, **{"runtime-image": None, "runtime-packages": str(packages)})) == 0
        record = load_document(plan_file.with_name("r.json").read_bytes(), EvidenceRecord)
        (runtime,) = record.deployment.runtimes
        expected = "sha256:" + hashlib.sha256(b"vllm==0.32.0\r\n").hexdigest()
        assert (runtime.form, runtime.digest) == ("distributions", expected)

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"plan": None}, "--plan"),
            ({"node": None}, "--node"),
            ({"node": "Node 1"}, "--node"),
            ({"runtime-image": None}, "--runtime-image"),
            ({"runtime-image": "latest"}, "--runtime-image"),
            ({"record": None}, "--plan"),
        ],
    )
    def test_what_is_missing_or_malformed_is_named(
        self,
        folder: Path,
        plan_file: Path,
        capsys: pytest.CaptureFixture[str],
        changes: dict[str, str | None],
        path: str,
    ) -> None:
        assert call(*self.words(folder, plan_file, **changes)) == 2
        assert error_of(capsys)["path"].startswith(path)
        assert not plan_file.with_name("r.json").exists()

    def test_image_and_packages_exclude_each_other(
        self, folder: Path, plan_file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert call(*self.words(folder, plan_file, **{"runtime-packages": "x"})) == 2
        assert error_of(capsys)["code"] == "usage"

    def test_a_plan_that_is_none(self, folder: Path, plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        plan_file.write_text("{}\n")
        assert call(*self.words(folder, plan_file)) == 2
        assert error_of(capsys)["source"] == str(plan_file)

    def test_manifest_and_record_in_one_file(
        self, folder: Path, plan_file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record = plan_file.with_name("r.json")
        assert call(*self.words(folder, plan_file), "-o", record) == 2
        assert error_of(capsys)["code"] == "same_output"


class TestVerify:
    @pytest.fixture
    def manifest(self, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
        assert call("digest", folder, "-o", tmp_path / "checkpoint.json") == 0
        capsys.readouterr()
        return tmp_path / "checkpoint.json"

    def test_same(self, manifest: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert call("verify", manifest, folder, "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"ok": True, "findings": []}
        assert call("verify", manifest, folder) == 0
        assert capsys.readouterr().out.startswith("same: 4 files, root sha256:")

    def test_differences(self, manifest: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "config.json").write_text("[]\n")
        (folder / "extra").write_text("x")
        assert call("verify", manifest, folder, "--json") == 1
        shown = json.loads(capsys.readouterr().out)
        assert shown["ok"] is False
        assert [(f["code"], f["where"]) for f in shown["findings"]] == [
            ("file_digest", "config.json"),
            ("file_extra", "extra"),
        ]
        assert call("verify", manifest, folder) == 1
        assert "2 differences" in capsys.readouterr().out

    def test_a_manifest_whose_root_was_edited(
        self, manifest: Path, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        value = json.loads(manifest.read_text())
        value["root"] = "sha256:" + "0" * 64
        manifest.write_text(json.dumps(value))
        assert call("verify", manifest, folder, "--json") == 2
        error = error_of(capsys)
        assert (error["source"], error["code"], error["path"]) == (str(manifest), "wrong_root", "$.root")


@pytest.mark.parametrize("action", [[], ["digest"], ["verify"]])
def test_help_has_an_example(action: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        call(*action, "--help")
    assert caught.value.code == 0
    assert "example:\n  moeplan checkpoint" in capsys.readouterr().out
