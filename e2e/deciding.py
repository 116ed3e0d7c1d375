"""After everything is collected: bundle, signatures, policy, verdict, audit, and what must hold of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from e2e.commands import ROOT, moeplan
from e2e.judging import complaints
from e2e.processes import StepFailedError
from e2e.work import Work

__all__ = ["decide"]

_KEY = ROOT / "tests" / "data" / "published-test-key.pem"
_PUBLIC = ROOT / "tests" / "data" / "published-test-key.pub.pem"
_ANY_VERDICT = (0, 1, 3)


def decide(work: Work, evidence: Sequence[Path], *, strict: bool) -> None:
    """Pack and sign the evidence, judge it, and audit what was packed.

    Args:
        work: the run; ``bundle/``, ``policy.json`` and ``verdict.json`` are written into it.
        evidence: directories and records that were collected.
        strict: whether noise of the machine is no excuse for a criterion that is not judged.

    Raises:
        StepFailedError: a command fails, the verdict is not that of a whole run, or it is not reproduced.
    """
    bundle, archive = work.path("bundle"), work.path("bundle.tar")
    _pack(work, bundle, evidence)
    policy, verdict = ("--policy", work.path("policy.json")), work.path("verdict.json")
    moeplan("verify", bundle, *policy)
    moeplan("verdict", bundle, *policy, "-o", verdict, expect=_ANY_VERDICT, show=100)
    found = json.loads(verdict.read_bytes())
    moeplan("attest", bundle, "--verdict", verdict, "--key", _KEY)
    moeplan("attest", bundle, "--key", _KEY)
    moeplan("bundle", "pack", bundle, "-o", archive, show=4)
    at = ("--at", found["at"])
    moeplan("audit", archive, *policy, *at, expect=_ANY_VERDICT, show=20)
    told = json.loads(moeplan("audit", archive, *policy, *at, "--json", expect=_ANY_VERDICT, show=0))
    outcomes = [item["outcome"] for item in told["reproduced"]]
    wrong = complaints(found, strict=strict)
    if not told["ok"] or outcomes != ["reproduced"]:
        wrong.append(f"the signed verdict was not reproduced: {outcomes}")
    if wrong:
        raise StepFailedError("the path was walked to its end, and this does not hold:\n  " + "\n  ".join(wrong))


def _pack(work: Work, bundle: Path, evidence: Sequence[Path]) -> None:
    moeplan(
        "bundle", "create", bundle,
        "--plan", work.path("plan.json"),
        "--checkpoint", work.path("checkpoint.json"),
        "--registry", work.path("registry.json"),
        "--evidence", *evidence,
        show=8,
    )  # fmt: skip
    moeplan("attest", bundle, "--key", _KEY)
    moeplan(
        "policy", "init", "--trust-key", _PUBLIC, "--test-keys",
        "--plan", work.path("plan.json"),
        "--checkpoint", work.path("checkpoint.json"),
        "-o", work.path("policy.json"),
    )  # fmt: skip
