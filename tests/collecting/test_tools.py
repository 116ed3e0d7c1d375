"""``moeplan collect endpoint --tool``: an installed tool is run, its raw file imported, what it says not believed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from tests.collecting.conftest import DEMO
from tests.stub_server.server import serving

WORDS = ("--requests", "240", "--input-tokens", "128", "--output-tokens", "64", "--concurrency", "4", "--trials", "1")


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Return a function that puts a program of a few Python lines first on the path."""

    def make(name: str, body: str) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\nimport json, os, shutil, sys, time\n{body}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
        return path

    return make


COPY = (
    "out = sys.argv[sys.argv.index('--result-dir') + 1]\n"
    f"shutil.copy({str(DEMO / 'trials' / 'trial-1.json')!r}, out + '/trial.json')\n"
    "open(out + '/called', 'w').write(json.dumps([sys.argv[1:], os.environ.get('OPENAI_API_KEY')]))\n"
    "print('SECRET-PROMPT')"
)


def test_the_tools_raw_file_becomes_the_record(
    collect: Callable[..., Any], program: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("vllm", COPY)
    monkeypatch.setenv("STUB_KEY", "SECRET-KEY-5566")
    more = ("--tool", "vllm-bench", "--warmup-requests", "16", "--through", "service", "--api-key-env", "STUB_KEY")
    with serving("ok") as stub:
        code, made = collect(stub.url, *WORDS, *more)
    assert code == 0
    (record,) = made.records
    source = json.loads((DEMO / "trials" / "trial-1.json").read_bytes())
    assert [row["ttft_ns"] for row in made.table("requests")] == [
        round(source["ttfts"][row["request"]] * 1e9) for row in made.table("requests")
    ]
    payload = record["payload"]
    assert (record["collector"]["tool"], payload["path"], payload["warmupRequests"]) == ("vllm-bench", "service", 16)
    assert payload["endpoint"].startswith("endpoint-")
    assert (made.run["announced"], made.run["state"]) == (True, "closed")
    tool_output = next(part for part in record["attachments"] if part["role"] == "tool_output")
    assert tool_output["path"] is None  # it holds answers
    words, key = json.loads((tmp_path / "out" / "tool" / "trial-1" / "called").read_text())
    assert key == "SECRET-KEY-5566"
    assert "SECRET-KEY-5566" not in words
    asked = dict(pairwise(words))
    assert (asked["--num-prompts"], asked["--random-input-len"], asked["--random-output-len"]) == ("240", "128", "64")
    for room in ("evidence", "attachments"):
        for path in (tmp_path / "out" / room).rglob("*"):
            assert not path.is_file() or b"SECRET" not in path.read_bytes()


@pytest.mark.parametrize(
    ("body", "code"), [("sys.exit(0)", "tool_failed"), ("time.sleep(600)", "tool_late"), ("sys.exit(9)", "tool_failed")]
)
def test_a_tool_that_fails_or_hangs_aborts_its_trial(
    collect: Callable[..., Any], program: Callable[[str, str], Path], body: str, code: str
) -> None:
    program("vllm", body)
    began = time.monotonic()
    with serving("ok") as stub:
        exit_code, made = collect(stub.url, *WORDS, "--tool", "vllm-bench", "--trial-deadline", "1")
    assert time.monotonic() - began < 8
    assert exit_code == 1
    assert code in made.codes()
    assert [(trial["state"], trial["record"]) for trial in made.run["trials"]] == [("aborted", None)]


@pytest.mark.parametrize(
    ("more", "path", "code"),
    [
        (("--tool", "aiperf"), "--tool", "tool_missing"),
        (("--tool", "vllm-bench", "--schedule", "poisson", "--rate", "1"), "--schedule", "usage"),
        (("--tool", "guidellm", "--warmup-requests", "1"), "--warmup-requests", "usage"),
        (("--tool", "aiperf", "--api-key-env", "STUB_KEY"), "--api-key-env", "usage"),
    ],
)
def test_what_a_tool_cannot_do_is_refused(
    more: tuple[str, ...],
    path: str,
    code: str,
    stated: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("STUB_KEY", "k")
    words = ["collect", "endpoint", "--url", "http://127.0.0.1:9", "--tokenizer", str(DEMO / "tiny-moe"), *stated]
    assert main([*words, *WORDS, *more, "-o", str(tmp_path / "out"), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["path"], error["code"]) == (path, code)
