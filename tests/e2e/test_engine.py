"""The engine's start and stop, with a script in the place of vLLM."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from e2e.engine import Engine, engine_variables, free_port, running, wait_until_ready
from e2e.processes import StepFailedError, members, start_session

SERVER = """
import sys, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
    def log_message(self, *words):
        print("asked for", self.path, flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def script(directory: Path, text: str) -> Path:
    path = directory / "serve.sh"
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    return path


def test_an_engine_is_ready_within_the_block_and_gone_after_it(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    port = free_port()
    start = script(tmp_path, f"sleep 0.3\nexec {sys.executable} server.py {port}")
    with running(start, engine_variables(tmp_path, tmp_path / "cache", {}), tmp_path / "engine.log", port) as engine:
        with urllib.request.urlopen(f"{engine.url}/health", timeout=5) as answer:
            assert answer.status == 200
        assert members(engine.process.pid) == [engine.process.pid]
    assert engine.process.poll() is not None
    assert "asked for /health" in (tmp_path / "engine.log").read_text("utf-8")


def test_an_engine_that_ends_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    start = script(tmp_path, "echo no room for the KV cache\nexit 7")
    variables = engine_variables(tmp_path, tmp_path / "cache", {})
    with (
        pytest.raises(StepFailedError, match=r"status 7\nthe end of its log:\nno room for the KV cache"),
        running(start, variables, tmp_path / "engine.log", free_port()),
    ):
        pass


def test_an_engine_that_never_answers_is_given_up(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    with log.open("xb") as out:
        process = start_session(["sleep", "60"], dict(os.environ), out)
    began = time.monotonic()
    try:
        with pytest.raises(StepFailedError, match="not ready after 1 s"):
            wait_until_ready(Engine(process, log, f"http://127.0.0.1:{free_port()}"), 1)
        assert time.monotonic() - began < 5
    finally:
        process.kill()
        process.wait(10)


def test_the_engine_sees_no_variable_of_the_caller_but_the_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("HOME", "/somewhere")
    variables = engine_variables(tmp_path, tmp_path / "cache", {"MOEPLAN_PROBE_HASH": "1"})
    assert "SECRET_TOKEN" not in variables
    assert variables["HOME"] == "/somewhere"
    assert variables["MOEPLAN_PROBE_HASH"] == "1"
    assert variables["VLLM_CACHE_ROOT"] == str(tmp_path / "cache")
    assert variables["PATH"].split(":")[0] == str(tmp_path / "bin")
