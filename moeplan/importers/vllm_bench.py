"""``vllm bench serve --save-result --save-detailed``: one JSON file -> one trial, exact to the nanosecond.

Source: vLLM 0.32, ``vllm/benchmarks/serve.py`` (``calculate_metrics``) and ``lib/endpoint_request_func.py`` beside it.
The tool counts a stream that broke after HTTP 200 as a success; here it is ``truncated``.
"""

from __future__ import annotations

import re
from array import array
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError, Issue
from moeplan.importers.recompute import claim_findings, read_claims
from moeplan.importers.shown import shown
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.importers.vllm_bench_columns import Columns, read_detailed
from moeplan.importers.vllm_bench_findings import trial_findings
from moeplan.model.columns import column_of, run_sums, view
from moeplan.model.evidence import Interval
from moeplan.model.tables import REQUEST_OUTCOMES, ChunkGapTable, RequestTable, table_faults
from moeplan.units import NS_PER_S, ceil_div, format_instant, seconds_to_ns
from moeplan.wire.strict_json import child

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["IMPORTER_VERSION", "USAGE_ENDPOINTS", "import_vllm_bench"]

IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

USAGE_ENDPOINTS = ("openai", "openai-chat", "vllm")
"""Backends that ask the server for its usage and take both token counts from it.

Source: vLLM 0.32, ``endpoint_request_func.py``: ``stream_options.include_usage``; ``prompt_len`` and ``output_tokens``
are overwritten by the usage chunk. Without one the tool counts the text's tokens itself.
"""

_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})(\d{2})", re.ASCII)
_MOST_SECONDS = 10**7


def import_vllm_bench(data: bytes, inputs: TrialInputs) -> ImportedTrial:
    """Return the trial in a ``vllm bench serve`` result file.

    Outcomes: ``error`` where the tool reports one or never saw the request end; ``truncated`` where it reports none but
    the tokens are not those requested; else ``complete``. The file holds no finish reason, so fewer tokens than
    requested are complete only where ``inputs.accept_early_stop`` says that stops are expected.

    Args:
        data: the file's bytes.
        inputs: what the file does not hold.

    Raises:
        InputError: not such a file, without raw data, or contradicting itself; with JSON paths.
    """
    document, columns = read_detailed(data)
    endpoint = inputs.endpoint or _text(document, "endpoint_type")
    usage = document.get("endpoint_type") in USAGE_ENDPOINTS
    requests, gaps = _tables(columns, inputs, usage)
    claimed = seconds_to_ns(_number(document, "duration", _MOST_SECONDS))
    duration = max(claimed, max(requests.end_ns), 1)
    _require_within(requests, claimed)
    faults = tuple(table_faults(requests, gaps, duration))
    if faults:
        raise InputError(*faults)
    claims = read_claims(document)
    cap = _cap(document)
    findings = (
        *claim_findings(claims, requests, gaps),
        *trial_findings(requests, inputs, claims, cap=cap, usage=usage, queued=columns.queued),
    )
    warm = inputs.warmup_requests
    return ImportedTrial(
        requests=requests,
        chunk_gaps=gaps,
        duration_ns=duration,
        interval=_interval(_text(document, "date"), inputs.utc_offset_seconds, duration),
        endpoint=endpoint,
        model=_text(document, "model_id"),
        concurrency=inputs.concurrency if inputs.concurrency is not None else cap,
        # The warm-up repeats the first prompt. Source: vLLM 0.32, serve.py, "test_input".
        warmup_input_tokens=None if warm is None else warm * int(columns.input_tokens[0]),
        warmup_output_tokens=warm * inputs.requested_output_tokens if warm is not None and inputs.ignore_eos else None,
        claims=claims,
        findings=findings,
    )


def _text(document: dict[str, Any], key: str) -> str:
    value = document[key]
    if type(value) is not str or not 0 < len(value) <= 200 or not value.isprintable():
        expected = "printable text of 1 to 200 characters"
        raise InputError(Issue(child("$", key), "invalid_value", "value refused", expected, shown(value)))
    return value


