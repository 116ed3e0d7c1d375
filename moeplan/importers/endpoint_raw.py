"""The raw record of ``moeplan collect endpoint``: JSON Lines of one trial, judged request by request.

A request is complete only where nothing went wrong in transport, status or stream, the server counted its tokens, and
they are those that were asked for, or, where the engine may stop of its own, it says that it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from moeplan.errors import InputError, Issue
from moeplan.importers.builder import TrialBuilder
from moeplan.importers.table import Importer
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.model.evidence import ClientLoad, Interval
from moeplan.model.finding import Finding
from moeplan.units import NS_PER_MS, NS_PER_S, ceil_div, format_instant
from moeplan.wire.strict_json import parse_strict

__all__ = ["BUSY_PERCENT", "ENDPOINT_IMPORTER", "LATE_NS", "import_endpoint_raw", "judge"]

BUSY_PERCENT = 70
"""Share of one core from which on the client may itself be what is slow: one thread does all."""
LATE_NS = 10 * NS_PER_MS
"""Lateness of the client's loop, at p99, from which on it shows in what is measured."""

_FORMAT = ("moeplan-endpoint", 1)
_MAX_LINE = 64 << 20
_MOST_SHOWN = 50


def judge(row: dict[str, Any], ignore_eos: bool) -> tuple[str, bool]:
    """Return a request's outcome, and whether its counts are the server's.

    Args:
        row: one request's line.
        ignore_eos: whether the engine was told to generate every token asked for.
    """
    if row["fault"] is not None:
        return ("truncated" if row["fault"] == "ended_early" else "error"), False
    counted = row["prompt_tokens"] is not None and row["completion_tokens"] is not None and not row["contradicted"]
    if not counted or not row["chunks"]:
        return "truncated", False
    if row["completion_tokens"] == row["asked_output"] and row["finish"] in (None, "length", "stop"):
        return "complete", True
    stopped = not ignore_eos and row["finish"] == "stop" and 0 < row["completion_tokens"] < row["asked_output"]
    return ("complete" if stopped else "truncated"), True


def import_endpoint_raw(data: bytes, inputs: TrialInputs) -> ImportedTrial:
    """Return the trial in a raw record; nothing of it is stated by ``inputs`` but what the record holds too.

    Raises:
        InputError: not such a record, cut off, or contradicting itself.
    """
    head, rows, tail = _parts(data)
    builder = TrialBuilder()
    outcomes = []
    for row in rows:
        outcome, counted = judge(row, head["ignore_eos"])
        outcomes.append(outcome)
        _add(builder, row, outcome, counted)
    requests, gaps = builder.tables(tail["wall_ns"], origin_ns=0)
    start_s = tail["started_s"]
    end_s = start_s + ceil_div(tail["started_rest_ns"] + tail["wall_ns"], NS_PER_S)
    client = ClientLoad(cpu_ns=tail["cpu_ns"], wall_ns=tail["wall_ns"], loop_lag_p99_ns=tail["lag_p99_ns"])
    return ImportedTrial(
        requests=requests,
        chunk_gaps=gaps,
        duration_ns=tail["wall_ns"],
        interval=Interval(format_instant(start_s), format_instant(end_s)),
        endpoint=head["endpoint"],
        model="model",
        concurrency=head["concurrency"],
        warmup_input_tokens=tail["warmup_input_tokens"],
        warmup_output_tokens=tail["warmup_output_tokens"],
        claims=(),
        findings=tuple(_findings(rows, outcomes, head, tail)),
        schedule=head["schedule"],
        warmup_requests=tail["warmup_requests"],
        path=head["path"],
        client=client,
    )


ENDPOINT_IMPORTER = Importer(
    "moeplan-endpoint",
    "1",
    "moeplan collect endpoint",
    lambda data, inputs: (import_endpoint_raw(data, inputs),),
    "jsonl",
    "epoch",
)
"""How the collector's own raw records are read; no tool of others, so no row of the table of tools."""


def _add(builder: TrialBuilder, row: dict[str, Any], outcome: str, counted: bool) -> None:
    times = [arrival for arrival, _ in row["chunks"]]
    first = times[0] - row["sent"] if times else 0
    builder.add(
        row["index"],
        row["sent"],
        row["sent"] - row["due"],
        first,
        [later - earlier for earlier, later in pairwise(times)],
        row["end"],
        row["prompt_tokens"] if counted else row["asked_input"],
        row["completion_tokens"] if counted else sum(tokens or 0 for _, tokens in row["chunks"]),
        counted,
        outcome,
        chunks=len(times),
    )


