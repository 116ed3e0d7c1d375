"""The counted engine start: expert selections per layer, and a trace of steps; it judges no service level."""

from __future__ import annotations

import json
import shlex
import urllib.request
from pathlib import Path

from e2e.clock import rest
from e2e.commands import moeplan
from e2e.engine import running, scrape
from e2e.measuring import endpoint, engine_start
from e2e.planning import INPUT_TOKENS, OUTPUT_TOKENS, STREAMS
from e2e.processes import StepFailedError
from e2e.work import Work

__all__ = ["count_experts", "traced_script"]


def count_experts(work: Work) -> list[Path]:
    """Start the engine with the probe counting, load it, trace some steps, and return where the evidence lies."""
    script = work.path("counted.sh")
    script.write_text(traced_script(work.script.read_text("utf-8"), work.path("trace")), "utf-8")
    log = work.path("engine-counted.log")
    with running(script, work.variables("counted", {"COUNT": "1"}), log, work.port) as engine:
        started = engine_start(engine.url)
        since = rest()
        _scrape(work, "before")
        _load(work, work.path("routed"))
        until = rest()
        _scrape(work, "after")
        _post(engine.url, "start_profile")
        _load(work, work.path("traced"), requests=2)
        _post(engine.url, "stop_profile")
    return [_import_counts(work, since, until), _import_trace(work, started)]


def _scrape(work: Work, name: str) -> None:
    print(f"\n$ curl -s {work.url}/metrics > {work.path(name)}.prom", flush=True)
    work.path(f"{name}.prom").write_bytes(scrape(work.url))


def _import_counts(work: Work, since: str, until: str) -> Path:
    """Import what was counted between two moments of rest, with the engine's own counters over the same span."""
    out = work.path("evidence-counted")
    moeplan(
        "import", "probe", work.path("probe-counted"), *work.deployment(),
        "--metrics", work.path("before.prom"), work.path("after.prom"), "--from", since, "--until", until, "-o", out,
    )  # fmt: skip
    return out


def traced_script(script: str, traces: Path) -> str:
    """Return the rendered script with the option without which vLLM 0.32 takes no trace.

    It adds no work until a trace is begun, so the deployment is the rendered one still.
    """
    config = {"profiler": "torch", "torch_profiler_dir": str(traces), "torch_profiler_with_stack": False}
    return f"{script.rstrip()} \\\n  --profiler-config {shlex.quote(json.dumps(config))}\n"


def _load(work: Work, out: Path, requests: int = 60) -> None:
    moeplan(
        "collect", "endpoint", *endpoint(work),
        "--tokenizer", work.model,
        "--input-tokens", str(INPUT_TOKENS), "--output-tokens", str(OUTPUT_TOKENS), "--concurrency", str(STREAMS),
        "--requests", str(requests), "--trials", "1", "--seed", "2", "-o", out,
    )  # fmt: skip


def _post(url: str, action: str) -> None:
    print(f"\n$ curl -X POST {url}/{action}", flush=True)
    with urllib.request.urlopen(urllib.request.Request(f"{url}/{action}", data=b"", method="POST"), timeout=60):
        pass


def _import_trace(work: Work, started: str) -> Path:
    """Import the trace of the worker; that of the API server holds no step."""
    found = sorted(work.path("trace").glob("*rank*.pt.trace.json.gz"))
    if not found:
        raise StepFailedError(f"the engine left no trace in {work.path('trace')}")
    out = work.path("evidence-trace")
    moeplan("import", "torch-trace", *found, *work.deployment(), "--engine-start", started, "-o", out)
    return out
