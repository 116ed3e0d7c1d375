"""Import, verify and judge a million requests of a hundred tokens: seconds, memory, and whether both grow linearly.

Run: ``python benchmarks/million_requests.py [--requests 10000 …] [--tool vllm-bench aiperf] [--work DIR]``.

For each tool and size it writes files as the tool does (vllm-bench: ten files of a trial each; aiperf: one JSON Lines
file of one trial), runs the commands that a person would, each in a process of its own, and prints the seconds of each
and the most memory that any held. The tool's files are enclosed, so they are copied twice and hashed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DEMO, KEY = ROOT / "demo", ROOT / "tests/data/published-test-key.pem"
GAPS, CLIENTS, FILES = 99, 64, 10
MOMENT_NS = 1_796_056_559_000_000_000
AT = "2027-11-30T18:00:00Z"
COUNTED = ("import", "verify", "verdict")
LOAD = ["--devices", "1", "--runtime", "vllm", "--input-tokens", "128", "--output-tokens", "100", "--concurrency", "32"]
TARGETS = ["--target-ttft-ms", "200", "--target-inter-token-ms", "50"]


class Trial:
    """A closed loop of 64 clients; seconds on the clock of the tool, as differences of binary64 readings of it."""

    def __init__(self, requests: int, seed: int, begin: float = 4881.0) -> None:
        """Draw the trial."""
        draw = np.random.default_rng(seed)
        rounds = -(-requests // CLIENTS)
        self.ttft = draw.gamma(20, 0.0015, (rounds, CLIENTS))
        self.gaps = [draw.gamma(30, 0.0004, (CLIENTS, GAPS)) for _ in range(rounds)]
        self.latency = self.ttft + np.array([block.sum(axis=1) for block in self.gaps])
        start = begin + np.cumsum(self.latency + 0.0005, axis=0) - self.latency
        self.start, self.count = start.ravel()[:requests], requests
        self.ttft, self.latency = self.ttft.ravel()[:requests], self.latency.ravel()[:requests]

    def rows(self) -> Iterator[Any]:
        """Yield each request's gaps."""
        rows = (row for block in self.gaps for row in block)
        return (row for row, _ in zip(rows, range(self.count), strict=False))


def summary(name: str, values: Any) -> dict[str, float]:
    """Return what vLLM reports of a column in milliseconds."""
    made = {f"mean_{name}_ms": values.mean(), f"median_{name}_ms": np.median(values), f"std_{name}_ms": values.std()}
    made |= {f"p{percent}_{name}_ms": np.percentile(values, percent) for percent in (95, 99)}
    return {key: float(value) * 1000 for key, value in made.items()}


