"""The measured engine start: bytes hashed as they are loaded, nothing counted; then what is observed of it."""

from __future__ import annotations

import math
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

from e2e.commands import moeplan
from e2e.engine import running
from e2e.planning import INPUT_TOKENS, OUTPUT_TOKENS, STREAMS
from e2e.processes import StepFailedError
from e2e.work import Work

__all__ = ["CLOCK_SECONDS", "endpoint", "engine_start", "import_log", "measure"]

CLOCK_SECONDS = 3
"""Waited between the digest and the engine's start: the kernel tells a process's start up to two seconds too early,
its time of boot being whole seconds. Source: proc_stat(5), btime."""


def measure(work: Work) -> list[Path]:
    """Start the engine, collect what judges it, stop it, and return where the evidence lies."""
    time.sleep(CLOCK_SECONDS)
    log = work.path("engine.log")
    with running(work.script, work.variables("measured", {"HASH": "1"}), log, work.port) as engine:
        started = engine_start(engine.url)
        evidence = [_smoke(work), _trials(work)]
        evidence.append(import_log(work, log, started))
    return evidence


def endpoint(work: Work) -> list[str | Path]:
    """Return the options of a command that calls the engine."""
    return ["--url", work.url, "--endpoint-name", "engine", *work.deployment()]


def _smoke(work: Work) -> Path:
    out = work.path("evidence-smoke")
    moeplan("collect", "smoke", *endpoint(work), "--output-tokens", str(OUTPUT_TOKENS), "-o", out)
    return out


def _trials(work: Work) -> Path:
    out = work.path("evidence-trials")
    moeplan(
        "collect", "endpoint", *endpoint(work),
        "--tokenizer", work.model,
        "--input-tokens", str(INPUT_TOKENS), "--output-tokens", str(OUTPUT_TOKENS), "--concurrency", str(STREAMS),
        "--requests", "240", "--warmup-requests", "16", "--trials", "3", "--seed", "1", "-o", out,
        seconds=420,
    )  # fmt: skip
    return out


def engine_start(url: str) -> str:
    """Return the instant at which the engine's process started, as its own metrics say, in whole seconds.

    Raises:
        StepFailedError: its metrics do not say it.
    """
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("process_start_time_seconds "):
                return datetime.fromtimestamp(math.floor(float(line.split()[1])), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    raise StepFailedError(f"{url}/metrics names no process_start_time_seconds")


def import_log(work: Work, log: Path, started: str) -> Path:
    """Import the engine's log, which it writes in UTC, and return where the record lies."""
    out = work.path("evidence-log")
    year = ("--year", started[:4], "--utc-offset", "+00:00")
    moeplan("import", "vllm-log", log, *work.deployment(), *year, "--engine-start", started, "-o", out)
    return out
