"""Memory is polled beside everything else: from before the engine's start, idle, to the end of the load."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from e2e.commands import begin_moeplan, finish_moeplan
from e2e.ground import NODE
from e2e.processes import stop_session
from e2e.work import Work

__all__ = ["end_polling", "polling"]

_MOST_SECONDS = 900


@contextlib.contextmanager
def polling(work: Work) -> Iterator[Path]:
    """Poll while the block runs, until :func:`end_polling`, and give where the evidence will lie.

    Raises:
        StepFailedError: the collector did not end well.
    """
    out, log = work.path("evidence-memory"), work.path("collect-metrics.log")
    collector = begin_moeplan(
        "collect", "metrics", "--endpoint", work.url, "--cpu-engine", "--process-name", f"--port {work.port}",
        "--node", NODE, *work.deployment(), "--probe-dir", work.path("probe-measured"),
        "--interval", "2", "--until-file", _mark(work), "--deadline", str(_MOST_SECONDS), "-o", out,
        log=log,
    )  # fmt: skip
    try:
        yield out
        finish_moeplan(collector, log)
    finally:
        stop_session(collector.pid, collector.poll, 5)


def end_polling(work: Work) -> None:
    """Let the collector end: what comes next is no part of the measured load."""
    print(f"\n$ touch {_mark(work)}", flush=True)
    _mark(work).touch()


def _mark(work: Work) -> Path:
    return work.path("measured")
