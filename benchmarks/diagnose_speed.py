"""Reading a large log for about 150 signatures: MB/s and peak memory, beside line-wise ``re`` on a part of it.

Run: ``python benchmarks/diagnose_speed.py [--megabytes 2000] [--signatures 150] [--runs 3]``. The log is made here:
lines as an engine writes them, most with colour codes before the text, some with a signature (``--hits`` of 100,000), a
few very long. Each reading is a process of its own; the best of ``--runs`` is printed, start-up and SHA-256 of the log
included, with the page cache warm. Say on which machine and how idle it was when quoting a figure.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SUBJECTS = (
    "rank", "worker", "scheduler", "router", "expert group", "draft model", "prefill worker", "decode worker",
    "cache block", "transfer engine", "weight shard", "attention backend", "graph capture", "memory pool", "handshake",
)  # fmt: skip
FAULTS = (
    "does not answer within the deadline", "has another world size than its peers", "is larger than what is free",
    "cannot be registered with the device", "was built for another architecture", "is not divisible by the group size",
    "lost its connection to the remote engine", "fell back to the slow path", "was evicted before it was sent",
    "is missing from the payload",
)  # fmt: skip
PATTERNS = (
    r"{subject} \(\d+\) {fault}",
    r"the {subject} of node-\d+ {fault}(: errno \d+)?$",
    r"{subject} 0x[0-9a-f]+ {fault}|no {subject} that {fault}",
    r"Failed to find the {subject} which {fault}",
    r"[Tt]he {subject} .* {fault}",
)
LINES = (
    "INFO 11-30 16:17:{0:02d} [loggers.py:271] Engine 000: Avg prompt throughput: {1}.4 tokens/s, Avg generation "
    "throughput: {1}.7 tokens/s, Running: {0} reqs, Waiting: 0 reqs, GPU KV cache usage: 3.{0}%",
    'INFO:     10.0.0.{0}:5{1} - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "DEBUG 11-30 16:17:{0:02d} [scheduler.py:88] step {1}: scheduled {0} requests, {1} tokens, 0 preempted",
    "INFO 11-30 16:17:{0:02d} [weight_utils.py:310] Loading safetensors checkpoint shards: {0}% Completed | {0}/96",
)


def signatures(count: int) -> list[dict[str, Any]]:
    """Return that many signatures, each with a pattern or a literal of its own."""
    made: list[dict[str, Any]] = []
    for index in range(count):
        subject, fault = SUBJECTS[index % len(SUBJECTS)], FAULTS[index // len(SUBJECTS) % len(FAULTS)]
        pattern = PATTERNS[index % len(PATTERNS)].format(subject=subject, fault=fault)
        text = f"Failed to find the {subject} which {fault}"
        literal = index % len(PATTERNS) == 3
        made.append(
            {"id": f"B-{index}", "literals": [text] if literal else [], "pattern": None if literal else pattern}
        )
    return made


def write_log(path: Path, size: int, hits: int) -> None:
    """Write a log of about ``size`` bytes; the same for every run."""
    draw = random.Random(1)
    block = "".join(_line(draw, hits) for _ in range(100_000)).encode()
    with path.open("wb") as stream:
        for _ in range(max(1, size // len(block))):
            stream.write(block)
            stream.write(b"x" * 300_000 + b"\n")


def _line(draw: random.Random, hits: int) -> str:
    said = draw.choice(LINES).format(draw.randrange(60), draw.randrange(1000, 9999))
    if draw.randrange(100_000) < hits:
        said = f"ERROR the {draw.choice(SUBJECTS)} of node-{draw.randrange(9)} {draw.choice(FAULTS)}"
    if draw.randrange(4):
        return f"\x1b[1;36m(EngineCore pid={draw.randrange(1000, 1100)})\x1b[0;0m {said}\n"
    return said + "\n"


def read(path: Path, count: int) -> None:
    """Read the log in this process and print lines and findings."""
    from moeplan.diagnosis.diagnose import diagnose
    from moeplan.model.plugin import FactSource, LogSignature

    shared: dict[str, Any] = {"severity": "error", "expectation": "informs", "cause": "c", "remedy": "r"}
    known = [
        LogSignature(
            id=one["id"], literals=tuple(one["literals"]), pattern=one["pattern"], sources=(FactSource("s"),), **shared
        )
        for one in signatures(count)
    ]
    found = diagnose(path, known)
    print(json.dumps([found.logs[0].lines, sum(finding.count for finding in found.findings)]))


def read_by_line(path: Path, count: int, size: int) -> int:
    """Return the bytes a second of one ``re`` search a line and signature."""
    searches = [re.compile((one["pattern"] or re.escape(one["literals"][0])).encode()) for one in signatures(count)]
    with path.open("rb") as stream:
        lines = stream.read(size).split(b"\n")
    began = time.perf_counter_ns()
    for line in lines:
        for search in searches:
            search.search(line)
    return size * 10**9 // (time.perf_counter_ns() - began)


def measure(path: Path, count: int) -> tuple[int, int, str]:
    """Return nanoseconds, peak resident bytes and output of one reading in a process of its own."""
    program = (
        "import resource, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__'); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    command = [sys.executable, "-c", program, __file__, "--read", str(path), "--signatures", str(count)]
    began = time.perf_counter_ns()
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    return time.perf_counter_ns() - began, int(shown[1]) * 1024, shown[0]


def main() -> None:
    """Make the log, read it, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--signatures", type=int, default=150)
    parser.add_argument("--hits", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read is not None:
        read(args.read, args.signatures)
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "engine.log"
        write_log(path, args.megabytes * 10**6, args.hits)
        size = path.stat().st_size
        took, peak, shown = min(measure(path, args.signatures) for _ in range(args.runs))
        print(f"{size / 1e6:.0f} MB, {args.signatures} signatures; lines and hits: {shown}")
        print(f"moeplan      {size * 1000 / took:8.1f} MB/s, peak {peak / 1e6:.0f} MB")
        print(f"re by line   {read_by_line(path, args.signatures, 10_000_000) / 1e6:8.1f} MB/s")


if __name__ == "__main__":
    main()
