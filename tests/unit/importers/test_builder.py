"""Tables put together request by request: order, clocks, wide gaps, and what does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.importers.builder import TrialBuilder


def _add(builder: TrialBuilder, request: int, start: int, gaps: Any = (), **changed: Any) -> None:
    gaps = list(gaps)
    row: dict[str, Any] = {
        "queue_ns": 0, "ttft_ns": 5, "gaps": iter(gaps), "end_ns": start + 5 + sum(gaps), "input_tokens": 8,
        "output_tokens": len(gaps) + 1, "usage": True, "outcome": "complete",
    }  # fmt: skip
    builder.add(request, start, **(row | changed))


def test_rows_come_in_start_order_and_gaps_by_request() -> None:
    builder = TrialBuilder()
    _add(builder, 2, 1_000_000_070, [7, 8])
    _add(builder, 0, 1_000_000_020, [3])
    _add(builder, 1, 1_000_000_010, ttft_ns=0, outcome="error", output_tokens=0, usage=False)
    _add(builder, 3, 1_000_000_020, [9])
    requests, gaps = builder.tables()
    assert len(builder) == 4
    assert list(requests.request) == [1, 0, 3, 2]
    assert list(requests.start_ns) == [0, 10, 10, 60]
    assert list(requests.end_ns) == [5, 18, 24, 80]
    assert list(requests.chunks) == [0, 2, 2, 3]
    assert list(requests.usage) == [0, 1, 1, 1]
    assert requests.outcome == ("error", "complete", "complete", "complete")
    assert list(gaps.request) == [0, 2, 2, 3]
    assert list(gaps.ordinal) == [1, 1, 2, 1]
    assert list(gaps.gap_ns) == [3, 7, 8, 9]


def test_gaps_past_32_bits_are_kept() -> None:
    builder = TrialBuilder()
    _add(builder, 0, 0, [2**31 - 1])
    assert builder.tables()[1].gap_ns.typecode == "i"
    _add(builder, 1, 1, [2**31, 4])
    gaps = builder.tables()[1].gap_ns
    assert (gaps.typecode, list(gaps)) == ("q", [2**31 - 1, 2**31, 4])
    with pytest.raises(OverflowError):
        _add(builder, 2, 2, [2**63], end_ns=2)


def test_a_stated_origin_and_number_of_chunks() -> None:
    builder = TrialBuilder()
    _add(builder, 0, 110, chunks=1, ttft_ns=0)
    requests, gaps = builder.tables(100, origin_ns=100)
    assert (list(requests.start_ns), list(requests.chunks), len(gaps)) == ([10], [1], 0)
    with pytest.raises(InputError) as caught:
        builder.tables(14, origin_ns=100)
    assert caught.value.issues[0].code == "outside_interval"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"chunks": 3}, "gap_count"),
        ({"end_ns": 3}, "outside_request"),
        ({"outcome": "fine"}, "invalid_value"),
        ({"output_tokens": -1}, "negative"),
    ],
)
def test_what_does_not_hold(changed: dict[str, Any], code: str) -> None:
    builder = TrialBuilder()
    _add(builder, 0, 0, [2], **changed)
    with pytest.raises(InputError) as caught:
        builder.tables()
    assert code in [issue.code for issue in caught.value.issues]


def test_a_request_given_twice() -> None:
    builder = TrialBuilder()
    _add(builder, 0, 0)
    _add(builder, 0, 1)
    with pytest.raises(InputError) as caught:
        builder.tables()
    assert caught.value.issues[0].code == "rows_not_numbered"
