"""Plans a second in a batch, and the time ``moeplan plan`` takes beside ``python -c "import attrs, json"``.

Run: ``python benchmarks/plan_speed.py [--lines 50000] [--runs 20]``. Two inputs are planned, each in both forms, by the
command itself with ``--output``, start-up and fsync included: ``sweep`` draws each key from a few values, as a sweep
over a grid does; ``wild`` draws numbers freely, so that hardly a part of a plan occurs twice. The best of three is
printed; start-up times are the best of ``--runs``. Say on which machine and how idle it was when quoting a figure.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MODELS = ("kimi-k3", "deepseek-v4-pro", "glm-5-2", "gemma-4-26b-a4b-it", "qwen3-30b-a3b")
HARDWARE = ("h200", "h100", "a100", "rtx6000")
GRID: dict[str, tuple[Any, ...]] = {
    "devices": (1, 2, 4, 7, 8, 12, 16, 32, 128, 256),
    "devicesPerNode": (1, 2, 4, 6, 8, 16, 72),
    "reserveBps": (0, 500, 1000, 1300, 2000, 5000, 9999),
    "runtime": ("vllm", "VLLM ", "sglang", "tensorrt-llm", ""),
    "inputTokens": (128, 1024, 4096, 32768),
    "outputTokens": (1, 256, 1024, 32768),
    "concurrency": (1, 8, 32, 256),
    "targetTtftMs": (200, 500, 1000, 5000),
    "targetInterTokenMs": (1, 15, 50, 100),
    "availability": ("single", "ha"),
}
RANGES = {
    "devices": 2000,
    "devicesPerNode": 72,
    "reserveBps": 9999,
    "inputTokens": 100_000,
    "outputTokens": 10_000,
    "concurrency": 512,
    "targetTtftMs": 10_000,
    "targetInterTokenMs": 1000,
}


def write_input(path: Path, lines: int, wild: bool) -> None:
    """Write scenarios as JSON Lines, the same for every run."""
    draw = random.Random(1)
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(lines):
            scenario: dict[str, Any] = {"model": draw.choice(MODELS), "hardware": draw.choice(HARDWARE)}
            scenario |= {key: draw.choice(values) for key, values in GRID.items()}
            if wild:
                scenario |= {key: draw.randint(1, most) for key, most in RANGES.items()}
            stream.write(json.dumps(scenario) + "\n")


def seconds(command: list[str], runs: int) -> float:
    """Return the least wall time of ``runs`` runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    moeplan = str(Path(sys.executable).with_name("moeplan"))
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("sweep", "wild"):
            source, target = Path(folder, f"{name}.jsonl"), Path(folder, "plans.jsonl")
            write_input(source, args.lines, name == "wild")
            for form in ("1.0.0", "1.1.0"):
                command = [moeplan, "plan", "--batch", str(source), "--schema-version", form, "--output", str(target)]
                took = seconds(command, 3)
                rate = args.lines / took
                print(
                    f"batch {name:5} form {form}: {rate:8.0f} plans/s on {cores} core(s), {args.lines} in {took:.2f} s"
                )
    base = seconds([sys.executable, "-c", "import attrs, json"], args.runs)
    for options in ([], ["--json"], ["--json", "--schema-version", "1.0.0"]):
        took = seconds([moeplan, "plan", "kimi-k3", "h200", "--devices", "8", *options], args.runs)
        ratio = took / base
        words = " ".join(["moeplan plan", *options])
        print(f"{words}: {took * 1000:.1f} ms, {ratio:.2f} × the {base * 1000:.1f} ms of importing attrs and json")


if __name__ == "__main__":
    main()
