"""``moeplan collect metrics`` against a process that starts, serves and ends: its phases, its memory, its end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest

from moeplan.cli.main import main
from moeplan.model.evidence import EvidenceRecord
from moeplan.wire.documents import load_document

STUB = Path(__file__).with_name("metrics_stub.py")
TOOL = """import sys
print("GPU-aaaaaaaa-1, 1024, 579, 143771, 300.5")
print("GPU-bbbbbbbb-2, 2048, 579, 143771, [N/A]")
"""


@attrs.frozen
class Seen:
    """What a run left."""

    code: int
    record: dict[str, Any]
    run: dict[str, Any]
    rows: list[dict[str, Any]]
    data: bytes

    def values(self, metric: str, subject: str) -> list[int]:
        return [
            r["value"] for r in self.rows if (r["metric"], r["subject"], r["state"]) == (metric, subject, "measured")
        ]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def left(code: int, out: Path) -> Seen:
    documents = {path: json.loads(path.read_bytes()) for path in (out / "evidence").glob("*.json")}
    path, record = next((p, one) for p, one in documents.items() if one["kind"] == "evidence_record")
    load_document(path.read_bytes(), EvidenceRecord)
    (table,) = out.rglob("series.parquet")
    data = b"".join(one.read_bytes() for one in out.rglob("*") if one.is_file())
    run = next(one for one in documents.values() if one["kind"] == "run_manifest")
    return Seen(code, record, run, pq.read_table(table).to_pylist(), data)


@pytest.fixture
def seen(stated: list[str], tmp_path: Path) -> Seen:
    """Return what a whole run left: the engine starts after it began, serves, and ends."""
    port, out = free_port(), tmp_path / "out"
    tool = tmp_path / "tool.py"
    tool.write_text(TOOL)
    engine = subprocess.Popen(
        [sys.executable, "-c", f"import time; time.sleep(1.2); import os, sys; os.execv({sys.executable!r}, "
         f"[{sys.executable!r}, {str(STUB)!r}, '{port}'])"]
    )  # fmt: skip
    words = ["--endpoint", f"decode=http://127.0.0.1:{port}", "--node", "node-1", "--interval", "0.1"]
    words += ["--process-name", f"metrics_stub.py {port}", "--deadline", "30"]
    words += ["--gpu-command", f"{sys.executable} {tool}"]
    try:
        code = main(["collect", "metrics", *words, *stated, "-o", str(out)])
    finally:
        engine.kill()
        engine.wait()
    return left(code, out)


def test_phases_come_from_the_engine_and_the_run_ends_with_it(seen: Seen) -> None:
    names = [phase["name"] for phase in seen.record["payload"]["phases"]]
    assert names[0] == "idle"
    assert [name for name in names if name != "idle"] == ["warm", "loaded", "warm"]
    assert (seen.code, seen.run["state"], seen.run["announced"]) == (0, "closed", True)
    loaded = next(phase for phase in seen.record["payload"]["phases"] if phase["name"] == "loaded")
    assert 0.3e9 < loaded["endNs"] - loaded["startNs"] < 1.2e9  # 0.7 s
    assert seen.record["engineStart"] is not None


def test_every_device_is_read_under_a_pseudonym(seen: Seen) -> None:
    devices = {one["id"]: one for one in seen.record["payload"]["devices"]}
    gpus = [name for name, one in devices.items() if one["kind"] == "accelerator"]
    assert len(gpus) == 2
    assert devices["node-1"]["kind"] == "host"
    beats = len(seen.values("memory_used_bytes", "node-1"))
    assert beats > 10
    used = {tuple(set(seen.values("memory_used_bytes", gpu))) for gpu in gpus}
    assert used == {(1024 << 20,), (2048 << 20,)}
    assert all(len(seen.values("memory_used_bytes", gpu)) >= beats // 4 for gpu in gpus)  # a tool takes its time
    assert b"GPU-aaaaaaaa-1" not in seen.data
    assert b"127.0.0.1" not in seen.data
    assert str(STUB).encode() not in seen.data


def test_the_engines_gauges_and_its_role_are_rows(seen: Seen) -> None:
    (process,) = {row["subject"] for row in seen.rows if row["metric"] == "kv_cache_tokens"}
    assert set(seen.values("kv_cache_tokens", process)) == {4096}
    assert set(seen.values("requests_running", process)) == {0, 2}
    assert [row["text"] for row in seen.rows if row["metric"] == "role"] == ["decode"]
    failed = [row for row in seen.rows if row["subject"] == process and row["state"] == "failed"]
    assert failed  # before the engine's start


def test_ctrl_c_leaves_a_record_and_an_open_run(stated: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--endpoint", "http://127.0.0.1:9", "--node", "node-1", "--interval", "0.1", "--cpu-engine"]
    command = [sys.executable, "-m", "moeplan.cli.main", "collect", "metrics", *words, *stated, "-o", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not list(out.glob("evidence/run-*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    begun = json.loads(next(iter(out.glob("evidence/run-*.json"))).read_bytes())
    assert begun["observations"] == [{"type": "memory_series", "record": None, "files": []}]
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    seen = left(130, out)
    assert seen.run["state"] == "open"
    assert seen.run["observations"][0]["record"] is not None
    assert {device["id"] for device in seen.record["payload"]["devices"]} == {"node-1", "node-1-cpu"}


def test_a_file_ends_the_run(stated: list[str], tmp_path: Path) -> None:
    end = tmp_path / "end"
    end.touch()
    words = ["--endpoint", "http://127.0.0.1:9", "--node", "node-1", "--cpu-engine", "--until-file", str(end)]
    assert main(["collect", "metrics", *words, *stated, "-o", str(tmp_path / "out")]) == 0
    assert left(0, tmp_path / "out").run["state"] == "closed"


@pytest.mark.parametrize(
    ("more", "option"),
    [
        (["--endpoint", "ftp://x"], "--endpoint"),
        (["--endpoint", "http://x", "--node", "Not A Name"], "--node"),
        (["--endpoint", "http://x", "--node", "n", "--interval", "0"], "--interval"),
        (["--endpoint", "http://x", "--node", "n", "--gpu-command", "'"], "--gpu-command"),
        (["--endpoint", "http://x"], "--node"),
        (["--endpoint", "http://x", "--node", "n", "--pid", "0"], "--pid"),
    ],
)
def test_what_cannot_be_polled_is_a_named_error(
    more: list[str], option: str, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = more if "--node" in more or option == "--node" else [*more, "--node", "n"]
    assert main(["collect", "metrics", *words, *stated, "-o", str(tmp_path / "out")]) == 2
    assert option in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_probes_directory_without_records_is_said_and_nothing_is_lost(
    stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "end").touch()
    (tmp_path / "probe").mkdir()
    words: list[str] = ["--endpoint", "http://127.0.0.1:9", "--node", "n", "--cpu-engine", "--probe-dir"]
    words += [str(tmp_path / "probe"), "--until-file", str(tmp_path / "end")]
    assert main(["collect", "metrics", *words, *stated, "-o", str(tmp_path / "out")]) == 1
    assert "missing_record" in capsys.readouterr().err
    assert left(1, tmp_path / "out").run["state"] == "closed"
