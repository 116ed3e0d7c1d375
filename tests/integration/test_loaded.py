"""Binding ``loaded`` through the commands: what a real engine's probe hashed, against the files it loaded.

The probe's record is of another start than the recorded trials; the test moves both to one start in the future, so that
the hashing that happens now lies before it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from moeplan.units import format_instant
from tests.integration.test_binding import KEY, PACKAGES, REPOSITORY, criterion, shifted

PROBE = REPOSITORY / "tests" / "data" / "probe-vllm-cpu" / "weights.jsonl"
PROBE_STARTED = 1_796_087_824
TRIALS_STARTED = 1_796_059_734
ONE = "model.layers.2.mlp.experts.7.up_proj.weight"


def probe_record(folder: Path, seconds: int, *edits: tuple[str, str], counting: bool = False) -> None:
    """Copy the probe's record with its clocks ``seconds`` later, as of a start that counts nothing."""
    folder.mkdir()
    text = re.sub(
        r'"(wallNs|startedWallNs)":"(\d+)"',
        lambda found: f'"{found[1]}":"{int(found[2]) + seconds * 10**9}"',
        PROBE.read_text(),
    )
    text = text.replace('"count":true', f'"count":{str(counting).lower()}')
    for pattern, to in edits:
        text, changed = re.subn(pattern, to, text)
        assert changed == 1
    (folder / "weights.jsonl").write_text(text)


def judged(
    demo: Path, folder: Path, *edits: tuple[str, str], tensors: bool = True, later: int = 0, counting: bool = False
) -> dict[str, Any]:
    """Hash, import trials and probe, pack, sign, and judge under a policy that asks for ``loaded`` where trials are."""
    plan, checkpoint = str(demo / "plan.json"), str(demo / "checkpoint.json")
    common = ["--plan", plan, "--runtime-packages", PACKAGES, "--serving-node", "node-1"]
    hashed = str(folder / ("hashed" if tensors else "hashed.json"))
    words = ["checkpoint", "digest", str(REPOSITORY / "demo" / "tiny-moe"), "--record", hashed, "--node", "node-1"]
    assert main([*words, *common, *(["--tensors"] if tensors else [])]) == 0
    start = int(time.time()) + 3600
    trials, metrics = shifted(folder, start - TRIALS_STARTED)
    common += ["--checkpoint", checkpoint]
    words = ["import", "vllm-bench", *trials, *common, "--requested-input", "128", "--requested-output", "64"]
    words += ["--concurrency", "4", "--warmup-requests", "16", "--ignore-eos", "--utc-offset", "+00:00"]
    assert main([*words, "--metrics", *metrics, "-o", str(folder / "imported")]) == 0
    probe_record(folder / "probe", start + later - PROBE_STARTED, *edits, counting=counting)
    assert main(["import", "probe", str(folder / "probe"), *common, "-o", str(folder / "loaded")]) == 0
    return verdict(demo, folder, [folder / "imported", folder / "loaded", Path(hashed)], start + 7200)


def verdict(demo: Path, folder: Path, evidence: Sequence[Path], at: int) -> dict[str, Any]:
    bundle, policy, out = str(folder / "bundle"), str(folder / "policy.json"), folder / "verdict.json"
    words = ["bundle", "create", bundle, "--plan", str(demo / "plan.json"), "--checkpoint"]
    words += [str(demo / "checkpoint.json"), "--registry", str(REPOSITORY / "demo" / "registry.json")]
    assert main([*words, "--evidence", *map(str, evidence)]) == 0
    assert main(["attest", bundle, "--key", str(KEY)]) == 0
    words = ["policy", "init", "--trust-key", str(KEY.with_suffix(".pub.pem")), "--test-keys"]
    assert main([*words, "--plan", str(demo / "plan.json"), "-o", policy]) == 0
    held = json.loads(Path(policy).read_bytes())
    held["leastBinding"] = [{"gate": "workload_sla", "binding": "loaded"}]
    Path(policy).write_text(json.dumps(held))
    main(["verdict", bundle, "--policy", policy, "--at", format_instant(at), "-o", str(out)])
    told: dict[str, Any] = json.loads(out.read_bytes())
    return told


def outcome(told: dict[str, Any], id: str) -> tuple[str, str | None, str | None]:
    found = criterion(told, id)
    return found["outcome"], found["reason"], found["binding"]


def test_every_tensor_as_the_files_hold_it(demo: Path, tmp_path: Path) -> None:
    told = judged(demo, tmp_path)
    assert outcome(told, "sla.ttft_p95") == ("pass", None, "loaded")
    assert outcome(told, "artifact.digest_before_execution") == ("pass", None, "loaded")
    assert outcome(told, "artifact.files_digested")[:2] == ("pass", None)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"tensors": False}, "binding_too_weak"), ({"later": 1}, "binding_too_weak"), ({"counting": True}, "counting_on")],
    ids=["files without tensors", "another start", "counting"],
)
def test_what_does_not_show_it(demo: Path, tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    told = judged(demo, tmp_path, **options)
    assert outcome(told, "sla.ttft_p95")[:2] == ("inconclusive", reason)
    assert outcome(told, "artifact.files_digested")[:2] == ("pass", None)
    assert told["gates"][0]["outcome"] == "pass"


def test_one_tensor_of_other_bytes_fails_the_artifact(demo: Path, tmp_path: Path) -> None:
    line = next(line for line in PROBE.read_text().splitlines() if f'"{ONE}"' in line)
    digest = json.loads(line)["sha256"]
    told = judged(demo, tmp_path, (digest, digest[::-1]))
    assert outcome(told, "artifact.files_digested")[:2] == ("fail", "loaded_bytes_differ")
    assert told["gates"][0]["outcome"] == "fail"
    assert told["readiness"] == "not_ready"
    assert outcome(told, "sla.ttft_p95") == ("inconclusive", "binding_too_weak", "hashed")
