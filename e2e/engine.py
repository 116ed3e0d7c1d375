"""Starts the engine by its rendered script, waits until it serves, and stops it with all its children."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from e2e.processes import StepFailedError, start_session, stop_session

__all__ = ["READY_SECONDS", "Engine", "engine_variables", "free_port", "running", "scrape", "wait_until_ready"]

READY_SECONDS = 300.0
"""The recorded start took 55 s on two idle cores."""
_KEPT = ("HOME", "LANG", "LC_ALL", "TMPDIR", "USER")
"""Variables of the caller that the engine sees; it sees no other."""
_LAST_LINES = 25


@attrs.frozen
class Engine:
    """A running engine: the leader of its session, its log, and where it answers."""

    process: subprocess.Popen[bytes]
    log: Path
    url: str


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def engine_variables(environment: Path, cache: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of the engine's process.

    Args:
        environment: the virtual environment that vLLM lies in.
        cache: compiled code goes here; a cache of one's own, so that no other run's graphs are taken.
        more: such as the probe's switches.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    path = f"{environment / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    own = {
        "PATH": path,
        "VLLM_CACHE_ROOT": str(cache),
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONUNBUFFERED": "1",
        "TZ": "UTC",
    }
    return {**kept, **own, **more}


@contextlib.contextmanager
def running(script: Path, variables: Mapping[str, str], log: Path, port: int) -> Iterator[Engine]:
    """Run the engine for the length of a ``with`` block, ready when the block begins, gone when it ends.

    Raises:
        StepFailedError: it ends or does not answer in time; the end of its log is in the text.
    """
    with log.open("xb") as out:
        process = start_session(["sh", script.resolve()], variables, out, cwd=log.parent)
    engine = Engine(process, log, f"http://127.0.0.1:{port}")
    try:
        wait_until_ready(engine)
        yield engine
    finally:
        stop_session(process.pid, process.poll)


def wait_until_ready(engine: Engine, seconds: float = READY_SECONDS) -> None:
    """Wait until ``/health`` answers 200.

    Raises:
        StepFailedError: the engine ends first, or the time is over.
    """
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        status = engine.process.poll()
        if status is not None:
            raise StepFailedError(f"the engine ended with status {status}\n{_tail(engine.log)}")
        if _healthy(engine.url):
            print(f"  engine ready after {time.monotonic() - began:.1f} s", flush=True)
            return
        time.sleep(0.5)
    raise StepFailedError(f"the engine was not ready after {seconds:.0f} s\n{_tail(engine.log)}")


def scrape(url: str) -> bytes:
    """Return what the engine's ``/metrics`` says now."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        data: bytes = answer.read()
        return data


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:  # URLError, resets and timeouts are of this kind
        return False


def _tail(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()
    return "\n".join(["the end of its log:", *lines[-_LAST_LINES:]])
