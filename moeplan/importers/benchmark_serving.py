"""vLLM's ``benchmark_serving.py --save-detailed`` before ``latencies`` and ``start_times`` were written -> one trial.

Source: vLLM of 2025, ``benchmarks/benchmark_serving.py``: ``input_lens`` are the data set's own, ``output_lens`` the
server's usage or, where it sent none, the client's count of the text, and 0 for a failure; the file does not say which.
Forks of it write the same lists. Files without them are summaries: ``moeplan.importers.reported``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.list_claims import read_claims, summary_findings
from moeplan.importers.list_requests import LISTS, read_listed, row_of
from moeplan.importers.request_rows import RequestRow, listed, tables_of
from moeplan.importers.tool_files import BENCHMARK_SERVING, VLLM_BENCH, require_tool, tool_of
from moeplan.importers.tool_json import parse_tool_json
from moeplan.importers.tool_values import seconds_at, text_at
from moeplan.importers.trial import ImportedTrial, TrialInputs, stated_interval
from moeplan.model.finding import Finding
from moeplan.units import seconds_to_ns

__all__ = ["IMPORTER_VERSION", "import_benchmark_serving"]

IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

_RAW = "run it with --save-detailed; figures alone are imported as 'reported'"


def import_benchmark_serving(data: bytes, inputs: TrialInputs) -> ImportedTrial:
    """Return the trial in a detailed result file of ``benchmark_serving.py``.

    Outcomes: ``error`` where the tool reports one; ``complete`` where the tokens are those requested and
    ``inputs.continuous_usage`` states that the server counted them; else ``truncated``. All requests start at 0: the
    file holds no start times. Its ``date`` is local time at the end: the interval is stated instead.

    Args:
        data: the file's bytes.
        inputs: what the file does not hold; ``started`` and ``ended`` are needed.

    Raises:
        InputError: another tool's file, a newer one, no raw data, or a run that contradicts itself.
    """
    document = parse_tool_json(data)
    if type(document) is dict and {"latencies", "start_times"} <= set(document):
        message, step = "the file holds latencies and start times", "import it as 'vllm-bench'"
        raise InputError(Issue("$", "newer_file", message, "a file of 2025", None, step))
    tool = VLLM_BENCH if tool_of(document) == VLLM_BENCH else BENCHMARK_SERVING
    require_tool(document, tool, "raw_data_missing", LISTS, _RAW)
    # An HTTP error without a reason phrase leaves errors[i] empty.
    requests = [attrs.evolve(item, failed=item.failed or not item.output_tokens) for item in read_listed(document)]
    rows = [row_of(request, inputs, counts=inputs.continuous_usage) for request in requests]
    duration = max(seconds_to_ns(seconds_at(document.get("duration"), "$.duration")), *(row.end for row in rows), 1)
    table, gaps = tables_of(rows, duration)
    claims = read_claims(document)
    cap = document.get("max_concurrency")
    warm = inputs.warmup_requests
    backend = text_at(document, "backend" if "backend" in document else "endpoint_type", "$")
    return ImportedTrial(
        requests=table,
        chunk_gaps=gaps,
        duration_ns=duration,
        interval=stated_interval(inputs),
        endpoint=inputs.endpoint or backend,
        model=text_at(document, "model_id", "$"),
        concurrency=inputs.concurrency or (cap if type(cap) is int and cap >= 1 else None),
        # The initial test run repeats the first prompt. Source: benchmark_serving.py, "test_input".
        warmup_input_tokens=None if warm is None else warm * requests[0].input_tokens,
        warmup_output_tokens=warm * inputs.requested_output_tokens if warm is not None and inputs.ignore_eos else None,
        claims=claims,
        findings=(
            *summary_findings(document, claims, [(item.ttft, item.itls) for item in requests if not item.failed]),
            *_findings(rows, document, inputs),
        ),
    )


def _findings(rows: list[RequestRow], document: dict[str, Any], inputs: TrialInputs) -> Iterator[Finding]:
    yield from listed("failed_requests", [row for row in rows if row.outcome == "error"], "requests failed")
    short = [row for row in rows if row.outcome == "truncated"]
    if inputs.continuous_usage:
        yield from listed("truncated_counted_as_success", short, "requests ended without the tokens asked for")
    elif short:
        message = (
            f"the file does not say whether the server counted the tokens: that {len(short)} requests are whole is not"
            " shown, and they count as truncated; state --continuous-usage where the server sent usage"
        )
        yield Finding("completion_not_shown", "warning", message, None)
    yield Finding("start_times_missing", "warning", "the file holds no start times: concurrency is not shown", None)
    completed, asked = document.get("completed"), document.get("num_prompts", len(rows))
    if type(completed) is int and type(asked) is int and asked != len(rows):
        message = f"the tool was to send {asked} requests, the file lists {len(rows)}"
        yield Finding("requests_not_listed", "error", message, None)
