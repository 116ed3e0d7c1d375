"""The collector's raw record: judged request by request, and refused where it is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moeplan.collectors.endpoint_raw import ObservedRequest, TrialHead, TrialTail, dump_raw
from moeplan.errors import InputError
from moeplan.importers.endpoint_raw import BUSY_PERCENT, import_endpoint_raw, judge
from tests.unit.importers.made import inputs

MS = 1_000_000


def request(index: int, sent: int = 0, **changed: Any) -> ObservedRequest:
    """A request of 3 tokens: sent, 5 ms to the first chunk, two gaps of 2 and 4 ms."""
    made: dict[str, Any] = {
        "due": sent,
        "end": sent + 12 * MS,
        "asked_input": 10,
        "asked_output": 3,
        "status": 200,
        "chunks": ((sent + 5 * MS, 1), (sent + 7 * MS, 1), (sent + 11 * MS, 1)),
        "prompt_tokens": 14,
        "completion_tokens": 3,
        "finish": "length",
    }
    return ObservedRequest(index=index, sent=sent, **(made | changed))


def raw(*requests: ObservedRequest, cpu_ns: int = 1 * MS, lag: int = 0, path: str = "direct") -> bytes:
    head = TrialHead("chat", "closed", path, "endpoint-x", 2, True, 10, 3, 7)
    tail = TrialTail(1_796_059_734, 999_000_000, 50 * MS, cpu_ns, lag, 2, 2, 28, 6)
    return dump_raw(head, requests, tail)


def test_tables_by_hand() -> None:
    trial = import_endpoint_raw(raw(request(1, 20 * MS, due=17 * MS), request(0)), inputs())
    table, gaps = trial.requests, trial.chunk_gaps
    assert (list(table.request), list(table.start_ns), list(table.queue_ns)) == ([0, 1], [0, 20 * MS], [0, 3 * MS])
    assert (list(table.ttft_ns), list(table.end_ns)) == ([5 * MS] * 2, [12 * MS, 32 * MS])
    assert list(gaps.gap_ns) == [2 * MS, 4 * MS] * 2
    assert (list(table.input_tokens), list(table.output_tokens), list(table.usage)) == ([14] * 2, [3] * 2, [1] * 2)
    assert (trial.interval.start, trial.interval.end) == ("2026-11-30T17:28:54Z", "2026-11-30T17:28:56Z")
    assert (trial.warmup_requests, trial.warmup_input_tokens, trial.warmup_output_tokens) == (2, 28, 6)
    assert trial.duration_ns == 50 * MS


@pytest.mark.parametrize(
    ("changed", "ignore_eos", "expected"),
    [
        ({}, True, ("complete", True)),
        ({"finish": None}, True, ("complete", True)),
        ({"finish": "other"}, True, ("truncated", True)),
        ({"completion_tokens": 2}, True, ("truncated", True)),
        ({"completion_tokens": 4}, True, ("truncated", True)),
        ({"completion_tokens": 2, "finish": "stop"}, True, ("truncated", True)),
        ({"completion_tokens": 2, "finish": "stop"}, False, ("complete", True)),
        ({"completion_tokens": 2, "finish": "length"}, False, ("truncated", True)),
        ({"completion_tokens": 0, "finish": "stop"}, False, ("truncated", True)),
        ({"completion_tokens": None}, True, ("truncated", False)),
        ({"prompt_tokens": None}, True, ("truncated", False)),
        ({"contradicted": True}, True, ("truncated", False)),
        ({"chunks": ()}, True, ("truncated", False)),
        ({"fault": "stream_error"}, True, ("error", False)),
        ({"fault": "ended_early"}, True, ("truncated", False)),
    ],
)
def test_outcomes(changed: dict[str, Any], ignore_eos: bool, expected: tuple[str, bool]) -> None:
    row = json.loads(raw(request(0, **changed)).splitlines()[1])
    assert judge(row, ignore_eos) == expected


def codes(data: bytes) -> set[str]:
    return {finding.code for finding in import_endpoint_raw(data, inputs()).findings}


def test_the_client_says_when_it_is_what_is_slow() -> None:
    busy = 50 * MS * BUSY_PERCENT // 100
    assert codes(raw(request(0), cpu_ns=busy - MS)) == {"client_load"}
    assert codes(raw(request(0), cpu_ns=busy)) == {"client_bottleneck"}
    assert codes(raw(request(0), lag=10 * MS)) == {"client_bottleneck"}
    assert codes(raw(request(0), path="port_forward")) == {"client_load", "through_port_forward"}


def edited(line: int, **changed: Any) -> bytes:
    lines = raw(request(0)).splitlines()
    lines[line] = json.dumps(json.loads(lines[line]) | changed).encode()
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "file_cut_off"),
        (raw(request(0))[:-1], "file_cut_off"),
        (edited(0, version=2), "unknown_format"),
        (edited(0, extra=1), "wrong_keys"),
        (edited(1, sent="0"), "wrong_type"),
        (edited(1, sent=-1), "wrong_type"),
        (edited(1, contradicted=1), "wrong_type"),
        (edited(1, chunks=[[1]]), "wrong_type"),
        (edited(1, chunks=[5]), "wrong_type"),
        (edited(1, index=3), "rows_not_numbered"),
        (edited(1, end=60 * MS), "outside_interval"),
        (edited(2, wall_ns=5), "outside_interval"),
    ],
)
def test_what_is_no_raw_record_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(InputError) as refused:
        import_endpoint_raw(data, inputs())
    assert refused.value.issues[0].code == code
