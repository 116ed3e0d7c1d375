"""When the engine was started: the process that vLLM was called as, whose children the workers are."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

__all__ = ["engine_start", "mark_engine_start", "process_start_ns"]

_MARK = "MOEPLAN_PROBE_ENGINE"
"""Set by the first process of an engine that loads the probe; its children inherit it."""


def process_start_ns() -> int | None:
    """Return when this process was started, wall clock, in nanoseconds; None where ``/proc`` does not say.

    Exact to one clock tick, commonly 10 ms. Source: proc_pid_stat(5), field 22; proc_stat(5), ``btime``.
    """
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        rows = Path("/proc/stat").read_text().splitlines()
        booted = next(int(row.split()[1]) for row in rows if row.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return None
    return booted * 1_000_000_000 + ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def mark_engine_start(environment: MutableMapping[str, str] = os.environ) -> None:
    """Note that this process is the engine's first, unless one was before it."""
    environment.setdefault(_MARK, f"{os.getpid()}:{process_start_ns() or ''}")


def engine_start(environment: MutableMapping[str, str] = os.environ) -> dict[str, object]:
    """Return number and start of the engine's first process: that whose metrics tell the same start."""
    pid, _, started = environment.get(_MARK, f"{os.getpid()}:{process_start_ns() or ''}").partition(":")
    return {"pid": int(pid), "startedWallNs": started or None}
