"""Price, trace and timeline as commands: imported, packed, signed, verified and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from tests.unit.importers.test_restart_timeline import WHOLE, written

ROOT = Path(__file__).resolve().parents[2]
DEMO, DATA = ROOT / "demo", ROOT / "tests/data"
KEY = DATA / "published-test-key.pem"
PLAN = (
    *("plan", "tiny-moe", "cpu-host", "--registry", str(DEMO / "registry.json"), "--devices", "1"),
    *("--runtime", "vllm", "--runtime-packages", str(DEMO / "runtime-packages.txt")),
)
PRICE = ("--currency", "USD", "--per-accelerator-hour", "0.10", "--accelerators", "1", "--dated", "2026-11-30")
NOT_BEFORE_TODAY = "2099-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a signed bundle of the three records, and the auditor's policy."""
    work = tmp_path_factory.mktemp("last-gates")
    checkpoint, plan = str(work / "checkpoint.json"), str(work / "plan.json")
    timeline = work / "timeline.jsonl"
    timeline.write_bytes(written(WHOLE))
    assert main(["checkpoint", "digest", str(DEMO / "tiny-moe"), "-o", checkpoint]) == 0
    assert main([*PLAN, "--checkpoint", checkpoint, "--output", plan]) == 0
    stated = ["--plan", plan, "--checkpoint", checkpoint, "--runtime-packages", str(DEMO / "runtime-packages.txt")]
    trace = str(DATA / "torch-trace-vllm-cpu.json.gz")
    given: dict[str, list[str]] = {
        "price": ["price", *PRICE, "--source", "a test's own price"],
        "trace": ["torch-trace", trace, "--engine-start", "2026-12-01T00:52:00Z"],
        "restart": ["restart-timeline", str(timeline)],
    }
    for name, words in given.items():
        assert main(["import", *words, *stated, "-o", str(work / name)]) == 0
    made = work / "bundle"
    evidence = [word for name in given for word in ("--evidence", str(work / name))]
    registry = ["--registry", str(DEMO / "registry.json")]
    words = ["bundle", "create", str(made), "--plan", plan, "--checkpoint", checkpoint, *registry, *evidence]
    assert main(words) == 0
    assert main(["attest", str(made), "--key", str(KEY)]) == 0
    trusted = ["--trust-key", str(KEY.with_suffix(".pub.pem")), "--test-keys"]
    policy = work / "policy.json"
    words = ["policy", "init", *trusted, "--plan", plan, "--checkpoint", checkpoint, "--least-binding", "declared"]
    assert main([*words, "-o", str(policy)]) == 0
    return made, policy


def judged(bundle: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    made, policy = bundle
    capsys.readouterr()
    main(["verdict", str(made), "--policy", str(policy), "--at", NOT_BEFORE_TODAY, "--json"])
    verdict = json.loads(capsys.readouterr().out)
    return {rule["id"]: rule for gate in verdict["gates"] for rule in gate["criteria"]}


def test_the_records_verify(bundle: tuple[Path, Path]) -> None:
    made, policy = bundle
    assert main(["verify", str(made), "--policy", str(policy)]) == 0


def test_what_they_show_is_judged(bundle: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    rules = judged(bundle, capsys)
    seen = {id: (rules[id]["outcome"], rules[id]["observed"]) for id in rules if id.startswith("resilience.")}
    assert seen == {
        "resilience.failure_recorded": ("pass", 1),
        "resilience.restart": ("pass", 25),
        "resilience.interruption": ("pass", 31_000_000_000),
        "resilience.requests_lost": ("pass", 1),
    }
    assert (rules["routing.communication"]["outcome"], rules["routing.communication"]["observed"]) == ("pass", 13)
    assert (rules["routing.all_to_all"]["outcome"], rules["routing.all_to_all"]["observed"]) == ("pass", 0)
    assert rules["routing.routing_time"]["observed"] == 108
    assert (rules["economics.cost"]["outcome"], rules["economics.cost"]["reason"]) == (
        "inconclusive",
        "missing_evidence",
    )


def test_a_changed_row_is_a_fault_of_the_bundle(
    bundle: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    made, policy = bundle
    copy = tmp_path / "bundle"
    shutil.copytree(made, copy)
    table = next(copy.glob("attachments/failure-timeline-*/series.parquet"))
    table.write_bytes(table.read_bytes()[:-1] + b"\0")
    assert main(["verify", str(copy), "--policy", str(policy), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"]
