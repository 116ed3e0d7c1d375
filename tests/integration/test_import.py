"""``moeplan import`` on the demonstration's recorded trials: what lands on disk, what is said, what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from moeplan.cli.main import main

DEMO = Path(__file__).resolve().parents[2] / "demo"
TRIALS = [DEMO / "trials" / f"trial-{number}.json" for number in (1, 2, 3)]
METRICS = [DEMO / "trials" / f"metrics-{name}.prom" for name in ("before", "after-1", "after-2", "after-3")]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with plan.json and checkpoint.json."""
    path = tmp_path_factory.mktemp("import")
    assert main(["checkpoint", "digest", str(DEMO / "tiny-moe"), "-o", str(path / "checkpoint.json")]) == 0
    assert main(["plan", "kimi-k3", "h200", "--devices", "16", "--output", str(path / "plan.json")]) == 0
    return path


def command(work: Path, *files: Path, out: Path, more: tuple[str, ...] = ()) -> list[str]:
    return [
        *("import", "vllm-bench", *map(str, files)),
        *("--plan", str(work / "plan.json"), "--checkpoint", str(work / "checkpoint.json")),
        *("--runtime-packages", str(DEMO / "runtime-packages.txt")),
        *("--requested-input", "128", "--requested-output", "64", "--ignore-eos", "--utc-offset", "+00:00"),
        *("-o", str(out), *more),
    ]


def error_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(capsys.readouterr().out)["error"]
    return made


