"""A real vLLM engine with the probe in it: started, asked, stopped; what it wrote, and what it says of itself."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
CHECKPOINT = REPOSITORY / "demo/tiny-moe"
ENGINE = os.environ.get("MOEPLAN_E2E_ENGINE", "")
"""Path of a ``vllm`` program whose environment has the probe installed; without it no engine is started."""
START_S = 240
COUNTERS = ("prompt_tokens", "prefix_cache_hits", "generation_tokens", "request_success")


class Engine:
    """An engine that serves the tiny checkpoint on a port of its own."""

    def __init__(self, directory: Path, log: Path, options: list[str], environment: dict[str, str]) -> None:
        self.directory, self.log = directory, log
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("MOEPLAN_PROBE_", "PYTEST"))}
        command = [ENGINE, "serve", str(CHECKPOINT), "--dtype", "bfloat16", "--max-model-len", "512"]
        command += [
            "--port",
            str(self.port),
            "--served-model-name",
            "tiny",
            "--gpu-memory-utilization",
            "0.3",
            *options,
        ]
        clean.update({"VLLM_CPU_KVCACHE_SPACE": "1", "MOEPLAN_PROBE_DIR": str(directory)}, **environment)
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, env=clean, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait(self) -> bool:
        """Return whether the engine came to serve; False where it ended instead."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                return False
            with contextlib.suppress(OSError), self._open("/health") as answer:
                return bool(answer.status == 200)
            time.sleep(0.5)
        raise TimeoutError(self.log.read_text(errors="replace")[-3000:])

    def _open(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        return urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers), timeout=60
        )

    def ask(self, prompt: str, tokens: int) -> None:
        """Send one completion of exactly this many tokens."""
        body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}
        with self._open("/v1/completions", body) as answer:
            assert json.load(answer)["usage"]["completion_tokens"] == tokens

    def counters(self) -> dict[str, int]:
        """Return the engine's own counters from its metrics."""
        with self._open("/metrics") as answer:
            rows = [row for row in answer.read().decode().splitlines() if not row.startswith("#")]
        totals = dict.fromkeys(COUNTERS, 0)
        for row in rows:
            for name in COUNTERS:
                if row.startswith((f"vllm:{name}_total{{", f"vllm:{name}{{")):
                    totals[name] += int(float(row.rsplit(" ", 1)[1]))
        return totals

    def stop(self) -> None:
        """End the engine and all its processes."""
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            time.sleep(1)


@contextlib.contextmanager
def engine(directory: Path, options: list[str], environment: dict[str, str]) -> Iterator[Engine]:
    """Start an engine and stop it whatever happens."""
    started = Engine(directory / "probe", directory / "engine.log", options, environment)
    try:
        yield started
    finally:
        started.stop()


def lines(directory: Path, kind: str) -> list[dict[str, Any]]:
    """Return the lines of the only record of a kind."""
    (path,) = directory.glob(f"{kind}-*.jsonl")
    return [json.loads(row) for row in path.read_bytes().split(b"\n")[:-1]]


def digests_of_files() -> dict[str, tuple[str, int, str, list[int]]]:
    """Return SHA-256, size, dtype and shape of every tensor, from the byte ranges that the files' headers give."""
    found: dict[str, tuple[str, int, str, list[int]]] = {}
    for path in sorted(CHECKPOINT.glob("*.safetensors")):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + offset for offset in entry["data_offsets"])
                digest = hashlib.sha256(data[begin:end]).hexdigest()
                found[name] = (digest, end - begin, entry["dtype"], entry["shape"])
    return found
