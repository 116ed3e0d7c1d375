"""Runs moeplan's commands as anybody would type them: shown with ``$``, bounded, and held to their exit code."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path

from e2e.processes import StepFailedError, stop_session

__all__ = ["ROOT", "begin_moeplan", "finish_moeplan", "moeplan"]

ROOT = Path(__file__).resolve().parents[1]
_WIDTH = 170


@cache
def _realtime() -> tuple[str, ...]:
    """Return what gives a command a processor as soon as it wants one, or nothing where that is not allowed.

    A client of one core's hundredth was seen to wait half a second for it beside an engine that spins on both
    (Linux 6.18): times would be the client's, not the engine's. Source: sched(7), SCHED_RR.
    """
    words = ("chrt", "--rr", "1")
    try:
        allowed = subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False, timeout=10).returncode == 0
    except OSError:
        return ()
    return words if allowed else ()


def _argv(words: tuple[str | Path, ...], shown: str, before: tuple[str, ...] = ()) -> list[str]:
    argv = [str(word) for word in words]
    print(f"\n$ {' '.join((*before, 'moeplan'))} {shlex.join(argv)}{shown}", flush=True)
    return [*before, sys.executable, "-m", "moeplan.cli.main", *argv]


def moeplan(
    *words: str | Path,
    expect: Collection[int] = (0,),
    show: int = 40,
    seconds: float = 120,
    errors: bool = True,
    realtime: bool = False,
) -> str:
    """Run one command from the project's root, show it and what it prints, and return its standard output.

    Args:
        words: the command's arguments.
        expect: exit codes of which it must end with one.
        show: lines of its output to show at most.
        seconds: after which it is stopped.
        errors: whether its notes and progress are shown.
        realtime: whether it measures times, so that it must not wait for a processor.

    Raises:
        StepFailedError: another exit code, or it took too long.
    """
    argv = _argv(words, "", _realtime() if realtime else ())
    process = subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise StepFailedError(f"{words[0]}: not done after {seconds:.0f} s; it was stopped") from None
    finally:
        stop_session(process.pid, process.poll, 5)
    _print(out, show)
    if errors:
        _print(err, show)
    print(f"  [exit {process.returncode}]", flush=True)
    if process.returncode not in expect:
        wanted = " or ".join(map(str, sorted(expect)))
        raise StepFailedError(
            f"{words[0]}: expected exit {wanted}, got {process.returncode}\n{out[-2000:]}{err[-2000:]}"
        )
    return out


def begin_moeplan(*words: str | Path, log: Path) -> subprocess.Popen[bytes]:
    """Begin a command that runs beside others; its output goes to a file."""
    argv = _argv(words, " &", _realtime())
    with log.open("xb") as out:
        return subprocess.Popen(argv, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)


def finish_moeplan(process: subprocess.Popen[bytes], log: Path, expect: int = 0, seconds: float = 60) -> None:
    """Wait for a command that was begun, and show what it printed.

    Raises:
        StepFailedError: another exit code, or it did not end.
    """
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise StepFailedError(f"{log.name}: not done after {seconds:.0f} s more; it was stopped") from None
    finally:
        stop_session(process.pid, process.poll, 5)
        print(f"\n$ wait    # {log.stem}", flush=True)
        _print(log.read_text("utf-8", "replace"), 30)
    print(f"  [exit {status}]", flush=True)
    if status != expect:
        raise StepFailedError(f"{log.stem}: expected exit {expect}, got {status}")


def _print(text: str, most: int) -> None:
    lines = text.splitlines()
    for line in lines[:most]:
        print("  " + (line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."))
    if len(lines) > most:
        print(f"  ... {len(lines) - most} more lines")
