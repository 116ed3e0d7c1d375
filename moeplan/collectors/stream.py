"""A stream of server-sent events from an OpenAI-compatible engine: what it says, and when each part arrived.

Pure. It keeps counts and times, no text. What a stream amounts to (complete, truncated, an error) is judged where the
raw record is read, by :mod:`moeplan.importers.endpoint_raw`.

Source: WHATWG HTML, "Server-sent events", 9.2.6; OpenAI API reference, streaming of chat and completions; vLLM 0.32
``stream_options.continuous_usage_stats``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moeplan.units import MAX_SAFE_INTEGER

__all__ = ["FINISH_REASONS", "StreamReader", "text_of"]

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "abort", "error")
"""Reasons a server gives; another one is kept as ``other``."""

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


class StreamReader:
    """Reads the events of one response.

    Attributes:
        chunks: arrival in ns, and how many tokens came with it; None where the server does not count each chunk. A
            chunk is an event with text, or one at which the server's count grew.
        empty: events with neither.
        prompt_tokens: the server's last count; None where it sent none.
        completion_tokens: as above.
        finish: why the server stopped, one of :data:`FINISH_REASONS` or ``other``.
        fault: the first thing that is wrong: ``stream_error`` (the server reported one in the stream),
            ``invalid_utf8``, ``malformed_event``, ``malformed_usage``, ``data_after_done``.
        done_marks: how many ``[DONE]`` came.
        texts: chunks with text.
        finished_ns: arrival of the event that says why the server stopped.
    """

    def __init__(self) -> None:
        """Begin before the first byte."""
        self.chunks: list[tuple[int, int | None]] = []
        self.empty = 0
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.finish: str | None = None
        self.fault: str | None = None
        self.done_marks = 0
        self.texts = 0
        self.finished_ns: int | None = None
        self._line = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes, now: int) -> None:
        """Take a piece of the body that arrived at ``now`` (ns)."""
        lines = (self._line + piece).split(b"\n")
        self._line = lines.pop()
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line:
                self._dispatch(now)
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))

    @property
    def usage_contradicts(self) -> bool:
        """Whether more chunks held text than the server counted tokens: a chunk with text holds one at least."""
        return self.completion_tokens is not None and self.texts > self.completion_tokens

    def _dispatch(self, now: int) -> None:
        if not self._data:
            return
        data, self._data = b"\n".join(self._data), []
        if data == b"[DONE]":
            self.done_marks += 1
            return
        event = self._parsed(data)
        if event is None:
            return
        if "error" in event and event["error"] is not None:
            self._fail("stream_error")
            return
        if self.done_marks:
            self._fail("data_after_done")
        self._take(event, now)

    def _parsed(self, data: bytes) -> dict[str, Any] | None:
        import msgspec

        try:
            data.decode("utf-8")
            event = msgspec.json.decode(data)
        except UnicodeDecodeError:
            self._fail("invalid_utf8")
            return None
        except (msgspec.DecodeError, RecursionError):
            self._fail("malformed_event")
            return None
        if not isinstance(event, dict):
            self._fail("malformed_event")
            return None
        return event

    def _take(self, event: dict[str, Any], now: int) -> None:
        before = self.completion_tokens
        choices = event.get("choices")
        choices = choices if isinstance(choices, list) else []
        counted = self._take_usage(event.get("usage"))
        has_text = bool(text_of(choices))
        for choice in choices:
            reason = choice.get("finish_reason") if isinstance(choice, dict) else None
            if isinstance(reason, str):
                self.finish = reason if reason in FINISH_REASONS else "other"
                self.finished_ns = now
        # A server that counts once, with its last event, says nothing of that event.
        once = before is None and bool(self.chunks)
        grown = (self.completion_tokens or 0) - (before or 0) if counted and not once else None
        self.texts += has_text
        if choices and (has_text or grown):
            self.chunks.append((now, grown))
        elif choices and self.finish is None:
            self.empty += 1

    def _take_usage(self, usage: object) -> bool:
        """Take the server's counts; return whether the event held any."""
        if usage is None:
            return False
        if not isinstance(usage, dict):
            self._fail("malformed_usage")
            return False
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        if not all(type(count) is int and 0 <= count <= MAX_SAFE_INTEGER for count in counts):
            self._fail("malformed_usage")
            return False
        if self.completion_tokens is not None and counts[1] < self.completion_tokens:  # type: ignore[operator]
            self._fail("malformed_usage")
        self.prompt_tokens, self.completion_tokens = counts
        return True

    def _fail(self, code: str) -> None:
        self.fault = self.fault or code


def text_of(choices: Iterable[object]) -> str:
    """Return the text that an event's choices carry; the names of called tools and their arguments count as text."""
    found: list[str] = []
    for choice in choices:
        if not isinstance(choice, dict):
            continue
        delta = choice.get("delta")
        places = [choice.get("text")]
        if isinstance(delta, dict):
            places += [delta.get(name) for name in _TEXTS]
            places += ["tool"] if delta.get("tool_calls") else []
        found += [place for place in places if isinstance(place, str)]
    return "".join(found)
