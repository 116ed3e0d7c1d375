"""``moeplan import auto`` from files to records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from moeplan.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "evidence/tiny-moe-cpu/bundle"
STATED = (
    f"--plan {BUNDLE / 'plan.json'} --checkpoint {BUNDLE / 'checkpoint.json'} "
    f"--runtime-packages {ROOT / 'demo/runtime-packages.txt'} --requested-input 128 --requested-output 64 --ignore-eos "
    "--utc-offset +00:00 --concurrency 4 --taken 2026-11-30T17:30:00Z"
)


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_lists_without_importing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "demo/trials", tmp_path / "trials")
    code, out, err = run(capsys, "import", "auto", tmp_path)
    assert code == 0
    assert out.count("vllm bench serve, detailed") == 3
    assert "moeplan import vllm-bench " in out
    assert "nothing was imported" in err


def test_imports_trials_of_one_run_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for number in (1, 2, 3):
        shutil.copy(ROOT / f"demo/trials/trial-{number}.json", tmp_path / f"{number}.dat")
    (tmp_path / "notes.txt").write_text("nothing that is known")
    target = tmp_path / "out"
    code, out, _ = run(capsys, "import", "auto", tmp_path, "-o", target, "--with", STATED, "--json")
    told = json.loads(out)
    assert code == 0, out
    assert [item["done"]["exitCode"] for item in told["imports"]] == [0]
    assert len(list(target.glob("001-vllm-bench/evidence/run-*-trial-*.json"))) == 3
    assert {item["tool"] for item in told["files"]} == {"vllm bench serve, detailed", "not known"}


def test_what_is_missing_is_asked_for_by_its_option(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copy(ROOT / "demo/trials/trial-1.json", tmp_path / "a.json")
    code, out, _ = run(capsys, "import", "auto", tmp_path / "a.json", "-o", tmp_path / "out", "--with=--ignore-eos")
    assert code == 1
    assert "not imported" in out
    assert "--requested-output" in out
    assert not list((tmp_path / "out").iterdir())


def test_trials_of_different_runs_are_imported_one_by_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trial = json.loads((ROOT / "demo/trials/trial-1.json").read_bytes())
    (tmp_path / "1.json").write_text(json.dumps(trial))
    (tmp_path / "2.json").write_text(json.dumps(trial | {"model_id": "another"}))
    code, out, _ = run(capsys, "import", "auto", tmp_path, "-o", tmp_path / "out", "--with", STATED)
    assert code == 0, out
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["001-vllm-bench", "002-vllm-bench"]


def test_a_path_that_is_not_there_and_a_folder_in_the_way(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "import", "auto", tmp_path / "none")[0] == 2
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kept").write_text("x")
    code, _, err = run(capsys, "import", "auto", ROOT / "demo/trials", "-o", tmp_path / "out", "--with", STATED)
    assert code == 2
    assert "--output: folder not empty" in err
