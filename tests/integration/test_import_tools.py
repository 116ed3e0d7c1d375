"""``moeplan import`` of the load tools beside vllm bench: what lands on disk is a bundle's evidence as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from moeplan.model.evidence import EvidenceRecord, ReportedSummary, ServingTrial
from moeplan.model.run_manifest import RunManifest
from moeplan.wire.documents import load_document

DEMO = Path(__file__).resolve().parents[2] / "demo"
INTERVAL = ("--started", "2026-11-30T17:00:00Z", "--ended", "2026-11-30T17:10:00Z")
ASKED = ("--requested-input", "8", "--requested-output", "3", "--ignore-eos")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with plan.json and checkpoint.json."""
    path = tmp_path_factory.mktemp("import-tools")
    assert main(["checkpoint", "digest", str(DEMO / "tiny-moe"), "-o", str(path / "checkpoint.json")]) == 0
    assert main(["plan", "kimi-k3", "h200", "--devices", "16", "--output", str(path / "plan.json")]) == 0
    return path


def imported(work: Path, tool: str, file: Path, out: Path, *more: str) -> int:
    return main(
        [
            *("import", tool, str(file), "--plan", str(work / "plan.json")),
            *("--checkpoint", str(work / "checkpoint.json")),
            *("--runtime-packages", str(DEMO / "runtime-packages.txt"), "-o", str(out), *more),
        ]
    )


def sglang_line(ttft: float) -> str:
    run: dict[str, Any] = {
        "backend": "sglang",
        "random_range_ratio": 1.0,
        "total_output_tokens_retokenized": 6,
        "duration": 2.0,
        "input_lens": [8, 8],
        "output_lens": [3, 3],
        "ttfts": [ttft, 0.2],
        "itls": [[0.01, 0.02], [0.01, 0.02]],
        "errors": ["", ""],
    }
    return json.dumps(run) + "\n"


def test_two_runs_of_one_file_are_two_trials_that_share_its_copy(work: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "bench.jsonl", tmp_path / "out"
    file.write_text(sglang_line(0.1) + sglang_line(0.3))
    assert imported(work, "sglang-bench", file, out, *INTERVAL, *ASKED, "--enclose", "tool-output") == 0
    (manifest,) = [path for path in (out / "evidence").glob("run-*.json") if "-trial-" not in path.name]
    assert load_document(manifest.read_bytes(), RunManifest).planned_trials == 2
    records = [load_document(path.read_bytes(), EvidenceRecord) for path in sorted(out.glob("evidence/*-trial-*.json"))]
    copies = {part.path for record in records for part in record.attachments if part.role == "tool_output"}
    assert len(copies) == 1
    (copy,) = copies
    assert copy is not None
    assert (out / copy).read_bytes() == file.read_bytes()
    payloads = [record.payload for record in records]
    assert all(isinstance(payload, ServingTrial) for payload in payloads)


def test_a_file_without_a_clock_needs_its_interval(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.jsonl"
    file.write_text(sglang_line(0.1))
    late = ("--started", "yesterday", "--ended", "2026-11-30T17:10:00Z")
    assert imported(work, "sglang-bench", file, tmp_path / "out", *late, *ASKED) == 2
    assert "--started" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_figures_without_raw_data_become_claims(work: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "agg.json", tmp_path / "out"
    file.write_text(json.dumps({"infmax_model_prefix": "k", "conc": 16, "mean_ttft": 0.25}))
    assert imported(work, "reported", file, out, *INTERVAL) == 0
    (path,) = (out / "evidence").iterdir()
    record = load_document(path.read_bytes(), EvidenceRecord)
    assert isinstance(record.payload, ReportedSummary)
    assert {claim.name: claim.value for claim in record.payload.claims} == {"conc": "16", "mean_ttft": "0.25"}
