"""The raw record of a trial: JSON Lines of times and counts, without a word of prompt or answer.

:mod:`moeplan.importers.endpoint_raw` reads it; ``docs/collecting.md`` describes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import attrs

__all__ = ["FORMAT", "FORMAT_VERSION", "ObservedRequest", "TrialHead", "TrialTail", "dump_raw"]

FORMAT = "moeplan-endpoint"
FORMAT_VERSION = 1


@attrs.frozen
class TrialHead:
    """What was to be done; ``endpoint`` is a pseudonym or a given name, ``path`` what lies between."""

    api: str
    schedule: str
    path: str
    endpoint: str
    concurrency: int | None
    ignore_eos: bool
    requested_input_tokens: int
    requested_output_tokens: int
    seed: int


@attrs.frozen
class ObservedRequest:
    """What was seen of one request; times in ns from the start of the trial.

    Attributes:
        index: its place in the plan.
        due: when it was to be sent; equal to ``sent`` where it was due as soon as there was room.
        chunks: (arrival, tokens or None), as :class:`moeplan.collectors.stream.StreamReader` keeps them.
        fault: the first of what went wrong in transport, status or stream; None where nothing did.
        contradicted: the server counted fewer tokens than chunks with text came.
        retry_after_s: the server's own word on when to come again.
    """

    index: int
    due: int
    sent: int
    end: int
    asked_input: int
    asked_output: int
    status: int | None = None
    chunks: tuple[tuple[int, int | None], ...] = ()
    empty: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish: str | None = None
    fault: str | None = None
    contradicted: bool = False
    done_marks: int = 0
    retry_after_s: int | None = None


@attrs.frozen
class TrialTail:
    """What the client needed, and what the warm-up before the trial was.

    Attributes:
        started_s: the wall clock at the start of the trial, whole seconds since the epoch.
        started_rest_ns: nanoseconds of it beyond the whole second.
        wall_ns: how long the trial took.
        cpu_ns: processor time of the client meanwhile.
        lag_p99_ns: how late the client's loop woke up, 99th percentile.
        warmup_complete: warm-up requests that ended well; the two sums are the server's counts of all of them.
    """

    started_s: int
    started_rest_ns: int
    wall_ns: int
    cpu_ns: int
    lag_p99_ns: int
    warmup_requests: int
    warmup_complete: int
    warmup_input_tokens: int | None
    warmup_output_tokens: int | None


def dump_raw(head: TrialHead, requests: Iterable[ObservedRequest], tail: TrialTail) -> bytes:
    """Return the raw record: one line of the head, one a request in the order of their index, one of the tail."""
    first = {"format": FORMAT, "version": FORMAT_VERSION, **attrs.asdict(head)}
    rows = [attrs.asdict(row, recurse=False) for row in sorted(requests, key=lambda row: row.index)]
    return b"".join(_line(value) for value in (first, *rows, attrs.asdict(tail)))


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
