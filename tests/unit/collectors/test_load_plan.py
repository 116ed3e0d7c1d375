"""Load plans by hand calculation; traces that are none."""

from __future__ import annotations

from fractions import Fraction

import pytest

from moeplan.collectors.load_plan import Workload, load_trace, plan_load
from moeplan.errors import InputError


def test_constant_arrivals_are_exact() -> None:
    plan = plan_load(Workload("constant", 4, 10, 5, rate=Fraction("0.3")), "1")
    assert [request.at_ns for request in plan.requests] == [0, 3_333_333_333, 6_666_666_666, 10_000_000_000]


def test_a_closed_loop_has_no_times_and_unlike_prompts() -> None:
    plan = plan_load(Workload("closed", 3, 10, 5, concurrency=2, prefix_share_bps=9999), "2")
    assert [request.at_ns for request in plan.requests] == [None] * 3
    assert [request.blocks for request in plan.requests] == [
        (("shared", 9), (f"own/2/{number}", 1)) for number in range(3)
    ]
    assert {request.input_tokens for request in plan.requests} == {10}


@pytest.mark.parametrize(("share", "blocks"), [(0, (("own/1/0", 10),)), (10_000, (("shared", 10),))])
def test_no_block_is_empty(share: int, blocks: tuple[tuple[str, int], ...]) -> None:
    plan = plan_load(Workload("closed", 1, 10, 5, concurrency=1, prefix_share_bps=share), "1")
    assert plan.requests[0].blocks == blocks


def test_another_part_of_a_run_has_other_arrivals_and_the_same_part_the_same() -> None:
    workload = Workload("poisson", 50, 10, 5, rate=Fraction(100), seed=3)
    assert plan_load(workload, "1") == plan_load(workload, "1")
    times = [[request.at_ns for request in plan_load(workload, part).requests] for part in ("1", "2")]
    assert times[0] != times[1]
    assert all(times[0][i] <= times[0][i + 1] for i in range(49))  # type: ignore[operator]


def test_a_trace_begins_at_its_first_request() -> None:
    lines = (
        b'{"timestamp": 5.25, "input_length": 3, "output_length": 2}\n\n'
        b'{"timestamp": 6, "input_length": 1, "output_length": 9, "x": 1.5}'
    )
    first, second = load_trace(lines)
    assert (first.at_ns, second.at_ns) == (0, 750_000)
    assert (first.input_tokens, second.output_tokens) == (3, 9)
    workload = Workload("trace", 2, 0, 0, trace=(first, second))
    assert (workload.least_input, workload.least_output) == (1, 2)


GOOD = '"timestamp": 1, "input_length": 9, "output_length": 2'


@pytest.mark.parametrize(
    ("line", "path", "code"),
    [
        ("{", "line 1", "invalid_json"),
        ("[]", "line 1", "invalid_json"),
        ("{}", "line 1.timestamp", "invalid_value"),
        ('{"timestamp": -1}', "line 1.timestamp", "invalid_value"),
        ('{"timestamp": true}', "line 1.timestamp", "invalid_value"),
        ('{"timestamp": NaN}', "line 1.timestamp", "invalid_value"),
        ('{"timestamp": 1e400}', "line 1.timestamp", "invalid_value"),
        ('{"timestamp": 1, "input_length": 0, "output_length": 1}', "line 1.input_length", "invalid_value"),
        ('{"timestamp": 1, "input_length": 1, "output_length": "1"}', "line 1.output_length", "invalid_value"),
        (f'{{{GOOD}, "hash_ids": [1, 2]}}', "line 1.hash_ids", "wrong_count"),
        (f'{{{GOOD}, "hash_ids": ["a"]}}', "line 1.hash_ids", "invalid_value"),
        (f'{{{GOOD}}}\n{{"timestamp": 0, "input_length": 1, "output_length": 1}}', "line 2.timestamp", "not_sorted"),
        ("", "$", "trace_size"),
    ],
)
def test_what_is_no_trace_is_named(line: str, path: str, code: str) -> None:
    with pytest.raises(InputError) as refused:
        load_trace(line.encode())
    assert (refused.value.issues[0].path, refused.value.issues[0].code) == (path, code)
