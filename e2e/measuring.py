"""The measured engine start: bytes hashed as they are loaded, nothing counted; then what is observed of it."""

from __future__ import annotations

from pathlib import Path

from e2e.clock import instant, rest
from e2e.commands import moeplan
from e2e.engine import Engine, running, scrape
from e2e.failing import fail_worker
from e2e.ground import NODE
from e2e.memory import end_polling, polling
from e2e.planning import INPUT_TOKENS, OUTPUT_TOKENS, STREAMS
from e2e.processes import StepFailedError
from e2e.work import Work

__all__ = ["endpoint", "engine_start", "import_log", "measure"]


def measure(work: Work) -> list[Path]:
    """Start the engine, collect what judges it, stop it, and return where the evidence lies."""
    log = work.path("engine.log")
    with polling(work) as memory:
        rest()
        with running(work.script, work.variables("measured", {"HASH": "1"}), log, work.port) as engine:
            started = engine_start(engine.url)
            rest()
            evidence = [_environment(work, engine), _smoke(work), _trials(work)]
            end_polling(work)
            evidence += [import_log(work, log, started), _loaded(work)]
            evidence += fail_worker(work, engine)
    return [*evidence, memory]


def endpoint(work: Work) -> list[str | Path]:
    """Return the options of a command that calls the engine."""
    return ["--url", work.url, *work.deployment()]


def _environment(work: Work, engine: Engine) -> Path:
    out = work.path("evidence-environment")
    moeplan(
        "collect", "environment", "--pid", str(engine.process.pid), "--node", NODE, *work.deployment(), "-o", out
    )  # fmt: skip
    return out


def _loaded(work: Work) -> Path:
    """Import what the probe hashed while the engine loaded it."""
    out = work.path("evidence-loaded")
    moeplan("import", "probe", work.path("probe-measured"), *work.deployment(), "-o", out)
    return out


def _smoke(work: Work) -> Path:
    out = work.path("evidence-smoke")
    moeplan("collect", "smoke", *endpoint(work), "--output-tokens", str(OUTPUT_TOKENS), "-o", out)
    return out


def _trials(work: Work) -> Path:
    out = work.path("evidence-trials")
    moeplan(
        "collect", "endpoint", *endpoint(work), "--endpoint-name", "engine",
        "--tokenizer", work.model,
        "--input-tokens", str(INPUT_TOKENS), "--output-tokens", str(OUTPUT_TOKENS), "--concurrency", str(STREAMS),
        "--requests", "240", "--warmup-requests", "16", "--trials", "3", "--seed", "1", "-o", out,
        seconds=420,
        realtime=True,
    )  # fmt: skip
    return out


def engine_start(url: str) -> str:
    """Return the instant at which the engine's process started, as its own metrics say, in whole seconds.

    Raises:
        StepFailedError: its metrics do not say it.
    """
    for line in scrape(url).decode().splitlines():
        if line.startswith("process_start_time_seconds "):
            return instant(float(line.split()[1]))
    raise StepFailedError(f"{url}/metrics names no process_start_time_seconds")


def import_log(work: Work, log: Path, started: str) -> Path:
    """Import the engine's log, which it writes in UTC, and return where the record lies."""
    out = work.path("evidence-log")
    year = ("--year", started[:4], "--utc-offset", "+00:00")
    moeplan("import", "vllm-log", log, *work.deployment(), *year, "--engine-start", started, "-o", out)
    return out
