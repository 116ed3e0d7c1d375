"""``vllm bench serve --save-result --save-detailed``: one JSON file -> one trial, exact to the nanosecond.

Source: vLLM 0.32, ``vllm/benchmarks/serve.py`` (``calculate_metrics``) and ``lib/endpoint_request_func.py`` beside it.
The tool counts a stream that broke after HTTP 200 as a success; here it is ``truncated``.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.recompute import claim_findings, read_claims
from moeplan.importers.tool_json import parse_tool_json
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.importers.vllm_bench_findings import trial_findings
from moeplan.model.evidence import Interval
from moeplan.model.tables import ChunkGapTable, RequestTable, table_faults
from moeplan.units import NS_PER_S, ceil_div, format_instant, seconds_to_ns
from moeplan.wire.strict_json import child

__all__ = ["IMPORTER_VERSION", "USAGE_ENDPOINTS", "import_vllm_bench"]

IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

USAGE_ENDPOINTS = ("openai", "openai-chat", "vllm")
"""Backends that ask the server for its usage and take both token counts from it.

Source: vLLM 0.32, ``endpoint_request_func.py``: ``stream_options.include_usage``; ``prompt_len`` and ``output_tokens``
are overwritten by the usage chunk. Without one the tool counts the text's tokens itself.
"""

_COLUMNS = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors")
_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})-(\d{2})(\d{2})(\d{2})", re.ASCII)
_MOST_SECONDS = 10**7
_MOST_CLOCK_SECONDS = 10**10
_MOST_TOKENS = 10**9
_MOST_ISSUES = 20
_RAW = "run 'vllm bench serve' with --save-result --save-detailed (vLLM 0.32); aggregates satisfy no criterion"


@attrs.frozen
class _Row:
    """One request as the file holds it; times in ns, ``start`` on the tool's own clock."""

    index: int
    start: int
    queue: int
    ttft: int
    latency: int
    gaps: tuple[int, ...]
    input_tokens: int
    output_tokens: int
    failed: bool

    @property
    def chunks(self) -> int:
        return 1 + len(self.gaps) if self.ttft or self.gaps else 0

    @property
    def length(self) -> int:
        """Ns from sending to the last moment known; a reset mid-stream leaves latency 0 but keeps its chunks."""
        return max(self.latency, self.ttft + sum(self.gaps))


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
    document = parse_tool_json(data)
    _require_raw(document)
    rows = _rows(document)
    endpoint = inputs.endpoint or _text(document, "endpoint_type")
    usage = document.get("endpoint_type") in USAGE_ENDPOINTS
    requests, gaps = _tables(rows, inputs, usage)
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
        *trial_findings(requests, inputs, claims, cap=cap, usage=usage, queued="queue_times" in document),
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
        warmup_input_tokens=None if warm is None else warm * rows[0].input_tokens,
        warmup_output_tokens=warm * inputs.requested_output_tokens if warm is not None and inputs.ignore_eos else None,
        claims=claims,
        findings=findings,
    )


def _require_raw(document: Any) -> None:
    if type(document) is not dict:
        raise InputError(Issue("$", "wrong_type", "not a vllm bench result", "a JSON object", type(document).__name__))
    missing = [key for key in (*_COLUMNS, "date", "duration", "endpoint_type", "model_id") if key not in document]
    if missing:
        message = "the file lacks the raw data of each request"
        got = "no " + ", ".join(missing)
        raise InputError(Issue("$", "raw_data_missing", message, ", ".join(_COLUMNS), got, _RAW))
    lists = [key for key in (*_COLUMNS, "queue_times") if key in document]
    wrong = [key for key in lists if type(document[key]) is not list]
    if wrong:
        raise InputError(*(Issue(child("$", key), "wrong_type", "not a list", "one item a request") for key in wrong))
    count = len(document["input_lens"])
    promised = document.get("num_prompts", count)
    if count == 0 or promised != count:
        got = escape(str(promised), 40)
        raise InputError(Issue("$.num_prompts", "length_mismatch", "not the number of requests", str(count or 1), got))
    for key in lists:
        if len(document[key]) != count:
            got = str(len(document[key]))
            raise InputError(Issue(child("$", key), "length_mismatch", "lists of unequal length", str(count), got))


def _rows(document: dict[str, Any]) -> list[_Row]:
    issues: list[Issue] = []
    columns = {
        "start": _column(document, "start_times", lambda value: _ns(value, _MOST_CLOCK_SECONDS), issues),
        "ttft": _column(document, "ttfts", _ns, issues),
        "latency": _column(document, "latencies", _ns, issues),
        "gaps": _column(document, "itls", _gaps, issues),
        "input_tokens": _column(document, "input_lens", _tokens, issues),
        "output_tokens": _column(document, "output_lens", _tokens, issues),
        "error": _column(document, "errors", lambda value: value if type(value) is str else "text", issues, text=True),
        "queue": _column(document, "queue_times", _ns, issues) if "queue_times" in document else None,
    }
    if issues:
        raise InputError(*issues[:_MOST_ISSUES])
    count = len(document["input_lens"])
    columns["queue"] = columns["queue"] or [0] * count
    made = []
    for index in range(count):
        row = {name: column[index] for name, column in columns.items() if column is not None}
        # An HTTP error without a reason phrase leaves errors[i] empty; a success never has latency 0.
        failed = bool(row.pop("error")) or row["latency"] == 0
        made.append(_Row(index=index, failed=failed, **row))
    return made