def _parts(data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    lines = data.split(b"\n")
    if len(lines) < 4 or lines.pop() != b"":
        raise InputError(Issue("$", "file_cut_off", "the record has no end", "a head, requests and a tail"))
    values = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(parse_strict(line, max_bytes=_MAX_LINE))
        except InputError as error:
            raise InputError(*(issue.under(f"line {number}: $") for issue in error.issues)) from None
    for number, value in enumerate(values, 1):
        keys = _HEAD if number == 1 else _TAIL if number == len(values) else _ROW
        _require(value, keys, number)
    head, *rows, tail = values
    if (head["format"], head["version"]) != _FORMAT:
        raise InputError(Issue("line 1: $.format", "unknown_format", "another format", str(_FORMAT)))
    return head, rows, tail


_COUNT, _MAYBE, _TEXT, _WORD = (int,), (int, type(None)), (str,), (str, type(None))
_HEAD: dict[str, tuple[type, ...]] = {
    "format": _TEXT,
    "version": _COUNT,
    "api": _TEXT,
    "schedule": _TEXT,
    "path": _TEXT,
    "endpoint": _TEXT,
    "concurrency": _MAYBE,
    "ignore_eos": (bool,),
    "requested_input_tokens": _COUNT,
    "requested_output_tokens": _COUNT,
    "seed": _COUNT,
}
_ROW: dict[str, tuple[type, ...]] = {
    "index": _COUNT,
    "due": _COUNT,
    "sent": _COUNT,
    "end": _COUNT,
    "asked_input": _COUNT,
    "asked_output": _COUNT,
    "status": _MAYBE,
    "chunks": (list,),
    "empty": _COUNT,
    "prompt_tokens": _MAYBE,
    "completion_tokens": _MAYBE,
    "finish": _WORD,
    "fault": _WORD,
    "contradicted": (bool,),
    "done_marks": _COUNT,
    "retry_after_s": _MAYBE,
}
_TAIL: dict[str, tuple[type, ...]] = {
    "started_s": _COUNT,
    "started_rest_ns": _COUNT,
    "wall_ns": _COUNT,
    "cpu_ns": _COUNT,
    "lag_p99_ns": _COUNT,
    "warmup_requests": _COUNT,
    "warmup_complete": _COUNT,
    "warmup_input_tokens": _MAYBE,
    "warmup_output_tokens": _MAYBE,
}


def _require(value: object, keys: dict[str, tuple[type, ...]], number: int) -> None:
    if type(value) is not dict or value.keys() != keys.keys():
        raise InputError(Issue(f"line {number}: $", "wrong_keys", "other keys than this line has", ", ".join(keys)))
    for key, types in keys.items():
        if type(value[key]) not in types or (type(value[key]) is int and value[key] < 0):
            expected = " or ".join(one.__name__ for one in types)
            raise InputError(Issue(f"line {number}: $.{key}", "wrong_type", "another type, or negative", expected))
    for place, chunk in enumerate(value.get("chunks", [])):
        if type(chunk) is not list or len(chunk) != 2 or type(chunk[0]) is not int or type(chunk[1]) not in _MAYBE:
            raise InputError(Issue(f"line {number}: $.chunks[{place}]", "wrong_type", "no chunk", "[ns, tokens]"))


def _findings(
    rows: Sequence[dict[str, Any]], outcomes: Sequence[str], head: dict[str, Any], tail: dict[str, Any]
) -> list[Finding]:
    found = []
    causes: dict[str, list[int]] = {}
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome != "complete":
            causes.setdefault(_cause(row), []).append(row["index"])
    for cause, indexes in sorted(causes.items()):
        shown = ", ".join(map(str, indexes[:_MOST_SHOWN]))
        more = f" and {len(indexes) - _MOST_SHOWN} more" if len(indexes) > _MOST_SHOWN else ""
        found.append(Finding(cause, "warning", f"{len(indexes)} requests: {shown}{more}", None))
    waits = [row["retry_after_s"] for row in rows if row["retry_after_s"] is not None]
    if waits:
        found.append(
            Finding("retry_after", "info", f"the server asked to come again after {max(waits)} s at most", None)
        )
    if tail["warmup_complete"] < tail["warmup_requests"]:
        failed = tail["warmup_requests"] - tail["warmup_complete"]
        found.append(Finding("warmup_failed", "warning", f"{failed} of the warm-up's requests did not complete", None))
    if head["path"] == "port_forward":
        message = "measured through a port-forward: it judges no service level"
        found.append(Finding("through_port_forward", "warning", message, None))
    return found + _client_findings(tail)


def _cause(row: dict[str, Any]) -> str:
    if row["fault"] is not None:
        status = f"_{row['status']}" if row["fault"] == "http_status" else ""
        return f"{row['fault']}{status}"
    if row["contradicted"]:
        return "usage_contradicts"
    if row["completion_tokens"] is None:
        return "no_usage"
    return "other_length"


def _client_findings(tail: dict[str, Any]) -> list[Finding]:
    busy = tail["cpu_ns"] * 100 // max(tail["wall_ns"], 1)
    late = tail["lag_p99_ns"]
    shown = f"the client took {busy} % of a core and was {late // 1000} µs late at p99"
    if busy < BUSY_PERCENT and late < LATE_NS:
        return [Finding("client_load", "info", shown, None)]
    step = "it may be what is slow: send less, use a free core, or run a stronger tool with --tool"
    return [Finding("client_bottleneck", "warning", f"{shown}; {step}", None)]
