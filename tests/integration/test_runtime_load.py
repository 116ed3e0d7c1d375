"""``runtime_load`` from commands alone: the recorded trials' own log, an environment, a bundle, a verdict."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "demo"
LOG = ROOT.parent / "shared" / "samples" / "made" / "trials" / "serve.log"
KEY, PUBLIC = ROOT / "tests/data/published-test-key.pem", ROOT / "tests/data/published-test-key.pub.pem"
STATED = (
    *("--requested-input", "128", "--requested-output", "64", "--concurrency", "4", "--warmup-requests", "16"),
    *("--ignore-eos", "--utc-offset", "+00:00"),
)
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not LOG.is_file(), reason="the shared samples are not here"),
]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with plan, checkpoint, trials, log and environment."""
    path = tmp_path_factory.mktemp("runtime-load")
    checkpoint, plan = path / "checkpoint.json", path / "plan.json"
    registry, packages = str(DEMO / "registry.json"), str(DEMO / "runtime-packages.txt")
    assert main(["checkpoint", "digest", str(DEMO / "tiny-moe"), "-o", str(checkpoint)]) == 0
    load = ("--input-tokens", "128", "--output-tokens", "64", "--concurrency", "4", "--devices", "1")
    decided = ("--tensor-parallel-size", "1", "--precision", "bfloat16", "--ready-within", "120")
    made = ["plan", "tiny-moe", "cpu-host", *load, *decided, "--registry", registry, "--checkpoint", str(checkpoint)]
    assert main([*made, "--runtime-packages", packages, "--output", str(plan)]) == 0
    common = [*("--plan", str(plan), "--checkpoint", str(checkpoint), "--runtime-packages", packages)]
    common += ["--serving-node", "node-a"]
    trials = [str(DEMO / "trials" / f"trial-{number}.json") for number in (1, 2, 3)]
    metrics = [str(DEMO / "trials" / f"metrics-{name}.prom") for name in ("before", "after-1", "after-2", "after-3")]
    out = ("-o", str(path / "trials"))
    assert main(["import", "vllm-bench", *trials, *common, *STATED, "--metrics", *metrics, *out]) == 0
    dated = ("--year", "2026", "--utc-offset", "+00:00")
    assert main(["import", "vllm-log", str(LOG), *common, *dated, "--keep-logs", "-o", str(path / "log")]) == 0
    process = ("--pid", str(os.getpid()), "--node", "node-a")
    assert main(["collect", "environment", *process, *common, "-o", str(path / "environment")]) == 0
    return path


def judged(work: Path, name: str, parts: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the criteria of the gate by id, from a signed bundle of these parts."""
    bundle, policy = work / name, work / f"{name}-policy.json"
    evidence = [word for part in parts for word in ("--evidence", str(work / part))]
    plan, checkpoint = ("--plan", str(work / "plan.json")), ("--checkpoint", str(work / "checkpoint.json"))
    registry = ("--registry", str(DEMO / "registry.json"))
    assert main(["bundle", "create", str(bundle), *plan, *checkpoint, *registry, *evidence]) == 0
    assert main(["attest", str(bundle), "--key", str(KEY)]) == 0
    trust = ("--trust-key", str(PUBLIC), "--test-keys", "--least-binding", "declared", "-o", str(policy))
    assert main(["policy", "init", *trust, *plan, *checkpoint]) == 0
    capsys.readouterr()
    at = ("--at", "2100-01-01T00:00:00Z")
    assert main(["verdict", str(bundle), "--policy", str(policy), *at, "--json"]) in (1, 3)
    gates = json.loads(capsys.readouterr().out)["gates"]
    (gate,) = [gate for gate in gates if gate["id"] == "runtime_load"]
    return {criterion["id"]: criterion for criterion in gate["criteria"]}


def test_the_recorded_log_covers_the_recorded_trials(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = judged(work, "whole", ("trials", "log", "environment"), capsys)
    outcomes = {id: (one["outcome"], one["observed"]) for id, one in found.items()}
    assert outcomes == {
        "load.ready": ("pass", "ready"),
        "load.ready_time": ("pass", outcomes["load.ready_time"][1]),
        "load.fatal_signatures": ("pass", 0),
        "load.smoke": ("inconclusive", None),
        "load.environment": ("pass", 0),
        "load.deployment": ("pass", 0),
    }
    # By hand: the first dated line of the log to the last dated line before "Application startup complete."
    lines = LOG.read_text().splitlines()
    ready = next(number for number, line in enumerate(lines) if "Application startup complete" in line)
    clocks = [
        line.split(" [")[0].split()[-1] for line in lines[:ready] if line.startswith("(") and " INFO " in line[:40]
    ]
    first, last = (
        sum(int(part) * 60**place for place, part in enumerate(reversed(text.split(":"))))
        for text in (clocks[0], clocks[-1])
    )
    assert outcomes["load.ready_time"][1] == last - first + 1


def test_without_the_log_nothing_of_it_passes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = judged(work, "without-log", ("trials", "environment"), capsys)
    assert {id for id, one in found.items() if one["outcome"] == "pass"} == set()
    assert found["load.environment"]["reason"] == "environment_incomplete"
    assert found["load.deployment"]["reason"] == "deployment_not_observed"


def test_a_log_cut_before_the_last_trial_shows_no_absence(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = LOG.read_text().splitlines(keepends=True)
    cut = tmp_path / "cut.log"
    cut.write_text("".join(lines[: len(lines) // 3]))
    common = [*("--plan", str(work / "plan.json"), "--checkpoint", str(work / "checkpoint.json"))]
    common += ["--runtime-packages", str(DEMO / "runtime-packages.txt"), "--serving-node", "node-a"]
    dated = ("--year", "2026", "--utc-offset", "+00:00")
    assert main(["import", "vllm-log", str(cut), *common, *dated, "-o", str(work / "cut-log")]) == 0
    found = judged(work, "cut", ("trials", "cut-log", "environment"), capsys)
    assert (found["load.fatal_signatures"]["outcome"], found["load.fatal_signatures"]["reason"]) == (
        "inconclusive",
        "log_ends_early",
    )