def _column(
    document: dict[str, Any], key: str, read: Callable[[Any], Any], issues: list[Issue], *, text: bool = False
) -> list[Any]:
    """Return each item of a list as ``read`` gives it; a str from ``read`` says what was expected instead."""
    made = []
    for index, value in enumerate(document[key]):
        got = read(value)
        if type(got) is str and not (text and type(value) is str):
            shown = escape(repr(value), 40) if type(value) is not Decimal else str(value)
            issues.append(Issue(f"$.{key}[{index}]", "invalid_value", "value refused", got, shown))
        made.append(got)
    return made


def _ns(value: Any, most: int = _MOST_SECONDS) -> int | str:
    if type(value) not in (int, Decimal) or not 0 <= value <= most:
        return f"seconds from 0 to {most}"
    return seconds_to_ns(Decimal(value))


def _gaps(value: Any) -> tuple[int, ...] | str:
    wanted = f"a list of seconds from 0 to {_MOST_SECONDS}"
    if type(value) is not list:
        return wanted
    made = tuple(_ns(item) for item in value)
    return wanted if any(type(item) is str for item in made) else made  # type: ignore[return-value]


def _tokens(value: Any) -> int | str:
    fits = type(value) is int and 0 <= value <= _MOST_TOKENS
    return int(value) if fits else f"an integer from 0 to {_MOST_TOKENS}"


def _text(document: dict[str, Any], key: str) -> str:
    value = document[key]
    if type(value) is not str or not 0 < len(value) <= 200 or not value.isprintable():
        expected = "printable text of 1 to 200 characters"
        raise InputError(Issue(child("$", key), "invalid_value", "value refused", expected, escape(repr(value), 60)))
    return value


def _number(document: dict[str, Any], key: str, most: int) -> Decimal:
    value = document[key]
    if type(value) not in (int, Decimal) or not 0 < value <= most:
        expected, got = f"seconds, more than 0 and at most {most}", escape(repr(value), 60)
        raise InputError(Issue(child("$", key), "invalid_value", "value refused", expected, got))
    return Decimal(value)


def _cap(document: dict[str, Any]) -> int | None:
    value = document.get("max_concurrency")
    return value if type(value) is int and value >= 1 else None


def _tables(rows: Sequence[_Row], inputs: TrialInputs, usage: bool) -> tuple[RequestTable, ChunkGapTable]:
    first = min(row.start for row in rows)
    ordered = sorted(rows, key=lambda row: (row.start, row.index))
    outcomes = [_outcome(row, inputs) for row in ordered]
    exact = [row.output_tokens == inputs.requested_output_tokens for row in ordered]
    requests = RequestTable(
        request=_integers(row.index for row in ordered),
        start_ns=_integers(row.start - first for row in ordered),
        queue_ns=_integers(row.queue for row in ordered),
        ttft_ns=_integers(row.ttft for row in ordered),
        end_ns=_integers(row.start - first + row.length for row in ordered),
        chunks=_integers(row.chunks for row in ordered),
        input_tokens=_integers(row.input_tokens for row in ordered),
        output_tokens=_integers(row.output_tokens for row in ordered),
        # A request accepted short of its tokens may be a broken stream, counted by the client.
        usage=_integers(
            int(usage and outcome == "complete" and full) for outcome, full in zip(outcomes, exact, strict=True)
        ),
        outcome=tuple(outcomes),
    )
    gaps = ChunkGapTable(
        request=_integers(row.index for row in rows for _ in row.gaps),
        ordinal=_integers(number for row in rows for number in range(1, len(row.gaps) + 1)),
        gap_ns=_integers(gap for row in rows for gap in row.gaps),
    )
    return requests, gaps


def _integers(values: Any) -> array[int]:
    return array("q", values)


def _outcome(row: _Row, inputs: TrialInputs) -> str:
    if row.failed:
        return "error"
    if row.output_tokens == inputs.requested_output_tokens:
        return "complete"
    early = not inputs.ignore_eos and inputs.accept_early_stop
    return "complete" if early and 0 < row.output_tokens < inputs.requested_output_tokens else "truncated"


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
        got = escape(repr(date), 40)
        raise InputError(Issue("$.date", "invalid_instant", "not the tool's date", "YYYYmmdd-HHMMSS", got)) from None