def _number(document: dict[str, Any], key: str, most: int) -> Decimal:
    value = document[key]
    if type(value) not in (int, Decimal) or not 0 < value <= most:
        expected, got = f"seconds, more than 0 and at most {most}", shown(value)
        raise InputError(Issue(child("$", key), "invalid_value", "value refused", expected, got))
    return Decimal(value)


def _cap(document: dict[str, Any]) -> int | None:
    value = document.get("max_concurrency")
    return value if type(value) is int and value >= 1 else None


def _tables(columns: Columns, inputs: TrialInputs, usage: bool) -> tuple[RequestTable, ChunkGapTable]:
    import numpy as np

    counts, count = columns.gap_counts, len(columns.start)
    after_first = np.zeros(count, np.int64)
    given = np.flatnonzero(counts)
    after_first[given] = run_sums(view(columns.gaps), counts[given])
    # A reset mid-stream leaves latency 0 but keeps its chunks: the last moment known is the later one.
    length = np.maximum(columns.latency, columns.ttft + after_first)
    start = columns.start - columns.start.min()
    full = columns.output_tokens == inputs.requested_output_tokens
    complete = ~columns.failed & (full | _stopped_early(columns, inputs))
    order = np.argsort(start, kind="stable")
    outcome = np.where(columns.failed, 1, np.where(complete, 0, 2))[order]

    def column(values: NDArray[Any]) -> array[int]:
        return column_of(values[order])

    requests = RequestTable(
        request=column_of(order),
        start_ns=column(start),
        queue_ns=column(columns.queue),
        ttft_ns=column(columns.ttft),
        end_ns=column(start + length),
        chunks=column(np.where((columns.ttft > 0) | (counts > 0), counts + 1, 0)),
        input_tokens=column(columns.input_tokens),
        output_tokens=column(columns.output_tokens),
        # A request accepted short of its tokens may be a broken stream, counted by the client.
        usage=column((complete & full & usage).astype(np.int64)),
        outcome=tuple(map(REQUEST_OUTCOMES.__getitem__, outcome.tolist())),
    )
    return requests, ChunkGapTable.of_counts(column_of(given), column_of(counts[given]), columns.gaps)


def _stopped_early(columns: Columns, inputs: TrialInputs) -> NDArray[Any]:
    """Return which requests have fewer tokens than asked for and are taken as stops of the model's own."""
    short = (columns.output_tokens > 0) & (columns.output_tokens < inputs.requested_output_tokens)
    return short & (not inputs.ignore_eos and inputs.accept_early_stop)


def _require_within(requests: RequestTable, duration: int) -> None:
    late = [row for row, start in enumerate(requests.start_ns) if start > duration]
    if late:
        at = f"$.start_times[{requests.request[late[0]]}]"
        message = f"{len(late)} requests start after the tool's duration, counted from the first"
        raise InputError(
            Issue(at, "outside_interval", message, f"at most {duration} ns", str(requests.start_ns[late[0]]))
        )


def _interval(date: str, offset: int, duration_ns: int) -> Interval:
    """Return the interval that encloses a run whose ``date`` was taken at its end, by a clock of whole seconds."""
    match = _DATE.fullmatch(date)
    try:
        if match is None:
            raise ValueError
        parts = [int(part) for part in match.groups()]
        moment = int(datetime(*parts, tzinfo=UTC).timestamp()) - offset  # type: ignore[arg-type,misc]
        return Interval(format_instant(moment - ceil_div(duration_ns, NS_PER_S) - 1), format_instant(moment + 1))
    except (ValueError, OverflowError, OSError):
        got = shown(date)
        raise InputError(Issue("$.date", "invalid_instant", "not the tool's date", "YYYYmmdd-HHMMSS", got)) from None
