"""A server that misbehaves in thirty ways: each request judged right, and nothing past its deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moeplan.evaluation.trials import counter_differences
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.tables import RequestTable
from moeplan.wire.documents import load_document
from moeplan.wire.tables import load_requests
from tests.stub_server.behaviours import BEHAVIOURS
from tests.stub_server.server import serving

WANTED = 4
FIRST_BYTE_S, TOTAL_S = 0.6, 1.2
SLACK_S = 0.25
"""For a loaded machine; a deadline that is not kept is missed by hours."""

EXPECTED = {
    "ok": ("complete", 4, None),
    "cached": ("complete", 4, None),
    "hang_before_headers": ("error", 0, "first_byte_deadline"),
    "drip_headers": ("error", 0, "total_deadline"),
    "hang_mid_stream": ("error", 2, "total_deadline"),
    "slow_drip": ("error", None, "total_deadline"),
    "stream_error": ("error", 2, "stream_error"),
    "reset": ("error", 2, "reset"),
    "early_end": ("truncated", 2, "ended_early"),
    "short_stream": ("truncated", 2, "other_length"),
    "empty_chunks": ("complete", 4, None),
    "several_tokens": ("complete", 2, None),
    "no_usage": ("truncated", 4, "no_usage"),
    "wrong_usage": ("truncated", 4, "usage_contradicts"),
    "negative_usage": ("error", 4, "malformed_usage"),
    "two_done": ("complete", 4, None),
    "data_after_done": ("error", None, "data_after_done"),
    "hang_after_done": ("complete", 4, None),
    "huge_line": ("error", 0, "line_too_long"),
    "invalid_utf8": ("error", 0, "invalid_utf8"),
    "malformed_json": ("error", 0, "malformed_event"),
    "redirect": ("error", 0, "redirect"),
    "gzipped": ("error", 0, "content_encoding"),
    "too_many": ("error", 0, "http_status_429"),
    "unavailable": ("error", 0, "http_status_503"),
    "not_a_stream": ("error", 0, "not_event_stream"),
    "not_http": ("error", 0, "malformed_http"),
    "bad_chunk_size": ("error", 0, "malformed_http"),
    "split_bytes": ("complete", 1, None),
    "until_close": ("complete", 4, None),
}
"""By behaviour: outcome, chunks seen (None: how many is chance), and the finding that names the request."""


def options(requests: int, *more: str) -> tuple[str, ...]:
    return (
        *("--requests", str(requests), "--input-tokens", "8", "--output-tokens", str(WANTED), "--trials", "1"),
        *("--first-byte-deadline", str(FIRST_BYTE_S), "--deadline", str(TOTAL_S), *more),
    )


def test_every_behaviour_has_its_judgement() -> None:
    assert EXPECTED.keys() == BEHAVIOURS.keys()


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_each_request_is_judged_right_and_none_outlives_its_deadline(collect: Callable[..., Any], api: str) -> None:
    names = list(EXPECTED)
    with serving(*names) as stub:
        code, made = collect(stub.url, *options(len(names), "--concurrency", str(len(names)), "--api", api))
    assert code == 0
    rows = {row["request"]: row for row in made.table("requests")}
    for number, (name, (outcome, chunks, cause)) in enumerate(EXPECTED.items()):
        row = rows[number]
        assert row["outcome"] == outcome, name
        assert chunks in (None, row["chunks"]), name
        limit = FIRST_BYTE_S if name == "hang_before_headers" else TOTAL_S
        assert row["end_ns"] - row["start_ns"] <= (limit + SLACK_S) * 1e9, name
        assert row["usage"] is (outcome == "complete" or name == "short_stream"), name
        if cause is not None:
            told = next(item["message"] for item in made.told["findings"] if item["code"] == cause)
            assert str(number) in told.split(": ")[1].split(", "), name
    assert rows[names.index("several_tokens")]["output_tokens"] == WANTED
    assert "retry_after" in made.codes()
    assert {"counters_differ"} <= made.codes()  # one of them came from no engine
    assert made.run["state"] == "closed"


def tables(made: Any) -> tuple[RequestTable, EvidenceRecord]:
    (path,) = made.root.rglob("*-requests.parquet")
    (record,) = (made.root / "evidence").glob("*-trial-1.json")
    return load_requests(path.read_bytes()), load_document(record.read_bytes(), EvidenceRecord)


def test_answers_from_a_cache_leave_the_engines_counters_where_they_are(collect: Callable[..., Any]) -> None:
    with serving("cached") as stub:
        _, made = collect(stub.url, *options(6, "--concurrency", "2"))
    requests, record = tables(made)
    assert set(requests.outcome) == {"complete"}
    assert made.records[0]["payload"]["engineCounters"]["requests"] == 0
    assert counter_differences(requests, record.payload) == (3, None)  # type: ignore[arg-type]
    assert "counters_differ" in made.codes()


def test_an_honest_engine_and_its_client_tell_one_story(collect: Callable[..., Any]) -> None:
    with serving("ok") as stub:
        _, made = collect(stub.url, *options(6, "--concurrency", "2", "--warmup-requests", "3"))
        assert stub.requests == 9
    requests, record = tables(made)
    payload = made.records[0]["payload"]
    assert (payload["warmupRequests"], payload["warmupInputTokens"], payload["warmupOutputTokens"]) == (3, 24, 12)
    assert counter_differences(requests, record.payload) == (0, None)  # type: ignore[arg-type]
    assert "counters_agree" in made.codes()


def test_an_endpoint_that_is_not_ready_yet_is_waited_for(collect: Callable[..., Any]) -> None:
    with serving("ok", not_ready=2) as stub:
        code, made = collect(stub.url, *options(2, "--concurrency", "1", "--ready-within", "5"))
    assert code == 0
    assert [row["outcome"] for row in made.table("requests")] == ["complete"] * 2


def test_an_engine_that_restarts_in_a_trial_leaves_no_record_of_it(collect: Callable[..., Any]) -> None:
    with serving("ok") as stub:

        def restart() -> None:
            stub.started = "1.7960599999e+09"

        stub.on_request = restart
        code, made = collect(stub.url, *options(2, "--concurrency", "1"))
    assert code == 1
    assert made.records == []
    assert [(trial["state"], trial["record"]) for trial in made.run["trials"]] == [("aborted", None)]
    assert "counter_reset" in made.codes()
