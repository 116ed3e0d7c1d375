"""``moeplan collect restart`` against a process that serves, is killed, and is started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from moeplan.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
STUB = Path(__file__).with_name("restart_stub.py")
QUICK = ("--rate", "20", "--before", "1", "--after", "0.7", "--output-tokens", "4", "--deadline", "20")


class Worker:
    """The stub as a process, and all that were started in its place."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen([sys.executable, str(STUB), str(self.port)])
        self.wait_ready()

    def command(self, delay_s: float = 0) -> str:
        """Return the command that starts it again."""
        return f"{sys.executable} {STUB} {self.port} {delay_s}"

    def wait_ready(self) -> None:
        """Return once it answers."""
        for _ in range(200):
            with suppress(OSError):
                urllib.request.urlopen(f"{self.url}/v1/models", timeout=1).close()
                return
            time.sleep(0.05)
        raise AssertionError("the stub does not answer")

    def stop(self) -> None:
        """End it, and what was started in its place, each by its own number."""
        self.process.kill()
        self.process.wait()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if path.read_bytes().split(b"\0")[1:3] == [str(STUB).encode(), str(self.port).encode()]:
                    os.kill(int(path.parent.name), signal.SIGKILL)


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Return a worker that serves."""
    made = Worker()
    try:
        yield made
    finally:
        made.stop()


def documents(out: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the run's manifest and the record, where there is one."""
    found = [json.loads(path.read_bytes()) for path in (out / "evidence").glob("*.json")]
    run = next(one for one in found if one["kind"] == "run_manifest")
    return run, next((one for one in found if one["kind"] == "evidence_record"), None)


def rows(out: Path, name: str) -> list[dict[str, Any]]:
    """Return a raw table's rows, read by pyarrow alone."""
    (path,) = out.rglob(f"{name}.parquet")
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def words(worker: Worker, stated: list[str], out: Path, *more: str) -> list[str]:
    return ["collect", "restart", "--url", worker.url, *stated, *QUICK, "-o", str(out), *more]


def test_a_killed_worker_that_is_started_again(
    worker: Worker, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    again = ("--restart-command", worker.command(0.5), "--restart-after", "0.4")
    code = main(words(worker, stated, out, "--pid", str(worker.process.pid), *again, "--yes", "--json"))
    told = json.loads(capsys.readouterr().out)
    run, record = documents(out)
    assert record is not None
    assert (code, run["state"], run["announced"], [one["type"] for one in run["observations"]]) == (
        0,
        "closed",
        True,
        ["failure_timeline"],
    )
    assert [item["code"] for item in told["findings"]] == ["failure_read"]
    payload = record["payload"]
    assert (payload["fault"], payload["requestedOutputTokens"]) == ("kill", 4)
    assert payload["target"].startswith("process-")
    assert str(worker.process.pid) not in json.dumps(record)
    events = rows(out, "series")
    moments = {row["metric"]: row["time_ns"] for row in reversed(events)}
    health = [(row["time_ns"], row["value"]) for row in events if row["metric"] == "health_status"]
    assert moments["fault_injected"] < moments["process_exited"] < moments["process_started"]
    assert [value for _, value in health] == [200, 0, 503, 200]
    assert 10**8 < health[-1][0] - moments["process_started"] < 5 * 10**9
    requests = rows(out, "requests")
    lost = [row for row in requests if row["outcome"] != "complete"]
    assert lost
    assert all(row["end_ns"] >= moments["fault_injected"] for row in lost)
    assert all(row["output_tokens"] == 4 for row in requests if row["outcome"] == "complete")
    # Sending went on at its rate while nobody answered.
    starts = sorted(row["start_ns"] for row in requests)
    assert max(later - earlier for earlier, later in pairwise(starts)) < 10**9
    assert record["engineStart"] is not None


def test_without_yes_nothing_is_done_and_it_says_what_would_be(
    worker: Worker, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = str(worker.process.pid)
    code = main(words(worker, stated, tmp_path / "out", "--pid", pid, "--json"))
    shown = capsys.readouterr()
    assert code == 2
    assert json.loads(shown.out)["done"] is False
    assert f"send SIGKILL to process {pid}" in shown.err
    assert worker.process.poll() is None
    assert not (tmp_path / "out").exists()


def test_a_command_that_makes_it_fail(worker: Worker, stated: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    kill = ("--command", f"kill -9 {worker.process.pid}", "--restart-command", worker.command(0.3))
    assert main(words(worker, stated, out, *kill, "--yes")) == 0
    _, record = documents(out)
    assert record is not None
    assert (record["payload"]["fault"], record["payload"]["target"]) == ("command", "worker")


def test_a_worker_that_never_comes_back_is_an_incomplete_timeline(
    worker: Worker, stated: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    began = time.monotonic()
    code = main(words(worker, stated, out, "--pid", str(worker.process.pid), "--yes", "--deadline", "1"))
    assert time.monotonic() - began < 10
    run, record = documents(out)
    assert (code, run["state"]) == (1, "closed")
    assert record is not None
    assert [row["value"] for row in rows(out, "series") if row["metric"] == "health_status"] == [200, 0]


def test_a_fault_that_does_not_happen_leaves_an_open_run_without_a_record(
    worker: Worker, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(words(worker, stated, out, "--command", "false", "--yes")) == 2
    assert "command failed" in capsys.readouterr().err
    run, record = documents(out)
    assert record is None
    assert (run["state"], run["observations"]) == (
        "open",
        [{"type": "failure_timeline", "record": None, "files": []}],
    )


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_leaves_what_it_saw_and_an_open_run(
    sign: signal.Signals, worker: Worker, stated: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    argv = words(worker, stated, out, "--pid", str(worker.process.pid), "--yes", "--before", "60")
    process = subprocess.Popen([sys.executable, "-m", "moeplan.cli.main", *argv], cwd=ROOT)
    try:
        while not (out / "evidence").is_dir():
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(sign)
        assert process.wait(10) == 130
    finally:
        process.kill()
    run, record = documents(out)
    assert run["state"] == "open"
    assert record is not None
    assert worker.process.poll() is None
    assert [row["metric"] for row in rows(out, "series")] == ["health_status"]


@pytest.mark.parametrize(
    ("more", "path"),
    [
        (("--pid", "1"), "--pid"),
        (("--pid", str(os.getpid())), "--pid"),
        (("--pid", "4194303"), "--pid"),
        (("--pid", "x"), "--pid"),
        (("--pid", "self", "--signal", "NONE"), "--signal"),
        (("--command", "'"), "--command"),
        (("--command", "x", "--restart-command", ""), "--restart-command"),
        (("--command", "x", "--rate", "0"), "--rate"),
        (("--command", "x", "--deadline", "0"), "--deadline"),
        (("--command", "x", "--output-tokens", "0"), "--output-tokens"),
        (("--command", "x", "--before", "-1"), "--before"),
    ],
)
def test_what_is_refused_before_anything_is_done(
    more: tuple[str, ...],
    path: str,
    worker: Worker,
    stated: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = tuple(str(worker.process.pid) if word == "self" else word for word in more)
    assert main(words(worker, stated, tmp_path / "out", *given, "--yes", "--json")) == 2
    assert json.loads(capsys.readouterr().out)["error"]["path"] in (path, "command line")
    assert worker.process.poll() is None
    assert not (tmp_path / "out").exists()


def test_a_program_that_is_missing_is_named(
    worker: Worker, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(worker, stated, tmp_path / "out", "--command", "no-such-program", "--yes")) == 2
    assert "--command: cannot be started" in capsys.readouterr().err
