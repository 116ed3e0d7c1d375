"""The benchmark of arrival times runs at 64 streams and sees every gap; how exactly, the benchmark says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_gaps_of_64_streams() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "collect_precision.py"), "--runs", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    best = json.loads(done.stdout)["best"]
    assert best["gaps"] == 64 * 99
    assert best["error_p95_ns"] >= 0
    assert 0 < best["client_cpu_percent"] < 100
