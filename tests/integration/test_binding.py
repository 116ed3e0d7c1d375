"""The strongest binding this release can show, made with the commands: hashed on the serving node before the start."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from moeplan.units import format_instant

REPOSITORY = Path(__file__).resolve().parents[2]
TRIALS = REPOSITORY / "demo" / "trials"
KEY = REPOSITORY / "tests" / "data" / "published-test-key.pem"
PACKAGES = str(REPOSITORY / "demo" / "runtime-packages.txt")


def shifted(folder: Path, seconds: int) -> tuple[list[str], list[str]]:
    """Return copies of the recorded trials and scrapes whose clock times all lie ``seconds`` later."""
    trials, metrics = [], []
    for number in (1, 2, 3):
        value = json.loads((TRIALS / f"trial-{number}.json").read_bytes())
        ended = datetime.strptime(value["date"], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp() + seconds
        value["date"] = datetime.fromtimestamp(ended, UTC).strftime("%Y%m%d-%H%M%S")
        trials.append(str(folder / f"trial-{number}.json"))
        Path(trials[-1]).write_text(json.dumps(value))
    for name in ("before", "after-1", "after-2", "after-3"):
        text = (TRIALS / f"metrics-{name}.prom").read_text()
        later = re.sub(
            r"(?m)^process_start_time_seconds .*$",
            lambda line: f"process_start_time_seconds {float(line[0].split()[1]) + seconds}",
            text,
        )
        metrics.append(str(folder / f"{name}.prom"))
        Path(metrics[-1]).write_text(later)
    return trials, metrics


def judged(
    demo: Path,
    folder: Path,
    *,
    hashed_before: bool,
    node: str = "node-1",
    plan: Path | None = None,
    serving: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the verdict over the recorded trials, moved to after or left before a hashing that happens now."""
    planned = str(plan or demo / "plan.json")
    record = str(folder / "hashed.json")
    words = ["checkpoint", "digest", str(REPOSITORY / "demo" / "tiny-moe"), "--record", record]
    words += ["--plan", planned, "--node", node, "--serving-node", "node-1", *serving]
    assert main([*words, "--runtime-packages", PACKAGES]) == 0
    recorded_start = 1796059734
    shift = int(time.time()) + 3600 - recorded_start if hashed_before else 0
    trials, metrics = shifted(folder, shift)
    words = ["import", "vllm-bench", *trials, "--plan", planned, *serving]
    words += ["--checkpoint", str(demo / "checkpoint.json"), "--runtime-packages", PACKAGES]
    words += ["--serving-node", "node-1", "--requested-input", "128", "--requested-output", "64"]
    words += ["--concurrency", "4", "--warmup-requests", "16", "--ignore-eos", "--utc-offset", "+00:00"]
    assert main([*words, "--metrics", *metrics, "-o", str(folder / "imported")]) == 0
    bundle = str(folder / "bundle")
    words = ["bundle", "create", bundle, "--plan", planned, "--registry"]
    words += [str(REPOSITORY / "demo" / "registry.json"), "--checkpoint", str(demo / "checkpoint.json")]
    assert main([*words, "--evidence", str(folder / "imported"), record]) == 0
    assert main(["attest", bundle, "--key", str(KEY)]) == 0
    policy, verdict = str(folder / "policy.json"), folder / "verdict.json"
    words = ["policy", "init", "--trust-key", str(KEY.with_suffix(".pub.pem")), "--test-keys"]
    assert main([*words, "--plan", planned, "-o", policy]) == 0
    at = format_instant(recorded_start + shift + 7200) if hashed_before else format_instant(int(time.time()) + 60)
    main(["verdict", bundle, "--policy", policy, "--at", at, "-o", str(verdict)])
    told: dict[str, Any] = json.loads(verdict.read_bytes())
    return told


def criterion(verdict: dict[str, Any], id: str) -> dict[str, Any]:
    return next(item for gate in verdict["gates"] for item in gate["criteria"] if item["id"] == id)


def test_hashed_before_the_start_binds_strongly(demo: Path, tmp_path: Path) -> None:
    verdict = judged(demo, tmp_path, hashed_before=True)
    lead = criterion(verdict, "artifact.digest_before_execution")
    assert (lead["outcome"], lead["binding"]) == ("pass", "hashed")
    assert 3590 <= lead["observed"] <= 3600
    assert verdict["gates"][0]["outcome"] == "pass"
    ttft = criterion(verdict, "sla.ttft_p95")
    assert (ttft["outcome"], ttft["binding"], ttft["leastBinding"]) == ("pass", "hashed", "hashed")


def test_hashed_after_the_start_fails_and_binds_weakly(demo: Path, tmp_path: Path) -> None:
    verdict = judged(demo, tmp_path, hashed_before=False)
    lead = criterion(verdict, "artifact.digest_before_execution")
    assert lead["outcome"] == "fail"
    assert lead["observed"] < 0
    assert verdict["readiness"] == "not_ready"
    ttft = criterion(verdict, "sla.ttft_p95")
    assert (ttft["outcome"], ttft["reason"], ttft["binding"]) == ("inconclusive", "binding_too_weak", "revision")


def test_another_node_hashed_shows_nothing(demo: Path, tmp_path: Path) -> None:
    verdict = judged(demo, tmp_path, hashed_before=True, node="node-2")
    lead = criterion(verdict, "artifact.digest_before_execution")
    assert (lead["outcome"], lead["reason"]) == ("inconclusive", "node_not_hashed")


DRAFT = "sha256:" + "d" * 64


@pytest.mark.parametrize(
    ("serving", "outcome"),
    [
        (("--draft", DRAFT, "--manifest-set", "sha256:" + "e" * 64), "pass"),
        ((), "inconclusive"),
        (("--draft", "sha256:" + "c" * 64), "inconclusive"),
    ],
)
def test_evidence_is_bound_to_the_plans_draft(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], serving: tuple[str, ...], outcome: str
) -> None:
    command = json.loads((demo / "plan.json").read_bytes())["reproducibility"]["cli"].split()[1:]
    command[command.index("checkpoint.json")] = str(demo / "checkpoint.json")
    plan = tmp_path / "plan.json"
    registry = str(REPOSITORY / "demo" / "registry.json")
    assert main([*command, "--registry", registry, "--draft", DRAFT, "-o", str(plan)]) == 0
    verdict = judged(demo, tmp_path, hashed_before=True, plan=plan, serving=serving)
    assert criterion(verdict, "sla.ttft_p95")["outcome"] == outcome


def test_a_draft_that_is_no_digest_is_named(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["checkpoint", "digest", str(REPOSITORY / "demo" / "tiny-moe"), "--record", str(tmp_path / "r.json")]
    words += ["--plan", str(demo / "plan.json"), "--runtime-packages", PACKAGES, "--node", "a", "--json"]
    for option in ("--draft", "--manifest-set"):
        capsys.readouterr()
        assert main([*words, option, "sha256:short"]) == 2
        assert json.loads(capsys.readouterr().out)["error"]["path"] == option


@pytest.mark.parametrize("option", ["--serving-node", "--node"])
def test_a_node_name_that_is_none_is_named_by_its_option(
    option: str, demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["checkpoint", "digest", str(REPOSITORY / "demo" / "tiny-moe"), "--record", str(tmp_path / "r.json")]
    nodes = {"--node": "node-1", "--serving-node": "node-1"} | {option: "Node 1"}
    words += ["--plan", str(demo / "plan.json"), "--runtime-packages", PACKAGES]
    words += [word for pair in nodes.items() for word in pair]
    assert main([*words, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["path"] == option
    assert not (tmp_path / "r.json").exists()
