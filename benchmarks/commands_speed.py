"""How long ``moeplan check``, ``lint`` and ``render`` take with the installed plugins, from start to end.

Run: ``python benchmarks/commands_speed.py [--runs 15]``. The plan is Kimi K3 on eight MI355X with the demonstration's
site. Printed are the best wall time of each, the processor time of that run with its children, and the ratio to
``python -c "import attrs, json"``. Byte code is kept, as it is where moeplan is installed. Say on which machine and how
idle it was when quoting a figure.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SITE = Path(__file__).resolve().parents[1] / "demo" / "site-mi355x.yaml"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, help="runs of each, of which the best counts (default 15)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(work / "bytecode")
        moeplan = [str(Path(sys.executable).with_name("moeplan"))]
        plan, site, out = str(work / "plan.json"), str(SITE), str(work / "out")
        options = ["--devices", "8", "--concurrency", "16", "--tensor-parallel-size", "8", "--site", site, "-o", plan]
        subprocess.run(
            [*moeplan, "plan", "kimi-k3", "mi355x", *options], env=environment, check=True, capture_output=True
        )
        subprocess.run(
            [*moeplan, "render", plan, "--site", site, "-o", out], env=environment, check=True, capture_output=True
        )
        commands = {
            'python -c "import attrs, json"': [sys.executable, "-c", "import attrs, json"],
            "moeplan check": [*moeplan, "check", plan, "--site", site],
            "moeplan lint": [*moeplan, "lint", f"{out}/30-deployment.yaml", "--site", site],
            "moeplan render": [*moeplan, "render", plan, "--site", site, "-o", str(work / "again")],
        }
        base = None
        for name, words in commands.items():
            wall, cpu = best(words, environment, runs, work / "again")
            base = base or wall
            print(f"{name:32} {wall * 1000:7.1f} ms wall  {cpu * 1000:7.1f} ms processor  {wall / base:5.1f} x")


def best(words: list[str], environment: dict[str, str], runs: int, leftover: Path) -> tuple[float, float]:
    """Return wall and processor seconds of the quickest of several runs."""
    taken = []
    for _ in range(runs + 1):
        shutil.rmtree(leftover, ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(words, env=environment, check=True, capture_output=True)
        wall = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(taken[1:])


if __name__ == "__main__":
    main()
