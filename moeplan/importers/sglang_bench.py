"""SGLang ``bench_serving --output-details``: JSON Lines, one run a line, appended -> one trial a run.

Source: SGLang 0.5.23, ``sglang/benchmark/serving.py``: the request functions, ``calculate_metrics`` and the result that
``benchmark`` writes. Any stream of HTTP status 200 is a success there. The file holds neither start times nor request
latencies nor a clock, and ``output_lens`` is the requested length wherever the server sent no count of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moeplan.errors import InputError
from moeplan.importers.list_claims import read_claims, summary_findings
from moeplan.importers.list_requests import LISTS, ListedRequest, read_listed, row_of
from moeplan.importers.request_rows import RequestRow, listed, only_stage, tables_of
from moeplan.importers.tool_files import require_tool
from moeplan.importers.tool_lines import at_line, parse_tool_lines
from moeplan.importers.tool_values import seconds_at, text_at
from moeplan.importers.trial import ImportedTrial, TrialInputs, stated_interval
from moeplan.model.evidence import Interval
from moeplan.model.finding import Finding
from moeplan.units import seconds_to_ns

__all__ = ["IMPORTER_VERSION", "NATIVE_BACKENDS", "import_sglang_bench"]

IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

NATIVE_BACKENDS = ("sglang", "sglang-native")
"""Backends whose every chunk brings the server's own count.

Source: SGLang 0.5.23, ``async_request_sglang_generate``: ``output_len = meta_info.completion_tokens`` at each chunk
with text; a chunk's gap is divided by its tokens and repeated that many times in ``itls``.
"""
_WARMUP_TOKENS = 32
_RAW = "run bench_serving with --output-details; aggregates satisfy no criterion"


def import_sglang_bench(data: bytes, inputs: TrialInputs) -> tuple[ImportedTrial, ...]:
    """Return every run in a ``bench_serving`` result file, in order.

    Outcomes: ``error`` where the tool reports one; ``complete`` where the server's own count is the requested one: a
    native backend, or ``inputs.continuous_usage``; else ``truncated``, because the file cannot tell a whole stream
    from a broken one. All requests start at 0: the file holds no start times.

    Args:
        data: the file's bytes.
        inputs: what the file does not hold; ``started`` and ``ended`` are needed.

    Raises:
        InputError: another tool's file, a line cut off, no raw data, or a run that contradicts itself.
    """
    made = []
    for place, document in only_stage(tuple(parse_tool_lines(data)), inputs):
        try:
            made.append(_trial(document, inputs, stated_interval(inputs)))
        except InputError as error:
            raise InputError(*(at_line(issue, place) for issue in error.issues)) from None
    return tuple(made)


def _trial(document: dict[str, Any], inputs: TrialInputs, interval: Interval) -> ImportedTrial:
    require_tool(document, "SGLang bench_serving", "raw_data_missing", LISTS, _RAW)
    backend = text_at(document, "backend", "$")
    requests = read_listed(document, spread=backend in NATIVE_BACKENDS)
    counted = backend in NATIVE_BACKENDS or inputs.continuous_usage
    rows = [row_of(request, inputs, counts=counted) for request in requests]
    duration = max(seconds_to_ns(seconds_at(document.get("duration"), "$.duration")), *(row.end for row in rows), 1)
    table, gaps = tables_of(rows, duration)
    claims = read_claims(document)
    cap = document.get("max_concurrency")
    warm = inputs.warmup_requests
    spent = min(inputs.requested_output_tokens, _WARMUP_TOKENS)
    return ImportedTrial(
        requests=table,
        chunk_gaps=gaps,
        duration_ns=duration,
        interval=interval,
        endpoint=inputs.endpoint or backend,
        model=_model(document.get("server_info")),
        concurrency=inputs.concurrency or (cap if type(cap) is int and cap >= 1 else None),
        # The warm-up repeats the first prompt. Source: serving.py, "test_input".
        warmup_input_tokens=None if warm is None else warm * requests[0].input_tokens,
        warmup_output_tokens=warm * spent if warm is not None and inputs.ignore_eos else None,
        claims=claims,
        findings=(
            *summary_findings(document, claims, [(item.ttft, item.itls) for item in requests if not item.failed]),
            *_findings(rows, requests, counted, backend, inputs),
        ),
        schedule=_schedule(document.get("request_rate"), cap),
    )


def _model(server_info: Any) -> str:
    """Return the model that an SGLang server says it serves; empty where the file does not say."""
    told = server_info if type(server_info) is dict else {}
    name = told.get("served_model_name") or told.get("model_path") or ""
    return name if type(name) is str and len(name) <= 200 and name.isprintable() else ""


def _schedule(rate: Any, cap: Any) -> str | None:
    if rate == "trace":
        return "trace"
    if type(rate) is str:
        return "closed" if type(cap) is int else None
    return "poisson"


def _findings(
    rows: list[RequestRow], requests: list[ListedRequest], counted: bool, backend: str, inputs: TrialInputs
) -> Iterator[Finding]:
    yield from listed("failed_requests", [row for row in rows if row.outcome == "error"], "requests failed")
    silent = [row for row in rows if row.outcome == "truncated" and not row.chunks]
    yield from listed("no_chunk_counted_as_success", silent, "requests without text, which the tool averages as TTFT 0")
    cut = [row for row in rows if row.outcome == "truncated" and row.chunks]
    if counted:
        yield from listed("truncated_counted_as_success", cut, "requests ended without the tokens asked for")
    elif cut:
        message = (
            f"backend {backend} keeps neither the server's counts nor a finish reason: that {len(cut)} requests are"
            " whole is not shown, and they count as truncated; run a native backend, or ask for continuous_usage_stats"
            " by --extra-request-body and state --continuous-usage"
        )
        yield Finding("completion_not_shown", "warning", message, None)
    yield Finding("start_times_missing", "warning", "the file holds no start times: concurrency is not shown", None)
    if backend in NATIVE_BACKENDS and any(len(item.gaps) < len(item.itls) for item in requests):
        message = "the tool spreads a chunk's gap over its tokens; equal neighbours are read as one chunk"
        yield Finding("chunk_gaps_regrouped", "info", message, None)
