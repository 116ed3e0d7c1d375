"""One worker is killed under load and started again, and what clients saw of it is kept."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from e2e.commands import moeplan
from e2e.engine import Engine
from e2e.planning import OUTPUT_TOKENS
from e2e.processes import StepFailedError, members, stop_session
from e2e.work import Work

__all__ = ["fail_worker", "restart_script"]

_CORE = b"VLLM::EngineCore"
"""Title of the process that schedules; the API server ends by itself when it is gone.
Source: vLLM 0.32.0, vllm/v1/engine/core.py, set_process_title."""


def fail_worker(work: Work, engine: Engine) -> list[Path]:
    """Kill the engine's core under load, start the engine again, and return where the evidence lies."""
    script, started = work.path("restart.sh"), work.path("restarted.pid")
    variables = work.variables("restarted", {})
    script.write_text(restart_script(variables, work.script, started, work.path("engine-restarted.log")), "utf-8")
    out = work.path("evidence-restart")
    try:
        moeplan(
            "collect", "restart", "--url", work.url, *work.deployment(),
            "--pid", str(_core(engine)), "--signal", "KILL", "--restart-command", f"sh {script}",
            "--restart-after", "2", "--rate", "2", "--output-tokens", str(OUTPUT_TOKENS), "--deadline", "300",
            "--yes", "-o", out,
            seconds=420,
            realtime=True,
        )  # fmt: skip
    finally:
        _stop(started)
    return [out]


def restart_script(variables: Mapping[str, str], serve: Path, started: Path, log: Path) -> str:
    """Return a script that starts the engine again with the same environment and says which process it is."""
    given = " ".join(shlex.quote(f"{name}={value}") for name, value in variables.items())
    lines = ("#!/bin/sh", f"echo $$ > {started}", f"exec env -i {given} sh {serve} > {log} 2>&1")
    return "\n".join(lines) + "\n"


def _core(engine: Engine) -> int:
    for process in members(engine.process.pid):
        if Path(f"/proc/{process}/cmdline").read_bytes().startswith(_CORE):
            return process
    raise StepFailedError("the engine has no process that calls itself its core")


def _stop(started: Path) -> None:
    """Stop the engine that was started again, where it was."""
    if not started.exists():
        return
    process = int(started.read_text("utf-8"))
    try:
        session = os.getsid(process)
    except ProcessLookupError:
        return
    if session == os.getsid(0):
        raise StepFailedError("the restarted engine is in this program's own session")
    stop_session(session, lambda: None if Path(f"/proc/{process}").exists() else True)
