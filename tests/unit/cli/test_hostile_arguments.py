"""File names and values as no shell completes them: a named error, and nothing raw on the terminal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from moeplan.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
SIGNED = ROOT / "evidence" / "tiny-moe-cpu"
DEMO = ROOT / "demo"
KEY = ROOT / "tests" / "data" / "published-test-key.pem"
PUBLIC = ROOT / "tests" / "data" / "published-test-key.pub.pem"
POLICY = SIGNED / "policy.json"
RED = "\x1b[31mred"
NOT_UTF8 = os.fsdecode(b"\xff\xfe")
LONG = "x" * 5000


def said(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main([str(word) for word in words])
    shown = capfd.readouterr()
    text = shown.out + shown.err
    assert "internal error" not in text
    assert all(line.isprintable() for line in text.split("\n"))
    return code, text


def imported(*words: object) -> tuple[object, ...]:
    bundle = SIGNED / "bundle"
    return (
        *("import", "vllm-bench", *words, "--plan", bundle / "plan.json", "--checkpoint", bundle / "checkpoint.json"),
        *("--runtime-packages", DEMO / "runtime-packages.txt", "--requested-input", "128"),
        *("--requested-output", "64", "--ignore-eos", "--utc-offset", "Z"),
    )


@pytest.mark.parametrize("name", [RED, NOT_UTF8])
def test_names_of_outputs_are_shown_escaped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bundle, verdict = SIGNED / "bundle", tmp_path / "verdict.json"
    judged = ("verdict", bundle, "--policy", POLICY, "--at", "2026-11-30T18:00:00Z", "-o")
    assert said(capfd, *judged, name)[0] == 3
    assert said(capfd, *judged, verdict)[0] == 3
    for json in ([], ["--json"]):
        assert said(capfd, "attest", "--verdict", verdict, "--key", KEY, "-o", name, *json)[0] == 0
    assert said(capfd, "policy", "init", "--trust-key", PUBLIC, "--test-keys", "-o", name)[0] == 0
    for action in ("validate", "explain"):
        assert said(capfd, "policy", action, name)[0] == 0


def test_an_unexpected_fingerprint_is_shown_escaped_and_short(capfd: pytest.CaptureFixture[str]) -> None:
    for given in (RED, LONG, NOT_UTF8):
        code, text = said(capfd, "policy", "init", "--trust-key", PUBLIC, "--test-keys", "--fingerprint", given)
        assert (code, len(text) < 1000) == (2, True)


@pytest.mark.parametrize("name", [RED, NOT_UTF8])
def test_an_importers_files_are_named_escaped(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trial = DEMO / "trials" / "trial-1.json"
    Path(name).write_text("{}", encoding="utf-8")
    assert said(capfd, *imported(name), "-o", "out")[0] == 2
    assert said(capfd, *imported(trial), "--metrics", name, name, "-o", "out")[0] == 2
    shutil.copy(trial, name)
    assert said(capfd, *imported(trial, name), "-o", "out", "--json")[0] == 2


@pytest.mark.parametrize("option", ["--endpoint", "--tool-version"])
def test_a_stated_text_that_is_not_utf_8(option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trial = DEMO / "trials" / "trial-1.json"
    code, text = said(capfd, *imported(trial), option, NOT_UTF8, "-o", tmp_path / "out")
    assert (code, "value refused" in text) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_names_too_long_for_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bundle = SIGNED / "bundle"
    made = ("bundle", "create", tmp_path / "made", "--plan", bundle / "plan.json", "--evidence")
    assert said(capfd, *made, LONG)[0] == 2
    assert said(capfd, "attest", LONG, "--key", KEY)[0] == 2
    assert said(capfd, "bundle", "pack", LONG, "-o", tmp_path / "b.tar")[0] == 2
    assert said(capfd, "bundle", "pack", bundle, "-o", tmp_path / LONG)[0] == 2
    assert said(capfd, "checkpoint", "digest", DEMO / "tiny-moe", "-o", tmp_path / LONG)[0] == 2


def test_links_that_lead_in_a_circle(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert said(capfd, "checkpoint", "digest", DEMO / "tiny-moe", "-o", loop / "c.json")[0] == 2
    assert said(capfd, "bundle", "pack", SIGNED / "bundle", "-o", loop / "b.tar")[0] == 2
    assert said(capfd, "verify", loop, "--unsigned")[0] == 2


def test_an_error_of_the_system_that_nobody_foresaw_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_args: object) -> int:
        raise PermissionError(13, "Permission denied", "/proc/1/root")

    monkeypatch.setattr("moeplan.cli.models_command.run", fail)
    code, text = said(capfd, "models")
    assert (code, "/proc/1/root: cannot read: Permission denied" in text) == (2, True)
