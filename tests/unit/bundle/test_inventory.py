"""The closed world: everything listed is there unchanged, and nothing else is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moeplan.bundle.inventory import check_inventory, load_inventory
from moeplan.bundle.source import open_source
from moeplan.errors import VerificationError


def _check(root: Path) -> list[tuple[str, str]]:
    """Return code and path of every fault."""
    try:
        with open_source(root) as source:
            check_inventory(source, load_inventory(source)[0])
    except VerificationError as error:
        return [(issue.code, issue.path) for issue in error.issues if str(issue).isprintable()]
    return []


def _attest(root: Path, name: str = "evidence-0123456789abcdef-1.sigstore.json") -> None:
    (root / "attestations").mkdir(exist_ok=True)
    (root / "attestations" / name).write_bytes(b"{}")


def test_a_sound_bundle_passes(bundle: Path) -> None:
    assert _check(bundle) == []
    _attest(bundle)
    assert _check(bundle) == []


def test_the_bytes_are_those_that_lie_there(bundle: Path) -> None:
    with open_source(bundle) as source:
        inventory, data = load_inventory(source)
    assert data == (bundle / "bundle.json").read_bytes()
    assert json.loads(data)["files"][0]["path"] == inventory.files[0].path


def test_every_listed_digest_is_what_sha256sum_shows(bundle: Path) -> None:
    listed = {file["path"]: file for file in json.loads((bundle / "bundle.json").read_bytes())["files"]}
    found = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()}
    assert found == {*listed, "bundle.json"}
    for path, file in listed.items():
        data = (bundle / path).read_bytes()
        assert (file["digest"], file["size"]) == ("sha256:" + hashlib.sha256(data).hexdigest(), len(data))


@pytest.mark.parametrize(
    "path", ["plan.json", "registry.json", "evidence/trial-1.json", "attachments/trial-1/before.txt"]
)
def test_each_kind_of_difference_is_named_with_its_path(bundle: Path, path: str) -> None:
    file = bundle / path
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert _check(bundle) == [("inventory_digest", path)]
    file.write_bytes(data + b"\n")
    assert _check(bundle) == [("inventory_size", path)]
    file.unlink()
    assert _check(bundle) == [("inventory_missing", path)]


@pytest.mark.parametrize(
    "path", ["checkpoint2.json", "evidence/more.json", "attachments/trial-1/zz", "other/x", "bundle.json.x"]
)
def test_an_extra_file_is_refused_wherever_it_lies(bundle: Path, path: str) -> None:
    (bundle / path).parent.mkdir(exist_ok=True)
    (bundle / path).write_bytes(b"")
    assert _check(bundle) == [("inventory_extra", path)]


def test_all_differences_are_told_at_once(bundle: Path) -> None:
    (bundle / "plan.json").write_bytes(b"{}")
    (bundle / "registry.json").unlink()
    (bundle / "zzz").write_bytes(b"")
    assert _check(bundle) == [
        ("inventory_size", "plan.json"), ("inventory_missing", "registry.json"), ("inventory_extra", "zzz")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "note.txt", "evidence.sigstore.json", "plan-0123456789abcdef-1.sigstore.json",
        "evidence-0123456789ABCDEF-1.sigstore.json", "evidence-0123456789abcde-1.sigstore.json",
        "evidence-0123456789abcdef-01.sigstore.json", "evidence-0123456789abcdef-1.sigstore.json.bak",
        "deep/evidence-0123456789abcdef-1.sigstore.json",
    ],
)  # fmt: skip
def test_only_attestations_stand_under_attestations(bundle: Path, name: str) -> None:
    (bundle / "attestations" / name).parent.mkdir(parents=True)
    _attest(bundle, name)
    assert _check(bundle) == [("inventory_attestation", f"attestations/{name}")]


@pytest.mark.parametrize("kind", ["evidence", "runlog", "index", "verdict"])
def test_each_kind_of_attestation_may_stand(bundle: Path, kind: str) -> None:
    _attest(bundle, f"{kind}-0123456789abcdef-1.sigstore.json")
    assert _check(bundle) == []


def _edit(root: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads((root / "bundle.json").read_bytes())
    change(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    (root / "bundle.json").write_text(text + "\n", "utf-8")


def _traversal(value: dict[str, Any]) -> None:
    value["files"][0]["path"] = "attachments/../../etc/passwd"


def _itself(value: dict[str, Any]) -> None:
    value["files"][0]["path"] = "bundle.json"


def _attestation(value: dict[str, Any]) -> None:
    value["files"][0]["path"] = "attestations/evidence-0123456789abcdef-1.sigstore.json"


def _unsorted(value: dict[str, Any]) -> None:
    value["files"].reverse()


def _twice(value: dict[str, Any]) -> None:
    value["files"].insert(0, value["files"][0])


def _no_plan(value: dict[str, Any]) -> None:
    value["files"] = [file for file in value["files"] if file["path"] != "plan.json"]


def _other_role(value: dict[str, Any]) -> None:
    value["files"][0]["role"] = "evidence"


def _unknown_key(value: dict[str, Any]) -> None:
    value["comment"] = "hello"


def _other_version(value: dict[str, Any]) -> None:
    value["schemaVersion"] = "2.0.0"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_traversal, "invalid_value"), (_itself, "invalid_value"), (_attestation, "invalid_value"),
        (_unsorted, "not_sorted"), (_twice, "not_sorted"), (_no_plan, "plan_missing"), (_other_role, "role_mismatch"),
        (_unknown_key, "unknown_key"), (_other_version, "unsupported_version"),
    ],
)  # fmt: skip
def test_a_malformed_inventory_is_the_bundles_fault(
    bundle: Path, change: Callable[[dict[str, Any]], None], code: str
) -> None:
    _edit(bundle, change)
    assert code in [found for found, _path in _check(bundle)]


def test_another_layout_of_the_inventory_is_refused(bundle: Path) -> None:
    path = bundle / "bundle.json"
    data = path.read_bytes()
    for other in (data[:-1], data + b"\n", data.replace(b":", b": ", 1), json.dumps(json.loads(data)).encode()):
        path.write_bytes(other)
        assert _check(bundle) == [("not_canonical", "$")]


def test_no_inventory_and_no_json(bundle: Path) -> None:
    (bundle / "bundle.json").write_bytes(b"{")
    assert _check(bundle) == [("invalid_json", "$")]
    (bundle / "bundle.json").unlink()
    assert _check(bundle) == [("inventory_absent", "bundle.json")]


def test_every_byte_of_every_listed_file_counts(bundle: Path) -> None:
    for path in sorted(path for path in bundle.rglob("*") if path.is_file()):
        data = path.read_bytes()
        for place in range(0, len(data), max(1, len(data) // 7)):
            path.write_bytes(data[:place] + bytes([data[place] ^ 0x01]) + data[place + 1 :])
            assert _check(bundle), (path, place)
        path.write_bytes(data)
    assert _check(bundle) == []
