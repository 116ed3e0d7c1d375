"""``moeplan import auto`` from files to records."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import IO

import pytest

from moeplan.cli.main import main
from moeplan.importers.recognise import Recognised, recognise

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "evidence/tiny-moe-cpu/bundle"
STATED = (
    f"--plan {BUNDLE / 'plan.json'} --checkpoint {BUNDLE / 'checkpoint.json'} "
    f"--runtime-packages {ROOT / 'demo/runtime-packages.txt'} --requested-input 128 --requested-output 64 --ignore-eos "
    "--utc-offset +00:00 --concurrency 4 --warmup-requests 16 --taken 2026-11-30T17:30:00Z"
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


def test_pages_of_counters_go_around_the_trials_in_the_order_of_what_they_count(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The pages' names say nothing: the last of them is the first that was taken."""
    for number in (1, 2, 3):
        shutil.copy(ROOT / f"demo/trials/trial-{number}.json", tmp_path / f"{number}.json")
        shutil.copy(ROOT / f"demo/trials/metrics-after-{number}.prom", tmp_path / f"page-{4 - number}")
    shutil.copy(ROOT / "demo/trials/metrics-before.prom", tmp_path / "page-9")
    target = tmp_path / "out"
    code, out, err = run(capsys, "import", "auto", tmp_path, "-o", target, "--with", STATED, "--json")
    pages = " ".join(str(tmp_path / f"page-{number}") for number in (9, 3, 2, 1))
    (only,) = json.loads(out)["imports"]
    assert code == 0
    assert only["command"].endswith(f"--metrics {pages}")
    assert err.count("counters_agree") == 3
    (tmp_path / "page-1").unlink()
    code, out, _ = run(capsys, "import", "auto", tmp_path / "page-9", tmp_path / "1.json", "--json")
    assert "--metrics" not in out


def test_trials_come_in_the_order_of_their_numbers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for number in (10, 2, 1):
        shutil.copy(ROOT / "demo/trials/trial-1.json", tmp_path / f"trial-{number}.json")
    _, out, _ = run(capsys, "import", "auto", tmp_path, "--json")
    (only,) = json.loads(out)["imports"]
    assert [Path(word).stem for word in only["command"].split()[3:]] == ["trial-1", "trial-2", "trial-10"]


def test_odd_files_and_names_stop_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as stream:
        stream.truncate(1 << 30)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(100 << 20)))
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / os.fsdecode(b"na\xffme.json")).write_bytes((ROOT / "demo/trials/trial-1.json").read_bytes())
    os.mkfifo(tmp_path / "pipe")
    code, out, _ = run(capsys, "import", "auto", tmp_path, "--json")
    told = {Path(item["path"]).name: item["tool"] for item in json.loads(out)["files"]}
    assert code == 0
    assert told == {"sparse": "not known", "bomb.gz": "not known", "na\\udcffme.json": "vllm bench serve, detailed"}


def test_a_file_below_a_folder_that_cannot_be_read_is_named_and_one_given_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shut").write_bytes(b"x")
    (tmp_path / "open").write_bytes(b"x")

    def refuse(stream: IO[bytes]) -> Recognised:
        if stream.name.endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return recognise(stream)

    monkeypatch.setattr("moeplan.workflows.import_auto.recognise", refuse)
    code, out, _ = run(capsys, "import", "auto", tmp_path, "--json")
    assert code == 0
    assert [item["tool"] for item in json.loads(out)["files"]] == ["not known", "not read"]
    code, _, err = run(capsys, "import", "auto", tmp_path / "shut")
    assert code == 2
    assert "Permission denied" in err


def test_what_is_stated_is_read_as_a_shell_reads_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ROOT / "demo/trials/trial-1.json"
    code, _, err = run(capsys, "import", "auto", given, "-o", tmp_path / "out", "--with=--plan 'x")
    assert code == 2
    assert "--with" in err
    pages = [ROOT / f"demo/trials/metrics-{name}.prom" for name in ("before", "after-1")]
    stated = f"{STATED} --metrics {pages[0]} {pages[1]}"
    code, _, err = run(capsys, "import", "auto", given, "-o", tmp_path / "out", "--with", stated)
    assert code == 0
    assert "counters_agree" in err
