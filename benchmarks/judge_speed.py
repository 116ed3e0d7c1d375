"""Time and memory of reading and judging a large trial, beside pyarrow's reader and numpy's percentile.

Run: ``python benchmarks/judge_speed.py [--requests 100000] [--gaps 64]``. One synthetic trial; the best of three is
printed, with the ratio to the plain library doing the nearest thing: pyarrow decoding the same bytes without a check,
numpy sorting the same values once. The last line is the most memory the process held.
"""

from __future__ import annotations

import argparse
import io
import random
import resource
import time
from array import array
from collections.abc import Callable

import numpy as np
import pyarrow.parquet as pq

from moeplan.evaluation.quantiles import judge_quantile
from moeplan.evaluation.trials import chunk_gap_groups, concurrency_sustained, ttft_groups
from moeplan.model.tables import ChunkGapTable, RequestTable, table_faults
from moeplan.wire.tables import dump_chunk_gaps, dump_requests, load_chunk_gaps, load_requests

LIMIT_NS = 50_000_000


def make_trial(requests: int, gaps: int) -> tuple[RequestTable, ChunkGapTable, int]:
    """Return a closed loop of four clients, its gaps, and the trial's duration in ns."""
    draw = random.Random(7)
    starts, ends, ttfts = array("q"), array("q"), array("q")
    request_column, ordinal_column, gap_column = array("q"), array("q"), array("q")
    free = [0, 0, 0, 0]
    for request in range(requests):
        client = min(range(4), key=free.__getitem__)
        start, ttft = free[client], 20_000_000 + draw.randrange(15_000_000)
        values = [7_000_000 + draw.randrange(2_000_000) for _ in range(gaps)]
        starts.append(start)
        ttfts.append(ttft)
        ends.append(start + ttft + sum(values))
        free[client] = ends[-1] + 100_000
        request_column.extend([request] * gaps)
        ordinal_column.extend(range(1, gaps + 1))
        gap_column.extend(values)
    whole = array("q", bytes(8 * requests))
    table = RequestTable(
        request=array("q", range(requests)),
        start_ns=starts,
        queue_ns=whole,
        ttft_ns=ttfts,
        end_ns=ends,
        chunks=array("q", [gaps + 1]) * requests,
        input_tokens=array("q", [128]) * requests,
        output_tokens=array("q", [gaps + 1]) * requests,
        usage=array("q", [1]) * requests,
        outcome=("complete",) * requests,
    )
    return table, ChunkGapTable(request_column, ordinal_column, gap_column), max(ends)


def best(action: Callable[[], object], runs: int = 3) -> float:
    """Return the least seconds of several runs."""
    least = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        action()
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--gaps", type=int, default=64)
    args = parser.parse_args()
    requests, gaps, duration = make_trial(args.requests, args.gaps)
    rows, chunks = dump_requests(requests), dump_chunk_gaps(gaps)
    print(f"{len(requests)} requests, {len(gaps)} gaps; Parquet {(len(rows) + len(chunks)) / 1e6:.1f} MB")

    plain = best(lambda: (pq.read_table(io.BytesIO(rows)), pq.read_table(io.BytesIO(chunks))))
    strict = best(lambda: (load_requests(rows), load_chunk_gaps(chunks)))
    print(f"load, closed schema and footer checked: {strict:.3f} s, {strict / plain:.1f} × pyarrow alone")

    checked = best(lambda: list(table_faults(requests, gaps, duration)))
    print(f"check rows against each other:          {checked:.3f} s")

    values = np.frombuffer(gaps.gap_ns, dtype=np.int64)
    sort = best(lambda: np.sort(values))
    judge = best(lambda: judge_quantile(chunk_gap_groups(requests, gaps), 95, LIMIT_NS))
    print(f"judge p95 of the gaps:                  {judge:.3f} s, {judge / sort:.1f} × numpy's sort")
    first = best(lambda: judge_quantile(ttft_groups(requests), 95, LIMIT_NS))
    print(f"judge p95 of TTFT:                      {first:.3f} s")
    print(f"concurrency sustained:                  {best(lambda: concurrency_sustained(requests)):.3f} s")
    print(f"most memory held: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
