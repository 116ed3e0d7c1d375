"""Ask one plugin one thing: in a child process with a deadline, or in this process where none is given."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

from moeplan.errors import InputError
from moeplan.hooks.calling import Fault
from moeplan.hooks.child import BOOT, answer
from moeplan.model.plugin import FAILURE_CODES
from moeplan.wire.strict_json import parse_strict

__all__ = ["MAX_RESULT_BYTES", "ask"]

MAX_RESULT_BYTES = 8 << 20
"""The most bytes of JSON one answer may have."""


def ask(request: dict[str, Any], deadline_ms: int | None) -> dict[str, Any]:
    """Return ``{"value": …, "hooks": […]}`` for a request of :func:`moeplan.hooks.child.answer`.

    Args:
        request: name and value of the entry point, hook and arguments, as JSON values.
        deadline_ms: time from the start of a child process to its whole answer; None calls in this process, where a
            plugin that hangs cannot be ended.

    Raises:
        Fault: the plugin failed, was too slow or said too much.
    """
    data = _in_process(request) if deadline_ms is None else _in_child(request, deadline_ms)
    try:
        got = parse_strict(data, max_bytes=MAX_RESULT_BYTES)
    except InputError as error:
        raise Fault("malformed_result", f"the answer is no strict JSON: {error}") from None
    if type(got) is dict and set(got) == {"value", "hooks"} and type(got["hooks"]) is list:
        return got
    if type(got) is dict and set(got) == {"code", "message"} and got["code"] in FAILURE_CODES:
        raise Fault(got["code"], str(got["message"]) or "no reason given")
    raise Fault("malformed_result", "the child process did not answer in the form of the host")


def _in_process(request: dict[str, Any]) -> bytes:
    data = answer(request)
    if len(data) > MAX_RESULT_BYTES:
        raise _too_large()
    return data


def _in_child(request: dict[str, Any], deadline_ms: int) -> bytes:
    ends = time.monotonic_ns() + deadline_ms * 1_000_000
    with tempfile.TemporaryFile() as asked:  # a file, not a pipe: a child that never reads cannot block the host
        asked.write(json.dumps(sys.path).encode() + b"\n" + json.dumps(request).encode())
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", BOOT],
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        data = _read(process, ends)
        status = _status(process, ends)
    except TimeoutError:
        raise Fault("timed_out", f"no answer within {deadline_ms} ms; its process was ended") from None
    finally:
        _end(process)
    if status != 0 or not data:
        told = f"signal {-status}" if status < 0 else f"exit status {status}"
        raise Fault("died", f"its process ended with {told} before it had answered")
    return data


def _read(process: subprocess.Popen[bytes], ends: int) -> bytes:
    assert process.stdout is not None
    parts: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = ends - time.monotonic_ns()
            if left <= 0 or not selector.select(left / 1e9):
                raise TimeoutError
            part = os.read(process.stdout.fileno(), 1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
            if size > MAX_RESULT_BYTES:
                raise _too_large()


def _status(process: subprocess.Popen[bytes], ends: int) -> int:
    """Return the exit status without collecting it: until then no other process can have the group's number."""
    while time.monotonic_ns() < ends:
        told = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if told is not None:
            return told.si_status if told.si_code == os.CLD_EXITED else -told.si_status
        time.sleep(0.001)
    raise TimeoutError


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the child and what it started in its session, and collect its status."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def _too_large() -> Fault:
    return Fault("too_large", f"the answer is larger than {MAX_RESULT_BYTES} bytes")
