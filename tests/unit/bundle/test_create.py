"""Creating a bundle: what goes in, what is refused, and that nothing half-made is left."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from moeplan.bundle.create import create_bundle
from moeplan.bundle.inventory import check_inventory, load_inventory
from moeplan.bundle.source import open_source
from moeplan.errors import InputError, MoeplanError, StoreError
from tests.unit.bundle.conftest import ATTACHMENTS, PLAN, VALID


def _create(out: Path, *evidence: Path, plan: bytes | None = None, **rest: Any) -> list[str]:
    notes: list[str] = []
    create_bundle(out, plan=plan or PLAN.read_bytes(), evidence=evidence, note=notes.append, **rest)
    return notes


def _refused(out: Path, *evidence: Path, **rest: Any) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        _create(out, *evidence, **rest)
    assert not out.exists()
    assert not [name for name in os.listdir(out.parent) if name.endswith(".tmp")]
    assert all(str(issue).isprintable() for issue in caught.value.issues)
    return [(issue.code, issue.path) for issue in caught.value.issues]


def _canonical(value: Any) -> bytes:
    return (json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n").encode()


def _rewrite(path: Path, change: Callable[[dict[str, Any]], None], to: Path | None = None) -> None:
    value = json.loads(path.read_bytes())
    change(value)
    (to or path).write_bytes(_canonical(value))


def test_the_bundle_holds_what_was_given(bundle: Path, imported: Path) -> None:
    expected = {
        "plan.json": PLAN, "checkpoint.json": VALID / "checkpoint_manifest-small.json",
        "registry.json": VALID / "registry-two-models.json",
        "evidence/evidence_record-checkpoint-digest.json": VALID / "evidence_record-checkpoint-digest.json",
        "evidence/trial-1.json": imported / "evidence" / "trial-1.json",
        "evidence/run-1.json": imported / "evidence" / "run-1.json",
        **{f"attachments/trial-1/{name}": imported / "attachments" / "trial-1" / name for name in ATTACHMENTS},
    }  # fmt: skip
    found = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()}
    assert found == {*expected, "bundle.json"}
    for path, origin in expected.items():
        assert (bundle / path).read_bytes() == origin.read_bytes()


def test_roles_and_media_types(bundle: Path) -> None:
    files = {file["path"]: file for file in json.loads((bundle / "bundle.json").read_bytes())["files"]}
    assert {path: (file["role"], file["mediaType"]) for path, file in files.items()} == {
        "attachments/trial-1/before.txt": ("attachment", "text/plain"),
        "attachments/trial-1/chunk_gaps.parquet": ("attachment", "application/vnd.apache.parquet"),
        "attachments/trial-1/requests.parquet": ("attachment", "application/vnd.apache.parquet"),
        "checkpoint.json": ("checkpoint", "application/json"),
        "evidence/evidence_record-checkpoint-digest.json": ("evidence", "application/json"),
        "evidence/run-1.json": ("run_manifest", "application/json"),
        "evidence/trial-1.json": ("evidence", "application/json"),
        "plan.json": ("plan", "application/json"),
        "registry.json": ("registry", "application/json"),
    }


def test_creating_again_gives_the_same_bytes(tmp_path: Path, imported: Path) -> None:
    _create(tmp_path / "a", imported)
    _create(tmp_path / "b", imported, imported)
    assert (tmp_path / "a" / "bundle.json").read_bytes() == (tmp_path / "b" / "bundle.json").read_bytes()


def test_another_layout_of_the_plan_is_written_in_the_one_form(tmp_path: Path, imported: Path) -> None:
    plan = json.dumps(dict(reversed(json.loads(PLAN.read_bytes()).items())), indent=4).encode()
    notes = _create(tmp_path / "a", imported, plan=plan)
    assert (tmp_path / "a" / "plan.json").read_bytes() == PLAN.read_bytes()
    digest = hashlib.sha256(PLAN.read_bytes()).hexdigest()
    assert [note for note in notes if note.startswith("plan.json was not in canonical form") and digest in note]
    assert _create(tmp_path / "b", imported) == []


def test_another_layout_of_a_record_is_refused(tmp_path: Path, imported: Path) -> None:
    path = imported / "evidence" / "trial-1.json"
    path.write_bytes(json.dumps(json.loads(path.read_bytes()), indent=1).encode())
    found = _refused(tmp_path / "a", imported)
    assert ("not_canonical", f"{path}: $") in found


def test_a_malformed_plan_is_refused(tmp_path: Path) -> None:
    assert _refused(tmp_path / "a", plan=b'{"kind":"deployment_validation_plan"') == [("invalid_json", "$")]
    assert _refused(tmp_path / "a", plan=(VALID / "policy-empty.json").read_bytes()) == [("unsupported_kind", "$.kind")]


def test_records_of_another_plan_are_refused(tmp_path: Path, imported: Path) -> None:
    plan = (VALID / "deployment_validation_plan-unknown-size.json").read_bytes()
    assert _refused(tmp_path / "a", imported, plan=plan) == [
        ("plan_mismatch", f"{imported}/evidence/run-1.json"), ("plan_mismatch", f"{imported}/evidence/trial-1.json")
    ]  # fmt: skip


def test_a_missing_attachment_is_refused(tmp_path: Path, imported: Path) -> None:
    path = imported / "attachments" / "trial-1" / "before.txt"
    path.unlink()
    assert _refused(tmp_path / "a", imported) == [("attachment_missing", str(path))]


@pytest.mark.parametrize("data", [b"requests 1\n", b"", b"requests 0\n\n"])
def test_an_attachment_that_differs_is_refused(tmp_path: Path, imported: Path, data: bytes) -> None:
    path = imported / "attachments" / "trial-1" / "before.txt"
    path.write_bytes(data)
    assert _refused(tmp_path / "a", imported) == [("attachment_digest", str(path))]


def test_an_attachment_nobody_names_is_refused_unless_the_run_logged_it(tmp_path: Path, imported: Path) -> None:
    path = imported / "attachments" / "aborted.txt"
    path.write_bytes(b"left by trial 2")
    assert _refused(tmp_path / "a", imported) == [("attachment_unreferenced", str(path))]

    def log(value: dict[str, Any]) -> None:
        value["trials"][1]["files"] = ["sha256:" + hashlib.sha256(b"left by trial 2").hexdigest()]

    _rewrite(imported / "evidence" / "run-1.json", log)
    _create(tmp_path / "a", imported)
    assert (tmp_path / "a" / "attachments" / "aborted.txt").read_bytes() == b"left by trial 2"


def test_two_records_may_not_claim_one_path(tmp_path: Path, imported: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(imported, other)

    def change(value: dict[str, Any]) -> None:
        value["payload"]["endpoint"] = "/v1/chat/completions"

    _rewrite(other / "evidence" / "trial-1.json", change)
    found = _refused(tmp_path / "a", imported, other)
    assert ("record_collision", f"{other}/evidence/trial-1.json") in found


def test_two_attachments_may_not_claim_one_path(tmp_path: Path, imported: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(imported, other)
    (other / "evidence" / "run-1.json").unlink()
    (other / "attachments" / "trial-1" / "before.txt").write_bytes(b"requests 9\n")

    def change(value: dict[str, Any]) -> None:
        value["attachments"][3]["digest"] = "sha256:" + hashlib.sha256(b"requests 9\n").hexdigest()

    _rewrite(other / "evidence" / "trial-1.json", change, other / "evidence" / "trial-2.json")
    (other / "evidence" / "trial-1.json").unlink()
    found = _refused(tmp_path / "a", imported, other)
    assert found == [("attachment_collision", f"{other}/attachments/trial-1/before.txt")]


def test_the_same_record_under_two_names_is_refused(tmp_path: Path, imported: Path) -> None:
    again = tmp_path / "again.json"
    shutil.copy(VALID / "evidence_record-checkpoint-digest.json", again)
    found = _refused(tmp_path / "a", VALID / "evidence_record-checkpoint-digest.json", again)
    assert found == [("record_repeated", str(again))]


def test_paths_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    for name in ("R.json", "r.json"):
        shutil.copy(VALID / "evidence_record-checkpoint-digest.json", tmp_path / name)

    def change(value: dict[str, Any]) -> None:
        value["payload"]["node"] = "node-2"

    _rewrite(tmp_path / "r.json", change)
    assert _refused(tmp_path / "a", tmp_path / "R.json", tmp_path / "r.json") == [("paths_collide", "$.files")]


def test_a_record_file_must_bring_no_attachments(tmp_path: Path, imported: Path) -> None:
    found = _refused(tmp_path / "a", imported / "evidence" / "trial-1.json")
    assert found == [("attachment_missing", str(imported / "evidence" / "trial-1.json"))] * 3


@pytest.mark.parametrize("name", ["ä.json", "record.txt", "-x.json", "a b.json", ".json"])
def test_a_record_needs_a_plain_name(tmp_path: Path, name: str) -> None:
    shutil.copy(VALID / "evidence_record-checkpoint-digest.json", tmp_path / name)
    assert [code for code, _path in _refused(tmp_path / "a", tmp_path / name)] == ["record_name"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "invalid_json"), (b"[]\n", "wrong_type"), (b'{"kind":7}\n', "unsupported_kind"),
        (b'{"kind":["evidence_record"]}\n', "unsupported_kind"),
        ((VALID / "policy-empty.json").read_bytes(), "unsupported_kind"),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "x.json").write_bytes(data)
    assert _refused(tmp_path / "a", tmp_path / "x.json") == [
        (code, f"{tmp_path}/x.json: $" + ".kind" * (code != "invalid_json" and code != "wrong_type"))
    ]


def test_a_directory_without_evidence_and_a_hostile_one_are_refused(tmp_path: Path, imported: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert _refused(tmp_path / "a", tmp_path / "empty") == [("no_evidence", str(tmp_path / "empty"))]
    (imported / "evidence" / "x.json").symlink_to("/etc/passwd")
    assert _refused(tmp_path / "a", imported) == [("container_not_regular", f"{imported}/evidence/x.json")]


def test_what_else_lies_there_is_left_out_and_told(tmp_path: Path, imported: Path) -> None:
    (imported / "findings.json").write_bytes(b"{}")
    notes = _create(tmp_path / "a", imported)
    assert notes == [f"left out: {imported}/findings.json is no evidence"]
    assert not (tmp_path / "a" / "findings.json").exists()


def test_a_path_no_tar_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / ("r" * 101 + ".json")
    shutil.copy(VALID / "evidence_record-checkpoint-digest.json", path)
    assert _refused(tmp_path / "a", path) == [("container_path_too_long", f"evidence/{path.name}")]


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        _create(tmp_path / "a", tmp_path / "none")
    assert (caught.value.issues[0].code, caught.value.issues[0].path) == ("file_read", str(tmp_path / "none"))
    assert not (tmp_path / "a").exists()


def test_what_is_in_the_way_stays(tmp_path: Path, imported: Path) -> None:
    with pytest.raises(StoreError) as caught:
        _create(imported, imported)
    assert caught.value.issues[0].code == "target_exists"
    assert sorted(os.listdir(imported)) == ["attachments", "evidence"]


def test_the_bundle_is_sound(bundle: Path) -> None:
    with open_source(bundle) as source:
        inventory, _data = load_inventory(source)
        check_inventory(source, inventory)
    assert inventory.kind == "evidence_bundle"


def test_errors_are_moeplans_own(tmp_path: Path) -> None:
    inputs: Sequence[bytes] = (b"\xff", b"[" * 10_000, b'{"kind":NaN}', b"0")
    for plan in inputs:
        with pytest.raises(MoeplanError):
            create_bundle(tmp_path / "a", plan=plan)
