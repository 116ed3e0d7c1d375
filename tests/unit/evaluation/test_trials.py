"""What a trial shows, against independent sweeps and hand calculation."""

from __future__ import annotations

import random
from array import array

import attrs
import pytest

from moeplan.evaluation.trials import (
    TRIAL_COUNTS,
    chunk_gap_groups,
    concurrency_peak,
    concurrency_sustained,
    ttft_groups,
)
from moeplan.model.evidence import EngineCounters, ServingTrial
from moeplan.model.tables import ChunkGapTable, table_faults
from tests.build import Request, build_plan, make_tables, make_trial, steady_requests


def in_flight(intervals: list[tuple[int, int]], time: int) -> int:
    return sum(start <= time < end for start, end in intervals)


def sustained_by_hand(intervals: list[tuple[int, int]]) -> int:
    """Look at every nanosecond of the window, one after the other."""
    first, last = min(start for start, _ in intervals), max(start for start, _ in intervals)
    stop = last if last > first else max(end for _, end in intervals)
    levels = [in_flight(intervals, time) for time in range(first, stop)]
    if not levels:
        return max(in_flight(intervals, time) for time in range(first, first + 1))
    return max(
        (level for level in range(max(levels) + 1) if 10 * sum(x >= level for x in levels) >= 9 * len(levels)),
        default=0,
    )


def table_of(intervals: list[tuple[int, int]]) -> list[Request]:
    return [Request(start, 0, (), end_ns=end) for start, end in sorted(intervals)]


@pytest.mark.parametrize("seed", range(40))
def test_concurrency_equals_a_sweep_over_every_nanosecond(seed: int) -> None:
    rng = random.Random(seed)
    span = rng.choice([1, 5, 40])
    intervals = [(start, start + rng.randrange(0, 25)) for start in (rng.randrange(span) for _ in range(12))]
    requests, _ = make_tables(table_of(intervals))
    assert concurrency_sustained(requests) == sustained_by_hand(intervals)
    ends = max(end for _, end in intervals)
    assert concurrency_peak(requests) == max(in_flight(intervals, time) for time in range(ends + 1))


def test_a_closed_loop_of_four_sustains_four() -> None:
    requests, _ = make_tables(steady_requests(240))
    assert concurrency_sustained(requests) == concurrency_peak(requests) == 4


def test_requests_one_after_the_other_sustain_one() -> None:
    requests, _ = make_tables(table_of([(0, 10), (10, 20), (20, 30)]))
    assert concurrency_sustained(requests) == concurrency_peak(requests) == 1


def test_ninety_percent_of_the_window_is_enough_and_less_is_not() -> None:
    """Window 0 to 100: two in flight up to 90 (exactly 90 %), then up to 89."""
    for until, expected in ((90, 2), (89, 1)):
        requests, _ = make_tables(table_of([(0, 200), (0, until), (100, 200)]))
        assert concurrency_sustained(requests) == expected


def test_the_ramp_down_does_not_count() -> None:
    requests, _ = make_tables(table_of([(0, 10_000), (0, 100), (100, 200)]))
    assert concurrency_sustained(requests) == 2


def test_all_sent_at_once_count_to_the_last_end() -> None:
    requests, _ = make_tables(table_of([(5, 15), (5, 15), (5, 15)]))
    assert concurrency_sustained(requests) == 3
    requests, _ = make_tables(table_of([(5, 15), (5, 15), (5, 1000)]))
    assert concurrency_sustained(requests) == 1


def test_failed_requests_have_no_first_token_time() -> None:
    rows = [
        Request(0, 7),
        Request(1, 8, outcome="error"),
        Request(2, 9, outcome="truncated"),
        Request(3, 0, (), chunks=0),
    ]
    groups = ttft_groups(make_tables(rows)[0])
    assert [(tuple(group.values), group.lost) for group in groups] == [((7,), 0), ((), 1), ((), 1), ((), 1)]


def test_a_failed_request_keeps_its_gaps_and_adds_a_lost_one() -> None:
    rows = [
        Request(0, 1, (3, 4)),
        Request(1, 1, (5,), "error"),
        Request(2, 1, ()),
        Request(3, 0, (), "error", chunks=0),
    ]
    groups = chunk_gap_groups(*make_tables(rows))
    assert [(tuple(group.values), group.lost) for group in groups] == [((3, 4), 0), ((5,), 1), ((), 0), ((), 1)]


