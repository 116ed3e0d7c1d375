"""Secrets sown around every collector: in the key, the page, the process, the pod; none comes out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moeplan.cli.collect_command import COLLECTORS
from moeplan.cli.main import main
from tests.collecting.conftest import DEMO
from tests.collecting.test_collect_restart import Worker
from tests.integration.privacy import SEEDS, SOWN, leaks, leaks_in_files, salted
from tests.integration.privacy_inputs import INPUTS
from tests.stub_server.server import Stub, serving

Words = Callable[[Path], list[str]]
KEY = SEEDS["API key"]
STUB_SECRETS = {"answer": "SECRET-ANSWER-7731", "model path": "SECRET-USER-11", "page": "SECRET-HOST-42"}
PROGRAM = "import time\nprint('up', flush=True)\ntime.sleep(60)"
ENGINE = ("serve", SEEDS["home path"], "--api-key", KEY, "--host", SEEDS["IPv4"], "--served-model-name", SOWN)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """Return a server whose page, model and answers hold secrets, and which wants a key."""
    monkeypatch.setenv("SEEDED_KEY", KEY)
    with serving("ok") as made:
        made.extra_metrics = (
            f'vllm:odd{{host="{SEEDS["host name"]}",path="{SEEDS["home path"]}",model_name="{SOWN}"}} 1\n'
            f'node_uname_info{{nodename="{SEEDS["node name"]}"}} 1\n'
        )
        yield made


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[str]]:
    """Return a process with secrets among its words and in its environment."""
    told = {"HF_TOKEN": KEY, "VLLM_API_KEY": KEY, "USER": SEEDS["user name"], "HOME": SEEDS["home path"]}
    told |= {"VLLM_CACHE_ROOT": SEEDS["home path"], "VLLM_HOST_IP": SEEDS["IPv4"], "HOSTNAME": SEEDS["host name"]}
    told |= {"NCCL_SOCKET_IFNAME": SEEDS["MAC"], "VLLM_LOGGING_PREFIX": SOWN, "MASTER_ADDR": SEEDS["IPv6"]}
    command = [sys.executable, "-c", PROGRAM, "vllm", *ENGINE]
    process = subprocess.Popen(command, env=os.environ | told, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """Return a worker that can be made to fail."""
    monkeypatch.setenv("SEEDED_KEY", KEY)
    made = Worker()
    try:
        yield made
    finally:
        made.stop()


def _endpoint(request: pytest.FixtureRequest, _folder: Path) -> list[str]:
    stub = request.getfixturevalue("stub")
    load = ("--requests", "4", "--input-tokens", "20", "--output-tokens", "2", "--concurrency", "2", "--trials", "1")
    return ["--url", stub.url, "--api-key-env", "SEEDED_KEY", "--tokenizer", str(DEMO / "tiny-moe"), *load]


def _smoke(request: pytest.FixtureRequest, _folder: Path) -> list[str]:
    stub = request.getfixturevalue("stub")
    return ["--url", stub.url, "--api-key-env", "SEEDED_KEY", "--output-tokens", "4"]


def _restart(request: pytest.FixtureRequest, _folder: Path) -> list[str]:
    worker = request.getfixturevalue("worker")
    quick = ("--rate", "10", "--before", "0.5", "--after", "0.5", "--output-tokens", "4", "--deadline", "20", "--yes")
    fault = ("--command", f"kill -9 {worker.process.pid}", "--restart-command", worker.command(0.2))
    return ["--url", worker.url, "--api-key-env", "SEEDED_KEY", *quick, *fault]


def _metrics(request: pytest.FixtureRequest, folder: Path) -> list[str]:
    stub, engine = request.getfixturevalue("stub"), request.getfixturevalue("engine")
    polled = ("--endpoint", f"{stub.url}/metrics", "--api-key-env", "SEEDED_KEY", "--pid", str(engine.pid))
    return [
        *polled,
        "--cpu-engine",
        "--pseudonym-key",
        str(folder / "site.key"),
        "--interval",
        "0.3",
        "--deadline",
        "2",
    ]


def _environment(request: pytest.FixtureRequest, folder: Path) -> list[str]:
    engine = request.getfixturevalue("engine")
    info = {"vllm_config": {"model_config": {"model": SEEDS["home path"], "dtype": "torch.bfloat16"}}, "vllm_env": {}}
    (folder / "info.json").write_text(json.dumps(salted(info)))
    (folder / "pods.json").write_bytes(INPUTS["kubectl-pods"].files()["a.json"])
    given = ("--server-info", str(folder / "info.json"), "--pods-file", str(folder / "pods.json"))
    return ["--pid", str(engine.pid), "--pseudonym-key", str(folder / "site.key"), *given]


CASES: dict[str, Callable[[pytest.FixtureRequest, Path], list[str]]] = {
    "endpoint": _endpoint,
    "smoke": _smoke,
    "restart": _restart,
    "metrics": _metrics,
    "environment": _environment,
}


def test_every_collector_has_a_case_here() -> None:
    assert set(CASES) == set(COLLECTORS)


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_secret_around_a_collector_comes_out(
    name: str,
    stated: list[str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = CASES[name](request, tmp_path)
    began = time.monotonic()
    capsys.readouterr()
    code = main(["collect", name, *words, *stated, "-o", str(tmp_path / "out")])
    shown = capsys.readouterr()
    assert time.monotonic() - began < 60
    assert code in (0, 1), shown.err
    for text in (shown.out, shown.err):
        assert leaks(text.encode(), SEEDS | STUB_SECRETS) == [], text
    assert any((tmp_path / "out" / "evidence").iterdir())
    assert leaks_in_files(tmp_path / "out", SEEDS | STUB_SECRETS) == {}
