"""The benchmark of a million requests, at a thousand: what it writes is imported, verified and judged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks/million_requests.py"


@pytest.mark.parametrize("tool", ["vllm-bench", "aiperf"])
def test_the_benchmark_runs(tool: str, tmp_path: Path) -> None:
    words = [sys.executable, str(SCRIPT), "--requests", "1000", "--tool", tool, "--work", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(rf"{tool} +1,000 requests, .* import \d+\.\d s .* verify .* verdict", done.stdout)
    assert list(tmp_path.iterdir()) == []
