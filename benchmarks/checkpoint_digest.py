"""Throughput of hashing a checkpoint, in MB/s, beside ``sha256sum`` over the same files.

Run: ``python benchmarks/checkpoint_digest.py [--files 8] [--megabytes 128]``. The files are written first, so all
reads come from the page cache: this measures the processor, not the disk. The best of three is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from moeplan.checkpoint.hashing import default_workers
from moeplan.checkpoint.manifest import digest_checkpoint


def write_shards(folder: Path, files: int, size: int) -> None:
    """Write safetensors files of one tensor of ``size`` bytes each."""
    block = os.urandom(1 << 20)
    for number in range(files):
        entry = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
        header = json.dumps({f"layer.{number}": entry}).encode()
        with (folder / f"model-{number:05}.safetensors").open("wb") as stream:
            stream.write(len(header).to_bytes(8, "little") + header)
            for _ in range(size >> 20):
                stream.write(block)


def best(action: Callable[[], object], rounds: int = 3) -> float:
    """Return the shortest wall-clock time of several runs, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Write the files, time both, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=128, help="MiB a file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shards(folder, args.files, args.megabytes << 20)
        total = sum(path.stat().st_size for path in folder.iterdir())
        rows = [
            (f"moeplan, {count} workers", best(partial(digest_checkpoint, folder, workers=count)))
            for count in sorted({1, default_workers()})
        ]
        sha256sum = shutil.which("sha256sum")
        if sha256sum is not None:
            command = [sha256sum, *map(str, sorted(folder.iterdir()))]
            rows.append(
                ("sha256sum, one process", best(lambda: subprocess.run(command, capture_output=True, check=True)))
            )
        for label, seconds in rows:
            print(f"{label:<24} {total / seconds / 1e6:8.0f} MB/s  {seconds:6.2f} s for {total / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
