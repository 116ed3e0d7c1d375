"""Instants as moeplan's options take them, and the clock's own inaccuracy."""

from __future__ import annotations

import time
from datetime import UTC, datetime

__all__ = ["CLOCK_SECONDS", "instant", "rest"]

CLOCK_SECONDS = 3
"""Waited where one thing must be seen to come before another: instants are whole seconds, and the kernel tells the
start of a process up to two seconds too early, its time of boot being whole seconds. Source: proc_stat(5), btime."""


def instant(seconds: float) -> str:
    """Return seconds since the epoch as an instant, cut to whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rest() -> str:
    """Do nothing for :data:`CLOCK_SECONDS` and return an instant in the middle of it."""
    time.sleep(CLOCK_SECONDS / 2)
    middle = instant(time.time())
    time.sleep(CLOCK_SECONDS / 2)
    return middle