def write_vllm(work: Path, requests: int) -> None:
    """Write ten result files of ``vllm bench serve --save-result --save-detailed``."""
    for number in range(FILES):
        trial = Trial(requests // FILES, number)
        count = trial.count
        duration = float((trial.start + trial.latency).max() - trial.start.min())
        pooled = np.concatenate([block.ravel() for block in trial.gaps])[: count * GAPS]
        head = {
            "date": f"202611{number + 10}-172949", "endpoint_type": "openai-chat", "model_id": "tiny-moe",
            "num_prompts": count, "max_concurrency": CLIENTS, "duration": duration, "completed": count, "failed": 0,
            "total_input_tokens": 128 * count, "total_output_tokens": 100 * count,
            **summary("ttft", trial.ttft), **summary("itl", pooled), **summary("e2el", trial.latency),
        }  # fmt: skip
        columns = {
            "input_lens": [128] * count, "output_lens": [100] * count, "ttfts": trial.ttft, "itls": trial.rows(),
            "latencies": trial.latency, "start_times": trial.start, "queue_times": np.zeros(count),
            "generated_texts": ["word " * 80] * count, "errors": [""] * count,
        }  # fmt: skip
        path = work / f"trial-{number + 1:02}.json"
        with path.open("wb") as stream:
            stream.write(json.dumps(head).encode()[:-1])
            for key, column in columns.items():
                stream.write(b', "%b": [' % key.encode())
                for row, value in enumerate(column):
                    stream.write(b", " if row else b"")
                    stream.write(msgspec.json.encode(value.tolist() if hasattr(value, "tolist") else value))
                stream.write(b"]")
            stream.write(b"}")


def write_aiperf(work: Path, requests: int) -> None:
    """Write one ``profile_export.jsonl`` of aiperf: times in ms, instants in ns since 1970."""
    trial = Trial(requests, 99, 0.0)
    path = work / "profile_export.jsonl"
    columns = zip(trial.start.tolist(), trial.ttft.tolist(), trial.rows(), strict=True)
    with path.open("wb") as stream:
        for number, (start, ttft, gaps) in enumerate(columns):
            begin, first, between = MOMENT_NS + round(start * 1e9), round(ttft * 1e9), np.rint(gaps * 1e9).astype(int)
            latency = first + int(between.sum())
            record = {
                "metadata": {
                    "session_num": number, "x_request_id": f"{number:032x}", "credit_issued_ns": begin - 1000,
                    "request_start_ns": begin, "request_ack_ns": begin + first,
                    "request_end_ns": begin + latency + 9000, "benchmark_phase": "profiling", "phase_index": 0,
                    "was_cancelled": False,
                },
                "metrics": {
                    "time_to_first_token": {"value": first / 1e6, "unit": "ms"},
                    "request_latency": {"value": latency / 1e6, "unit": "ms"},
                    "input_sequence_length": {"value": 128, "unit": "tokens"},
                    "output_sequence_length": {"value": 100, "unit": "tokens"},
                    "usage_prompt_tokens": {"value": 128, "unit": "tokens"},
                    "usage_completion_tokens": {"value": 100, "unit": "tokens"},
                    "inter_chunk_latency": {"value": (between / 1e6).tolist(), "unit": "ms"},
                },
            }  # fmt: skip
            stream.write(msgspec.json.encode(record) + b"\n")


def run(*words: str | Path, allowed: tuple[int, ...] = (0,)) -> tuple[float, float, float]:
    """Run one moeplan command; return its seconds, its processor seconds and the most MiB that it held."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "moeplan.cli.main", *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    told = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in allowed:
        sys.exit(f"moeplan {words[0]} exited with {os.waitstatus_to_exitcode(status)}\n{told}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def prepare(work: Path) -> list[str | Path]:
    """Digest the demo's checkpoint, plan, write the auditor's policy; return the options that an import needs."""
    checkpoint, plan, packages = work / "checkpoint.json", work / "plan.json", DEMO / "runtime-packages.txt"
    run("checkpoint", "digest", DEMO / "tiny-moe", "-o", checkpoint)
    options: list[str | Path] = [
        "--registry",
        DEMO / "registry.json",
        "--checkpoint",
        checkpoint,
        "--runtime-packages",
        packages,
    ]
    run("plan", "tiny-moe", "cpu-host", *LOAD, *TARGETS, *options, "--output", plan)
    trust: list[str | Path] = [
        "--trust-key",
        KEY.with_suffix(".pub.pem"),
        "--test-keys",
        "--plan",
        plan,
        "--checkpoint",
        checkpoint,
    ]
    run("policy", "init", *trust, "--least-binding", "declared", "-o", work / "policy.json")
    return ["--plan", plan, *options[2:], "--requested-input", "128", "--requested-output", "100", "--ignore-eos"]


def measure(
    tool: str, files: list[Path], work: Path, stated: list[str | Path]
) -> dict[str, tuple[float, float, float]]:
    """Return seconds, processor seconds and MiB of each command."""
    imported, bundle = work / "imported", work / "bundle"
    policy: list[str | Path] = ["--policy", work / "policy.json"]
    extra = ["--utc-offset", "+00:00"] if tool == "vllm-bench" else ["--endpoint", "openai", "--model", "tiny-moe"]
    extra += ["--warmup-requests", "0", "--enclose", "tool-output"]
    heads = [f"--{name}={work / name}.json" for name in ("plan", "checkpoint")]
    registry: list[str | Path] = ["--registry", DEMO / "registry.json"]
    return {
        "import": run("import", tool, *files, *stated, *extra, "-o", imported),
        "bundle": run("bundle", "create", bundle, *heads, *registry, "--evidence", imported),
        "attest": run("attest", bundle, "--key", KEY),
        "verify": run("verify", bundle, *policy),
        "verdict": run("verdict", bundle, *policy, "--at", AT, "-o", work / "verdict.json", allowed=(0, 1, 3)),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--tool", nargs="+", choices=["vllm-bench", "aiperf"], default=["vllm-bench", "aiperf"])
    parser.add_argument("--work", type=Path, help="where to write (default: a temporary directory)")
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        tool, requests, work = args.write
        (Path(work) / "files").mkdir()
        {"vllm-bench": write_vllm, "aiperf": write_aiperf}[tool](Path(work) / "files", int(requests))
        return
    for tool in args.tool:
        for requests in args.requests:
            with tempfile.TemporaryDirectory(dir=args.work) as name:
                work = Path(name)
                stated = prepare(work)
                # By a process of its own: one that is started counts what its parent holds as its own memory.
                subprocess.run([sys.executable, __file__, "--write", tool, str(requests), str(work)], check=True)
                files = sorted((work / "files").iterdir())
                size = sum(path.stat().st_size for path in files) / 1e6
                made = measure(tool, files, work, stated)
            parts = ", ".join(
                f"{command} {seconds:.1f} s ({cpu:.1f}) {mib:.0f} MiB" for command, (seconds, cpu, mib) in made.items()
            )
            counted = sum(made[command][0] for command in COUNTED)
            busy = sum(made[command][1] for command in COUNTED)
            most = max(made[command][2] for command in COUNTED)
            print(f"{tool:10} {requests:9,} requests, {size:7,.0f} MB: {parts}", flush=True)
            together = f"{counted:.1f} s ({busy:.1f} s of processor time), at most {most:.0f} MiB"
            print(f"{'':10} import, verify and verdict {together}", flush=True)


if __name__ == "__main__":
    main()
