"""Event streams: what vLLM really sends, and what no server should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.collectors.stream import StreamReader

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
MADE = SHARED / "samples" / "made"


def read(*events: Any) -> StreamReader:
    reader = StreamReader()
    for number, event in enumerate(events, 1):
        text = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
        reader.feed(text, number * 10)
    return reader


def token(text: str, count: int | None = None, finish: str | None = None) -> dict[str, Any]:
    event: dict[str, Any] = {"choices": [{"text": text, "finish_reason": finish}]}
    return event if count is None else event | {"usage": {"prompt_tokens": 5, "completion_tokens": count}}


USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}


def test_chunks_have_time_and_tokens() -> None:
    reader = read(token("a", 1), token("bc", 3, "length"), USAGE, b"data: [DONE]\n\n")
    assert reader.chunks == [(10, 1), (20, 2)]
    assert (reader.prompt_tokens, reader.completion_tokens, reader.finish) == (5, 3, "length")
    assert (reader.fault, reader.done_marks, reader.empty, reader.usage_contradicts) == (None, 1, 0, False)


def test_a_token_without_text_is_a_chunk_where_the_server_counts_it() -> None:
    assert read(token("", 0), token("a", 1), token("", 2)).chunks == [(20, 1), (30, 1)]
    reader = read(token(""), token("a"), token(""))
    assert (reader.chunks, reader.empty) == ([(20, None)], 2)


def test_a_count_with_the_last_event_alone_is_not_that_events() -> None:
    assert read(token("a"), token("b", 2, "length")).chunks == [(10, None), (20, None)]


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([token("a"), {"error": {"message": "x"}}, b"data: [DONE]\n\n"], "stream_error"),
        ([b'data: {"choices": [{"text": "\xff"}]}\n\n'], "invalid_utf8"),
        ([b"data: {\n\n"], "malformed_event"),
        ([b"data: [1]\n\n"], "malformed_event"),
        ([b'data: {"usage": NaN}\n\n'], "malformed_event"),
        ([b"data: " + b"[" * 100_000 + b"\n\n"], "malformed_event"),
        ([token("a", -1)], "malformed_usage"),
        ([{"usage": {"prompt_tokens": 1.5, "completion_tokens": 1}}], "malformed_usage"),
        ([{"usage": {"prompt_tokens": True, "completion_tokens": 1}}], "malformed_usage"),
        ([{"usage": [1]}], "malformed_usage"),
        ([token("a", 2), token("b", 1)], "malformed_usage"),
        ([b"data: [DONE]\n\n", token("a")], "data_after_done"),
    ],
)
def test_the_first_fault_is_kept(events: list[Any], fault: str) -> None:
    assert read(*events).fault == fault


def test_fewer_tokens_than_texts_contradict() -> None:
    assert read(*[token("a")] * 4, USAGE).usage_contradicts
    assert not read(*[token("a")] * 3, USAGE).usage_contradicts


def test_a_reason_no_server_should_give_is_not_kept() -> None:
    assert read(token("a", 1, "my secret")).finish == "other"


def test_an_error_of_null_is_none() -> None:
    assert read(token("a", 1) | {"error": None}).fault is None


def recorded(name: str) -> StreamReader:
    """Feed a recorded stream: one JSON object a line, with the time and the line as it came."""
    path = MADE / name
    if not path.is_file():
        pytest.skip(f"no shared sample {name}")
    reader = StreamReader()
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        text = next((value for value in row.values() if isinstance(value, str) and value.startswith("data:")), None)
        if text is not None:
            reader.feed(text.rstrip("\n").encode() + b"\n\n", 0)
    return reader


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "counted"),
    [("sse-chat-vllm0.32-cpu.jsonl", False), ("sse-chat-continuous-usage-vllm0.32-cpu.jsonl", True)],
)
def test_what_vllm_sent(name: str, counted: bool) -> None:
    reader = recorded(name)
    assert (reader.fault, reader.done_marks) == (None, 1)
    assert reader.finish in ("stop", "length")
    if counted:
        assert sum(tokens or 0 for _, tokens in reader.chunks) == reader.completion_tokens
    assert 0 < len(reader.chunks) <= (reader.completion_tokens or 10**9)
