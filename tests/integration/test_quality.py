"""Quality as commands: planned, imported from a real harness's files, packed, signed, verified and judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeplan.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DEMO, KEY = ROOT / "demo", ROOT / "tests/data/published-test-key.pem"
HARNESS = ROOT.parent / "shared/samples/made/lm-eval-0.4.13"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not HARNESS.is_dir(), reason="the shared samples do not lie beside the repository"),
]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        # The harness reports 3 of 24 right. By hand: 1.645·√(2 · (4/26)(22/26)/26) = 0.1646.
        ("3/24:1647", ("pass", 0, None)),
        ("3/24:1645", ("inconclusive", 0, "too_few_documents")),
        ("3/24:100", ("inconclusive", 0, "quality_not_shown")),
        ("12/24:3749", ("fail", 3750, "limit_not_met")),
        ("12/24:3750", ("inconclusive", 3750, "quality_not_shown")),
        ("12/96:1000", ("inconclusive", 0, "too_few_documents")),  # of a reference's 96 documents 24 were answered
    ],
)
def test_a_harness_s_answers_against_a_reference(
    reference: str, expected: tuple[str, int, str | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint, plan, packages = tmp_path / "checkpoint.json", tmp_path / "plan.json", DEMO / "runtime-packages.txt"
    registry = ["--registry", str(DEMO / "registry.json")]
    assert main(["checkpoint", "digest", str(DEMO / "tiny-moe"), "-o", str(checkpoint)]) == 0
    stated = ["--checkpoint", str(checkpoint), "--runtime-packages", str(packages)]
    words = ["plan", "tiny-moe", "cpu-host", "--devices", "1", "--runtime", "vllm", *registry, *stated]
    assert main([*words, "--quality", f"toyadd:acc:{reference}", "--output", str(plan)]) == 0
    files = [str(HARNESS / "results_toyadd.json"), str(HARNESS / "samples_toyadd.jsonl")]
    assert main(["import", "lm-eval", *files, "--plan", str(plan), *stated, "-o", str(tmp_path / "quality")]) == 0
    bundle, policy = str(tmp_path / "bundle"), str(tmp_path / "policy.json")
    words = ["bundle", "create", bundle, "--plan", str(plan), "--checkpoint", str(checkpoint), *registry]
    assert main([*words, "--evidence", str(tmp_path / "quality")]) == 0
    assert main(["attest", bundle, "--key", str(KEY)]) == 0
    words = ["policy", "init", "--trust-key", str(KEY.with_suffix(".pub.pem")), "--test-keys", "--plan", str(plan)]
    assert main([*words, "--checkpoint", str(checkpoint), "--least-binding", "declared", "-o", policy]) == 0
    capsys.readouterr()
    main(["verdict", bundle, "--policy", policy, "--at", "2099-01-01T00:00:00Z", "--json"])
    rules = [rule for gate in json.loads(capsys.readouterr().out)["gates"] for rule in gate["criteria"]]
    found = next(rule for rule in rules if rule["id"] == "sla.quality.toyadd.acc")
    assert (found["outcome"], found["observed"], found["reason"]) == expected
