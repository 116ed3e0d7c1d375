"""Recomputation by the tool's definitions: against numpy on random integers, exact where numpy rounds."""

from __future__ import annotations

from array import array
from fractions import Fraction

import numpy as np
import pytest

from moeplan.importers.recompute import Recomputation, linear_percentile
from moeplan.model.tables import ChunkGapTable, RequestTable


@pytest.mark.parametrize("count", [1, 2, 3, 20, 59, 60, 240])
@pytest.mark.parametrize("percent", ["0", "50", "95", "99", "99.9", "100"])
def test_linear_percentile_equals_numpy_s(count: int, percent: str) -> None:
    values = np.sort(np.random.default_rng(count).integers(0, 10**9, count))
    ours = linear_percentile(values.tolist(), Fraction(percent))
    assert float(ours) == pytest.approx(np.percentile(values, float(percent)), rel=1e-12)


def test_linear_percentile_is_exact() -> None:
    assert linear_percentile([0, 1], Fraction(1, 3)) == Fraction(1, 300)
    assert linear_percentile([], Fraction(50)) == 0


def tables(lengths: list[int], tokens: list[int], outcomes: tuple[str, ...]) -> tuple[RequestTable, ChunkGapTable]:
    count = len(lengths)
    zero, ones = array("q", [0] * count), array("q", [1] * count)
    requests = RequestTable(
        request=array("q", range(count)),
        start_ns=array("q", range(count)),
        queue_ns=zero,
        ttft_ns=array("q", [length // 3 for length in lengths]),
        end_ns=array("q", [row + length for row, length in enumerate(lengths)]),
        chunks=array("q", [2] * count),
        input_tokens=ones,
        output_tokens=array("q", tokens),
        usage=ones,
        outcome=outcomes,
    )
    gaps = ChunkGapTable(array("q", range(count)), ones, array("q", [length // 5 for length in lengths]))
    return requests, gaps


def test_every_statistic_equals_numpy_s_over_the_tool_s_successes() -> None:
    rng = np.random.default_rng(11)
    lengths = rng.integers(10**6, 10**9, 50)
    tokens = rng.integers(1, 64, 50)
    outcomes = tuple(["complete", "truncated", "error", "complete", "complete"] * 10)
    kept = np.array([outcome != "error" for outcome in outcomes])
    requests, gaps = tables(lengths.tolist(), tokens.tolist(), outcomes)
    made = Recomputation(requests, gaps)
    several = kept & (tokens > 1)
    series = {
        "ttft": lengths[kept] // 3,
        "e2el": lengths[kept],
        "itl": lengths[kept] // 5,
        "tpot": (lengths[several] - lengths[several] // 3) / (tokens[several] - 1),
    }
    for name, values in series.items():
        expected = {"mean": np.mean(values), "median": np.median(values), "std": np.std(values)}
        expected["p90"] = np.percentile(values, 90)
        for kind, value in expected.items():
            figure = made.figure(f"{kind}_{name}_ms")
            assert figure is not None
            assert float(figure) == pytest.approx(value / 1e6, rel=1e-9), (kind, name)
    assert made.figure("completed") == 40
    assert made.figure("failed") == 10
    assert made.figure("total_output_tokens") == int(tokens[kept].sum())
    assert made.figure("request_goodput") is None


def test_no_success_gives_zeros_as_the_tool_does() -> None:
    made = Recomputation(*tables([10], [5], ("error",)))
    for name in ("mean_ttft_ms", "std_itl_ms", "p99_tpot_ms", "median_e2el_ms"):
        assert made.figure(name) == 0
