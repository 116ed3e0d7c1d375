"""The main job, end to end, on a recorded run: plan, digest, import, pack, sign, verify, judge, audit.

Every line that begins with ``$`` is a command anybody can type. Started by ``make demo``.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO = Path("demo")
KEY = Path("tests/data/published-test-key.pem")
PUBLIC = Path("tests/data/published-test-key.pub.pem")
ROOT_DIGEST = "sha256:775fbd85ccb49e572123915beeeb0e3ebe555b51cfa38c59f5461c63f5de2661"
AT = "2026-11-30T18:00:00Z"
"""Instant of judgement: fixed, so that the verdict's bytes are the same on every machine."""

LOAD = ["--devices", "1", "--runtime", "vllm", "--input-tokens", "128", "--output-tokens", "64", "--concurrency", "4"]
TARGETS = ["--target-ttft-ms", "200", "--target-inter-token-ms", "50"]


def moeplan(*words: str | Path, expect: int, show: int = 100) -> str:
    """Run one moeplan command from the project's root, show it and its output, and insist on its exit code."""
    argv = [str(word) for word in words]
    print(f"\n$ moeplan {shlex.join(argv)}", flush=True)
    streams = subprocess.STDOUT if show else subprocess.PIPE
    done = subprocess.run(
        [sys.executable, "-m", "moeplan.cli.main", *argv],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=streams,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    for line in lines[:show]:
        print("  " + (line if len(line) <= 170 else line[:167] + "..."))
    if len(lines) > show:
        print(f"  ... {len(lines) - show} more lines")
    print(f"  [exit {done.returncode}]", flush=True)
    if done.returncode != expect:
        sys.exit(f"demo: expected exit {expect}, got {done.returncode}\n{done.stderr or ''}")
    return done.stdout


def plans() -> None:
    """Show what arithmetic alone says of Kimi K3."""
    moeplan("plan", "kimi-k3", "h200", "--devices", "8", expect=0)
    moeplan("plan", "kimi-k3", "h200", "--devices", "16", expect=0, show=12)
    moeplan("plan", "kimi-k3", "mi355x", "--devices", "8", expect=0, show=12)


def make_bundle(work: Path) -> Path:
    """Digest the checkpoint, plan for it, import the recorded trials, pack and sign."""
    checkpoint, plan, bundle = work / "checkpoint.json", work / "plan.json", work / "bundle"
    moeplan(
        "checkpoint",
        "digest",
        DEMO / "tiny-moe",
        "--repository",
        "demo/tiny-moe",
        "--revision",
        ROOT_DIGEST,
        "-o",
        checkpoint,
        expect=0,
    )
    packages = DEMO / "runtime-packages.txt"
    moeplan(
        "plan",
        "tiny-moe",
        "cpu-host",
        *LOAD,
        *TARGETS,
        "--registry",
        DEMO / "registry.json",
        "--checkpoint",
        checkpoint,
        "--runtime-packages",
        packages,
        "--output",
        plan,
        expect=0,
        show=12,
    )
    trials = [DEMO / "trials" / f"trial-{number}.json" for number in (1, 2, 3)]
    metrics = [DEMO / "trials" / f"metrics-{name}.prom" for name in ("before", "after-1", "after-2", "after-3")]
    moeplan(
        "import",
        "vllm-bench",
        *trials,
        "--plan",
        plan,
        "--checkpoint",
        checkpoint,
        "--runtime-packages",
        packages,
        "--requested-input",
        "128",
        "--requested-output",
        "64",
        "--concurrency",
        "4",
        "--warmup-requests",
        "16",
        "--ignore-eos",
        "--utc-offset",
        "+00:00",
        "--tool-version",
        "0.32.0",
        "--metrics",
        *metrics,
        "--enclose",
        "tool-output,metrics",
        "-o",
        work / "imported",
        expect=0,
    )
    moeplan(
        "bundle",
        "create",
        bundle,
        "--plan",
        plan,
        "--checkpoint",
        checkpoint,
        "--registry",
        DEMO / "registry.json",
        "--evidence",
        work / "imported",
        expect=0,
        show=8,
    )
    moeplan("attest", bundle, "--key", KEY, expect=0)
    return bundle


def judge(work: Path, bundle: Path) -> None:
    """Write the auditor's policy, verify, judge, sign the verdict, seal and audit it."""
    policy, verdict, archive = work / "policy.json", work / "verdict.json", work / "bundle.tar"
    moeplan(
        "policy",
        "init",
        "--trust-key",
        PUBLIC,
        "--test-keys",
        "--plan",
        work / "plan.json",
        "--checkpoint",
        work / "checkpoint.json",
        "--least-binding",
        "declared",
        "-o",
        policy,
        expect=0,
    )
    moeplan("verify", bundle, "--policy", policy, expect=0)
    moeplan("verdict", bundle, "--policy", policy, "--at", AT, "-o", verdict, expect=3)
    moeplan("attest", bundle, "--verdict", verdict, "--key", KEY, expect=0)
    moeplan("attest", bundle, "--key", KEY, expect=0)
    moeplan("bundle", "pack", bundle, "-o", archive, expect=0, show=4)
    moeplan("audit", archive, "--policy", policy, "--at", AT, expect=3, show=18)
    told = json.loads(moeplan("audit", archive, "--policy", policy, "--at", AT, "--json", expect=3, show=0))
    outcomes = [item["outcome"] for item in told["reproduced"]]
    if not told["ok"] or outcomes != ["reproduced"]:
        sys.exit(f"demo: the signed verdict was not reproduced: {outcomes}")


def main() -> None:
    """Run the demonstration; with a directory as its argument, keep what it makes there."""
    started = time.monotonic()
    keep = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    work = Path(tempfile.mkdtemp(prefix="moeplan-demo-")) if keep is None else keep
    try:
        if keep is not None:
            keep.mkdir(parents=True)
        plans()
        judge(work, make_bundle(work))
    finally:
        if keep is None:
            shutil.rmtree(work, ignore_errors=True)
    print(
        "\nThe signed verdict was reproduced byte for byte. It is 'inconclusive', and rightly: the recording does not"
        "\nshow that the checkpoint was hashed before the engine started, the workload declares no cached share, and"
        "\ntwo of the three trials were not in a steady state."
        f"\ndemo: {time.monotonic() - started:.1f} s"
    )


if __name__ == "__main__":
    main()