def test_gaps_follow_start_order_where_the_tools_order_is_another() -> None:
    requests, _ = make_tables([Request(0, 1, (3,)), Request(1, 1, (4, 5)), Request(2, 1, (6,))])
    requests = attrs.evolve(requests, request=array("q", [2, 0, 1]))
    gaps = ChunkGapTable(array("q", [0, 0, 1, 2]), array("q", [1, 2, 1, 1]), array("q", [4, 5, 6, 3]))
    assert not list(table_faults(requests, gaps, 10**12))
    assert [tuple(group.values) for group in chunk_gap_groups(requests, gaps)] == [(3,), (4, 5), (6,)]


def count(metric: str, rows: list[Request], **trial: object) -> tuple[int | None, str | None]:
    item = make_trial(build_plan(), 1, rows, **trial)  # type: ignore[arg-type]
    assert item.requests is not None
    assert isinstance(item.record.payload, ServingTrial)
    return TRIAL_COUNTS[metric](item.requests, item.record.payload)


MIXED = [
    Request(0, input_tokens=32, output_tokens=5),
    Request(1, input_tokens=30, output_tokens=7),
    Request(2, input_tokens=1, output_tokens=0, outcome="error", usage=0),
    Request(3, input_tokens=2, output_tokens=1, outcome="truncated"),
]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("failed_requests", 2), ("input_tokens_least", 30), ("output_tokens_least", 5), ("output_tokens_most", 7)],
)
def test_counts_by_hand(metric: str, expected: int) -> None:
    assert count(metric, MIXED) == (expected, None)


@pytest.mark.parametrize("metric", ["input_tokens_least", "output_tokens_least", "output_tokens_most"])
def test_token_counts_come_from_the_servers_usage_of_complete_requests(metric: str) -> None:
    assert count(metric, [attrs.evolve(MIXED[0], usage=0), MIXED[1]]) == (None, "no_server_usage")
    assert count(metric, MIXED[2:]) == (None, "no_complete_requests")


@pytest.mark.parametrize(
    ("cached", "prompt", "expected"),
    [(0, 100, 0), (1, 10_000, 1), (1, 10_001, 1), (10_000, 10_001, 10_000), (1, 3, 3334), (5, 5, 10_000)],
)
def test_the_prefix_cache_share_is_rounded_up(cached: int, prompt: int, expected: int) -> None:
    counters = EngineCounters(1, prompt, cached, 1)
    assert count("prefix_cache_share_basis_points", MIXED, engine_counters=counters) == (expected, None)


@pytest.mark.parametrize(
    ("counters", "reason"),
    [
        (None, "no_engine_counters"),
        (EngineCounters(1, 9, None, 1), "no_engine_counters"),
        (EngineCounters(1, 0, 0, 1), "no_prompt_tokens"),
        (EngineCounters(1, 9, 10, 1), "counters_contradict"),
        (EngineCounters(1, 1, 2**53 - 1, 1), "counters_contradict"),
    ],
)
def test_a_share_that_cannot_be_told_says_why(counters: EngineCounters | None, reason: str) -> None:
    assert count("prefix_cache_share_basis_points", MIXED, engine_counters=counters) == (None, reason)


def test_counters_close_with_the_declared_warm_up() -> None:
    """The recorded trials' own sums: 256 = 240 + 16 requests, 64 tokens asked for in and out each."""
    rows = [Request(index, input_tokens=64, output_tokens=64) for index in range(240)]
    warm = {"warmup": 16, "warmup_input_tokens": 1024, "warmup_output_tokens": 1024}
    closing = EngineCounters(256, 16_384, 0, 16_384)
    assert count("engine_counter_differences", rows, engine_counters=closing, **warm) == (0, None)
    for changed in ({"requests": 255}, {"prompt_tokens": 16_385}, {"generation_tokens": 0}):
        other = attrs.evolve(closing, **changed)
        assert count("engine_counter_differences", rows, engine_counters=other, **warm) == (1, None)
    assert count("engine_counter_differences", rows, engine_counters=EngineCounters(0, 0, 0, 0), **warm) == (3, None)


def test_counters_say_nothing_without_a_declared_warm_up_or_at_all() -> None:
    assert count("engine_counter_differences", MIXED, warmup=None) == (None, "warmup_undeclared")
    assert count("engine_counter_differences", MIXED, engine_counters=None) == (None, "no_engine_counters")


def test_only_complete_requests_are_the_engines_requests() -> None:
    """The engine counts requests that it finished; tokens of those that broke off were made all the same."""
    counters = EngineCounters(2, 65, 0, 13)
    assert count("engine_counter_differences", MIXED, engine_counters=counters) == (0, None)


def test_tables_past_exact_integers_are_refused_before_they_are_judged() -> None:
    requests, gaps = make_tables([Request(0, input_tokens=2**53), Request(1, output_tokens=2**53 - 1)])
    assert [issue.code for issue in table_faults(requests, gaps, 10**12)] == ["too_large"]
