"""The ``moeplan bundle`` command, through ``main``."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from moeplan.cli.main import main
from tests.unit.bundle.conftest import PLAN, VALID


def test_create_pack_unpack(tmp_path: Path, imported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, tar, b = (str(tmp_path / name) for name in ("a", "a.tar", "b"))
    words = ["bundle", "create", a, "--plan", str(PLAN), "--evidence", str(imported)]
    assert main([*words, "--registry", str(VALID / "registry-two-models.json"), "--json"]) == 0
    first = capsys.readouterr()
    shown = json.loads(first.out)
    data = (tmp_path / "a" / "bundle.json").read_bytes()
    assert shown == {"bundle": "sha256:" + hashlib.sha256(data).hexdigest(), "files": json.loads(data)["files"]}
    assert first.err == f"wrote {a}\n"
    assert main(["bundle", "pack", a, "-o", tar, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == shown
    assert main(["bundle", "unpack", tar, "-o", b, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == shown
    assert (tmp_path / "b" / "bundle.json").read_bytes() == data


def test_a_table_for_people(tmp_path: Path, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bundle", "pack", str(bundle), "-o", str(tmp_path / "x.tar")]) == 0
    out = capsys.readouterr().out
    assert "evidence/trial-1.json" in out
    assert "bundle.json sha256:" + hashlib.sha256((bundle / "bundle.json").read_bytes()).hexdigest() in out


def test_exit_codes(tmp_path: Path, imported: Path, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "o")
    assert main(["bundle", "pack", str(tmp_path / "none"), "-o", out, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "file_read"
    assert main(["bundle", "create", out, "--plan", str(VALID / "policy-empty.json"), "--evidence", str(imported)]) == 2
    assert main(["bundle"]) == 2
    (bundle / "plan.json").write_bytes(b"{}\n")
    assert main(["bundle", "pack", str(bundle), "-o", out, "--json"]) == 4
    capsys.readouterr()
    (tmp_path / "t.tar").write_bytes(bytes(1024))
    assert main(["bundle", "unpack", str(tmp_path / "t.tar"), "-o", out, "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "inventory_absent"
    assert not os.path.exists(out)


@pytest.mark.parametrize("action", [[], ["create"], ["pack"], ["unpack"]])
def test_help_has_an_example(action: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["bundle", *action, "--help"])
    assert caught.value.code == 0
    assert "example:\n  moeplan bundle" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["pack", "unpack"])
def test_no_output_inside_the_bundle(action: str, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(bundle.rglob("*"))
    assert main(["bundle", action, str(bundle), "-o", str(bundle / "inside"), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "output_inside_bundle"
    assert sorted(bundle.rglob("*")) == before