def test_recorded_trials(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--warmup-requests", "16", "--concurrency", "4", "--metrics", *map(str, METRICS), "--json")
    assert main(command(work, *TRIALS, out=tmp_path / "out", more=more)) == 0
    told = json.loads(capsys.readouterr().out)
    assert [record["concurrencyPeak"] for record in told["records"]] == [4, 4, 4]
    assert {item["code"] for item in told["findings"]} == {"concurrency_claim_differs", "counters_agree"}
    for record, source in zip(told["records"], TRIALS, strict=True):
        document = json.loads(source.read_bytes())
        ttft = np.sort(np.rint(np.array(document["ttfts"]) * 1e9).astype(np.int64))
        gaps = np.sort(np.rint(np.concatenate([np.array(row) for row in document["itls"]]) * 1e9).astype(np.int64))
        assert record["ttftP95Ns"] == ttft[-(-95 * len(ttft) // 100) - 1]
        assert record["chunkGapP95Ns"] == gaps[-(-95 * len(gaps) // 100) - 1]
        payload = json.loads((tmp_path / "out" / record["path"]).read_bytes())["payload"]
        counters = payload["engineCounters"]
        assert (counters["requests"], counters["generationTokens"]) == (240 + 16, 15_360 + 1024)
        assert counters["promptTokens"] == document["total_input_tokens"] + 16 * 141
        attachment = (
            tmp_path / "out" / "attachments" / told["run"]["run"] / f"trial-{record['trial']}-chunk-gaps.parquet"
        )
        assert np.array_equal(np.sort(pq.read_table(attachment).column("gap_ns").to_numpy()), gaps)


def test_table_and_notes_go_apart(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(work, TRIALS[0], out=tmp_path / "out")) == 0
    shown = capsys.readouterr()
    assert "37.740 ms" in shown.out
    assert "37.758 ms" in shown.out
    assert "warning: counters_not_compared (trial 1)" in shown.err


def test_a_false_claim_exits_1_and_is_still_written(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(TRIALS[0].read_bytes()) | {"p95_ttft_ms": 20.0}
    (tmp_path / "t.json").write_text(json.dumps(document))
    assert main(command(work, tmp_path / "t.json", out=tmp_path / "out", more=("--json",))) == 1
    found = [item for item in json.loads(capsys.readouterr().out)["findings"] if item["severity"] == "error"]
    assert [(item["code"], item["where"]) for item in found] == [("claim_mismatch", "trial 1, p95_ttft_ms")]
    assert (tmp_path / "out" / "evidence").is_dir()


def test_arguments_image_and_commitment_reach_the_record(work: Path, tmp_path: Path) -> None:
    (tmp_path / "args").write_text("serve\n--dtype\nbfloat16\n")
    words = command(work, TRIALS[0], out=tmp_path / "out", more=("--arguments-file", str(tmp_path / "args")))
    at = words.index("--runtime-packages")
    words[at : at + 2] = ["--runtime-image", "registry.example/vllm@sha256:" + "a" * 64]
    assert main(words) == 0
    record = json.loads(next((tmp_path / "out" / "evidence").glob("*-trial-1.json")).read_bytes())
    assert record["deployment"]["arguments"] == ["serve", "--dtype", "bfloat16"]
    assert record["deployment"]["runtimes"] == [{"digest": "sha256:" + "a" * 64, "form": "oci_image", "role": "serve"}]
    enclosed = {item["role"]: item["path"] is not None for item in record["attachments"]}
    assert enclosed == {"requests": True, "chunk_gaps": True, "tool_output": False}


@pytest.mark.parametrize("line", ["--api-key", "--api-key=sk-1", "--hf_token sk-1", "--admin-api-key=sk-1"])
def test_arguments_with_a_key_are_refused(
    line: str, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "args").write_text(f"serve\n{line}\nsk-1\n")
    more = ("--arguments-file", str(tmp_path / "args"), "--json")
    assert main(command(work, TRIALS[0], out=tmp_path / "out", more=more)) == 2
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"]["code"] == "secret_argument"
    assert "sk-1" not in shown.out + shown.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (("--requested-input", "0"), "invalid_value"),
        (("--requested-output", "x"), "usage"),
        (("--concurrency", "0"), "invalid_value"),
        (("--enclose", "tool-output,prompts"), "invalid_value"),
        (("--utc-offset", "+2"), "invalid_offset"),
        (("--metrics", str(METRICS[0])), "metrics_count"),
        (("--metrics", str(METRICS[1]), str(METRICS[0])), "counter_reset"),
        (("--metrics", str(METRICS[0]), str(TRIALS[0])), "invalid_metrics"),
        (("--runtime-image", "vllm:latest"), "usage"),
        (("--tool-version", "0.32\x1b[0m"), "invalid_value"),
        (("--plan", str(TRIALS[0])), "not_an_integer"),
        (("--plan", "missing.json"), "file_read"),
    ],
)
def test_refusals_exit_2_and_leave_nothing(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: tuple[str, ...], code: str
) -> None:
    capsys.readouterr()
    assert main(command(work, TRIALS[0], out=tmp_path / "out", more=(*changed, "--json"))) == 2
    assert error_of(capsys)["code"] == code
    assert list(tmp_path.iterdir()) == []


def test_a_tag_is_no_image_digest(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = command(work, TRIALS[0], out=tmp_path / "out", more=("--json",))
    at = words.index("--runtime-packages")
    words[at : at + 2] = ["--runtime-image", "vllm:latest"]
    assert main(words) == 2
    assert error_of(capsys)["code"] == "invalid_digest"


def test_ignore_eos_must_be_stated(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = command(work, TRIALS[0], out=tmp_path / "out", more=("--json",))
    words.remove("--ignore-eos")
    assert main(words) == 2
    assert "--ignore-eos" in error_of(capsys)["message"]


def test_a_directory_in_use_is_left_alone(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("kept")
    assert main(command(work, TRIALS[0], out=tmp_path / "out", more=("--json",))) == 2
    assert error_of(capsys)["code"] == "target_exists"
    assert os.listdir(tmp_path / "out") == ["kept"]
    (tmp_path / "out" / "kept").unlink()
    assert main(command(work, TRIALS[0], out=tmp_path / "out")) == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["attachments", "evidence"]
    assert os.listdir(tmp_path) == ["out"]


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["import", "vllm-bench", "--help"])
    assert caught.value.code == 0
    assert "moeplan import vllm-bench trial-1.json" in capsys.readouterr().out
