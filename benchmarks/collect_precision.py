"""How exactly ``moeplan collect endpoint`` sees when chunks arrive, and what it takes of the machine meanwhile.

    python benchmarks/collect_precision.py [--streams 64] [--tokens 100] [--pace-ms 20] [--runs 3] [--realtime] [--json]

A stub in a process of its own streams to so many requests at once, and keeps the moment it wrote each chunk, on the
same monotonic clock. The error of a gap is what the client saw less what the stub did. Of several runs the best is the
client's: in the others something else had the processor, which ``--realtime`` (root) keeps away. Exit 1 where its 95th
percentile is over a millisecond.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from moeplan.collectors.endpoint_connection import Connections, Deadlines  # noqa: E402
from moeplan.collectors.endpoint_requests import get_bytes  # noqa: E402
from moeplan.collectors.endpoint_target import TargetOptions, open_target  # noqa: E402
from moeplan.collectors.endpoint_trial import ObservedTrial, run_load  # noqa: E402
from moeplan.collectors.load_plan import LoadPlan, PlannedRequest  # noqa: E402

LIMIT_NS = 1_000_000


def percentile(values: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile."""
    return sorted(values)[-(-percent * len(values) // 100) - 1]


async def run_once(url: str, streams: int, tokens: int) -> tuple[ObservedTrial, list[int]]:
    """Stream once; return what was seen and the error of every gap in ns."""
    target = await open_target(TargetOptions(url=url, api="completions"))
    try:
        prompts = [f"stream {number} of run {url}" for number in range(streams)]
        bodies = [target.request(prompt, tokens) for prompt in prompts]
        requests = tuple(PlannedRequest(None, ((prompt, 1),), tokens) for prompt in prompts)
        seen = await run_load(LoadPlan("closed", requests, streams), bodies, target.connections, Deadlines())
        pages = Connections(target.address)
        page = await pages.exchange(get_bytes(target.address, "/written", None), Deadlines())
        pages.close()
        written = json.loads(b"".join(piece for _, piece in page.pieces))
    finally:
        target.close()
    errors = []
    for request in seen.requests:
        sent = written[json.dumps(prompts[request.index])][:tokens]  # what follows is usage and [DONE]
        arrived = [at for at, _ in request.chunks]
        assert len(sent) == len(arrived) == tokens, request
        errors += [
            abs((late - early) - (after - before))
            for (early, late), (before, after) in zip(pairwise(arrived), pairwise(sent), strict=True)
        ]
    return seen, errors


def measure(streams: int, tokens: int, pace_ms: float) -> dict[str, int]:
    """Return one run's figures: gaps, their errors in ns, and the client's share of a core in percent."""
    command = [sys.executable, "-m", "tests.stub_server.server", "--pace-ms", str(pace_ms)]
    stub = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert stub.stdout is not None
        url = stub.stdout.readline().strip()
        seen, errors = asyncio.run(run_once(url, streams, tokens))
    finally:
        stub.kill()
        stub.wait()
    return {
        "gaps": len(errors),
        "error_p50_ns": percentile(errors, 50),
        "error_p95_ns": percentile(errors, 95),
        "error_p99_ns": percentile(errors, 99),
        "loop_lag_p99_ns": seen.lag_p99_ns,
        "client_cpu_percent": seen.cpu_ns * 100 // seen.wall_ns,
        "chunks_per_second": streams * tokens * 10**9 // seen.wall_ns,
    }


def ask_for_realtime() -> bool:
    """Take this process, and the stub it starts, before whatever else runs here; return whether that was allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    except OSError:
        return False
    return True


def main() -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--pace-ms", type=float, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--realtime", action="store_true", help="ask for real-time scheduling of both processes")
    args = parser.parse_args()
    realtime = args.realtime and ask_for_realtime()
    runs = [measure(args.streams, args.tokens, args.pace_ms) for _ in range(args.runs)]
    best = min(runs, key=lambda run: run["error_p95_ns"])
    if args.json:
        print(json.dumps({"realtime": realtime, "runs": runs, "best": best}))
    else:
        print(
            f"{args.streams} streams, {args.tokens} chunks each, {args.pace_ms} ms apart, {args.runs} runs; the best:"
        )
        for name, value in best.items():
            print(
                f"  {name.replace('_', ' '):20} {value / 1000:,.1f} µs"
                if name.endswith("ns")
                else f"  {name.replace('_', ' '):20} {value}"
            )
    return 1 if best["error_p95_ns"] > LIMIT_NS else 0


if __name__ == "__main__":
    sys.exit(main())
