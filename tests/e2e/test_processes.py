"""Sessions: bounded in time, and no process of them left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.processes import StepFailedError, members, run_bounded, start_session, stop_session

REPOSITORY = Path(__file__).resolve().parents[2]


def gone(process: int) -> bool:
    """Whether a process is no more, or a zombie that only its new parent has still to reap."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return found.stdout.strip()[:1] in ("", "Z")


def spawned(session: subprocess.Popen[bytes], count: int) -> list[int]:
    end = time.monotonic() + 10
    while len(found := members(session.pid)) < count and time.monotonic() < end:
        time.sleep(0.02)
    assert len(found) == count
    return found


def test_a_child_that_ignores_the_request_is_killed_with_the_session() -> None:
    session = start_session(["sh", "-c", "(trap '' TERM; while :; do sleep 0.1; done) & wait"], dict(os.environ))
    found = spawned(session, 3)
    began = time.monotonic()
    stop_session(session.pid, session.poll, 0.3)
    assert time.monotonic() - began < 5
    assert [process for process in found if not gone(process)] == []
    assert members(session.pid) == []


def test_a_child_in_a_group_of_its_own_is_in_the_session_still() -> None:
    code = "import subprocess; subprocess.Popen(['sleep', '60'], process_group=0).wait()"
    session = start_session([sys.executable, "-c", code], dict(os.environ))
    found = spawned(session, 2)
    assert len({os.getpgid(process) for process in found}) > 1
    stop_session(session.pid, session.poll)
    assert [process for process in found if not gone(process)] == []


def test_a_session_that_has_ended_is_left_at_once() -> None:
    session = start_session(["true"], dict(os.environ))
    session.wait(10)
    began = time.monotonic()
    stop_session(session.pid, session.poll, 20)
    assert time.monotonic() - began < 1


def test_a_command_past_its_time_is_stopped_and_named(tmp_path: Path) -> None:
    with pytest.raises(StepFailedError, match="the long one: not done after 0 s; it was stopped"):
        run_bounded(["sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 60"], dict(os.environ), 0.4, "the long one")
    assert gone(int((tmp_path / "pid").read_text()))


def test_an_exit_status_is_named() -> None:
    with pytest.raises(StepFailedError, match="the failing one: exit status 3"):
        run_bounded(["sh", "-c", "exit 3"], dict(os.environ), 10, "the failing one")
    run_bounded(["true"], dict(os.environ), 10, "the right one")


PROGRAM = """
import os, sys, time
from e2e.processes import end_in_order, start_session, stop_session
end_in_order()
session = start_session(["sleep", "60"], dict(os.environ))
print(session.pid, flush=True)
try:
    time.sleep(60)
finally:
    stop_session(session.pid, session.poll)
"""


def test_a_program_that_is_asked_to_end_stops_its_sessions_first() -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    session = int(program.stdout.readline())
    assert not gone(session)
    program.terminate()
    assert program.wait(10) == 128 + 15
    program.stdout.close()
    assert gone(session)
