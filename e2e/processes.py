"""Child processes in sessions of their own: bounded in time, and none left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

__all__ = ["StepFailedError", "end_in_order", "members", "run_bounded", "start_session", "stop_session"]

_POLL_SECONDS = 0.1


class StepFailedError(Exception):
    """A step of the end-to-end run failed; the text says which, and what to do."""


def end_in_order() -> None:
    """Let SIGTERM end this program as Ctrl-C does, by way of its ``finally`` blocks: no engine is left behind."""

    def ended(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, ended)


def start_session(
    argv: Sequence[str | Path], environment: Mapping[str, str], log: IO[bytes] | None = None, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a command as the leader of a session; its output goes to ``log``, or where this program's goes."""
    output = None if log is None else log
    return subprocess.Popen(
        [str(word) for word in argv],
        env=dict(environment),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if log is None else subprocess.STDOUT,
        start_new_session=True,
    )


def members(session: int) -> list[int]:
    """Return the live processes of a session, zombies left out. Source: proc(5), /proc/PID/stat fields 3 and 6."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, _, _, own = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state != "Z":
                found.append(int(entry.name))
    return found


def stop_session(session: int, reap: Callable[[], object], grace_seconds: float = 20) -> None:
    """End every process of a session: its leader is asked, then the others, then all are killed.

    The leader first, because an engine whose children are ended under it takes that for their failure.

    Args:
        session: process id of the leader; it is also the session's.
        reap: called while waiting, so that a dead leader does not stay a zombie; None while it lives.
        grace_seconds: for the leader, and for the others, to end by themselves.

    Raises:
        StepFailedError: a process is there even after SIGKILL.
    """
    if reap() is None:
        _send([session], signal.SIGTERM)
        _wait(lambda: reap() is not None, grace_seconds)
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, 10.0)):
        _send(members(session), number)
        if _wait(lambda: reap() is not None and not members(session), seconds):
            return
    raise StepFailedError(f"processes {members(session)} are there even after SIGKILL; look at them with ps")


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _send(processes: Sequence[int], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def run_bounded(argv: Sequence[str | Path], environment: Mapping[str, str], seconds: float, what: str) -> None:
    """Run a command to its end, its output shown as it comes.

    Raises:
        StepFailedError: it exits with another status than 0, or takes longer than ``seconds``.
    """
    process = start_session(argv, environment)
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise StepFailedError(f"{what}: not done after {seconds:.0f} s; it was stopped") from None
    finally:
        stop_session(process.pid, process.poll, 3)
    if status != 0:
        raise StepFailedError(f"{what}: exit status {status}")
