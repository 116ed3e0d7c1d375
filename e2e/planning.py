"""Before anything runs: checkpoint, plan, check, rendered script, and the digest on the node that will serve."""

from __future__ import annotations

from pathlib import Path

from e2e.checkpoint import NAME, ROOT_DIGEST, make_checkpoint
from e2e.commands import moeplan
from e2e.ground import HARDWARE, NODE, list_packages, resolved_arguments, write_registry, write_site
from e2e.work import Work

__all__ = ["INPUT_TOKENS", "OUTPUT_TOKENS", "STREAMS", "digest_before_start", "prepare"]

INPUT_TOKENS, OUTPUT_TOKENS, STREAMS = 128, 64, 4
_REVISION = ("--repository", "demo/tiny-moe", "--revision", ROOT_DIGEST)
_LOAD = ("--input-tokens", str(INPUT_TOKENS), "--output-tokens", str(OUTPUT_TOKENS), "--concurrency", str(STREAMS))
_TARGETS = ("--target-ttft-ms", "2000", "--target-inter-token-ms", "200", "--prefix-cache-share-bps", "0")
_LAYOUT = ("--devices", "1", "--runtime", "vllm", "--tensor-parallel-size", "1", "--precision", "bf16")


def prepare(work: Work) -> None:
    """Make the checkpoint and what the machine says, plan, check, and render what starts the engine."""
    make_checkpoint(work.path("models"))
    write_registry(work.path("registry.json"))
    write_site(work.path("site.json"), work.path("models"), work.port)
    list_packages(work.environment, work.path("packages.txt"))
    moeplan("checkpoint", "digest", work.model, *_REVISION, "-o", work.path("checkpoint.json"))
    moeplan(
        "plan", NAME, HARDWARE, *_LAYOUT, *_LOAD, *_TARGETS,
        "--site", work.path("site.json"), "--registry", work.path("registry.json"),
        "--checkpoint", work.path("checkpoint.json"), "--runtime-packages", work.path("packages.txt"),
        "-o", work.path("plan.json"),
        show=20,
    )  # fmt: skip
    moeplan("check", work.path("plan.json"), "--site", work.path("site.json"))
    moeplan("render", work.path("plan.json"), "--site", work.path("site.json"), "-o", work.path("deploy"))
    words = resolved_arguments(work.script, work.path("models"))
    work.path("arguments.txt").write_text("\n".join(words) + "\n", "utf-8")


def digest_before_start(work: Work) -> Path:
    """Hash the checkpoint and each tensor through the mount that serves, and return where the record lies."""
    out = work.path("evidence-digest")
    moeplan(
        "checkpoint", "digest", work.model, *_REVISION,
        "--plan", work.path("plan.json"), "--node", NODE, *work.runtime(),
        "--tensors", "--record", out,
    )  # fmt: skip
    return out
