"""guidellm's JSON report: each benchmark in it -> one trial.

Source: guidellm 0.8.1, ``schemas/base/info.py`` (``RequestTimings``: epoch seconds of the wall clock),
``schemas/base/response.py`` (``compile_stats``) and ``benchmark/schemas/accumulator.py``; 0.5.4 writes the same request
records. Only the times of a request's first and last token are kept. A success whose server sent no usage silently
takes the lengths that were asked for: a count is the server's where the prompt's is another than asked for, where as
many lines with text came as tokens, or where it was stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.guidellm_claims import read_claims, summary_findings
from moeplan.importers.guidellm_requests import STATUSES, GuidellmRequest, Nanoseconds, moment_at, read_requests
from moeplan.importers.request_rows import RequestRow, listed, only_stage, outcome_of, tables_of
from moeplan.importers.tool_files import require_tool, tool_of
from moeplan.importers.tool_json import parse_tool_json
from moeplan.importers.tool_values import count_at, list_at, object_at, refused, text_at
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.model.evidence import Interval
from moeplan.model.finding import Finding
from moeplan.units import NS_PER_S, ceil_div, format_instant
from moeplan.wire.strict_json import child

__all__ = ["IMPORTER_VERSION", "import_guidellm"]

IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

_RAW = "run guidellm with its JSON output and without a sample size; aggregates satisfy no criterion"
_SCHEDULES = {
    "synchronous": "closed",
    "concurrent": "closed",
    "constant": "constant",
    "poisson": "poisson",
    "trace": "trace",
}
_VARIED = ("prompt_tokens_", "first_prompt_tokens", "prefix_buckets", "branches", "tool")
"""How the keys of synthetic data begin that make prompts differ."""
_ARRIVALS = ("constant", "poisson", "trace")
"""Strategies that fix when a request is due: from there to its sending it was held back."""


def import_guidellm(data: bytes, inputs: TrialInputs) -> tuple[ImportedTrial, ...]:
    """Return every benchmark of a guidellm report, in order.

    Outcomes: ``error`` where the tool reports one; ``truncated`` where the tool cancelled the request, or its tokens
    are not those requested, or nothing shows that the server counted them; else ``complete``. Requests that the tool
    counts but does not list are failures. There are no chunk gaps: a request has its first arrival alone, and ends
    with its last token.

    Args:
        data: the report's bytes.
        inputs: what the report does not hold.

    Raises:
        InputError: another tool's file, a report without requests, or one that contradicts itself.
    """
    document = parse_tool_json(data)
    if tool_of(document) == "guidellm 0.3 or older":
        step = "run guidellm 0.4 or later"
        raise InputError(Issue("$", "unsupported_version", "report of guidellm 0.3 or older", "0.4 to 0.8", None, step))
    require_tool(document, "guidellm", "raw_data_missing", ("benchmarks",), _RAW)
    version = text_at(object_at(document, "metadata", "$"), "guidellm_version", "$.metadata")
    benchmarks = list_at(document, "benchmarks", "$")
    if not benchmarks:
        raise InputError(Issue("$.benchmarks", "empty_file", "the report holds no benchmark", "one or more"))
    arguments = document.get("args")
    model = arguments.get("model") if type(arguments) is dict else None
    made = []
    for number, benchmark in only_stage(tuple(enumerate(benchmarks)), inputs):
        if type(benchmark) is not dict:
            raise refused(f"$.benchmarks[{number}]", "a JSON object", benchmark)
        trial = _Benchmark(benchmark, f"$.benchmarks[{number}]", inputs, _asked_prompt(document)).trial(model)
        made.append(attrs.evolve(trial, tool_version=version))
    return tuple(made)


class _Benchmark:
    """One benchmark of a report."""

    def __init__(self, benchmark: dict[str, Any], path: str, inputs: TrialInputs, asked_prompt: int | None) -> None:
        self._benchmark = benchmark
        self._path = path
        self._inputs = inputs
        self._asked_prompt = asked_prompt
        self._config = object_at(benchmark, "config", path)
        self._requests = read_requests(object_at(benchmark, "requests", path), child(path, "requests"))
        self._missing = self._not_listed()
        if not self._requests:
            got = "none listed"
            raise InputError(
                Issue(child(path, "requests"), "raw_data_missing", "the report lacks requests", "each one", got, _RAW)
            )

    def _not_listed(self) -> dict[str, int]:
        """Return how many requests of each status the tool counts beyond those it lists."""
        metrics = object_at(self._benchmark, "scheduler_metrics", self._path)
        told = object_at(metrics, "requests_made", child(self._path, "scheduler_metrics"))
        made = {}
        # Of the cancelled, those that were never begun are counted and not listed.
        for status in ("successful", "errored"):
            count = count_at(told.get(status), f"{self._path}.scheduler_metrics.requests_made.{status}")
            made[status] = max(0, count - sum(request.status == status for request in self._requests))
        return made

    def trial(self, model: Any) -> ImportedTrial:
        """Return the trial; ``model`` is the report's own where the benchmark names none."""
        first = min(request.start for request in self._requests)
        rows = self._rows(first)
        lost = self._lost_rows(len(rows))
        begin = moment_at(self._benchmark.get("start_time"), child(self._path, "start_time"))
        stop = moment_at(self._benchmark.get("end_time"), child(self._path, "end_time"))
        duration = max(round(stop - first), *(row.end for row in rows), 1)
        requests, gaps = tables_of([*rows, *lost], duration)
        claims = read_claims(self._benchmark, self._path)
        backend = self._config.get("backend")
        backend = backend if type(backend) is dict else {}
        strategy = object_at(self._config, "strategy", child(self._path, "config"))
        warm = self._inputs.warmup_requests
        counted = None if self._missing["successful"] else [item for item in self._requests if item.succeeded]
        return ImportedTrial(
            requests=requests,
            chunk_gaps=gaps,
            duration_ns=duration,
            interval=_interval(first, duration),
            endpoint=self._inputs.endpoint or _name(backend.get("request_format"), "guidellm"),
            model=_name(backend.get("model") or model, ""),
            concurrency=self._inputs.concurrency or _streams(strategy),
            warmup_input_tokens=0 if warm == 0 else None,
            warmup_output_tokens=0 if warm == 0 else None,
            claims=claims,
            findings=(
                *summary_findings(claims, counted, (begin, stop)),
                *self._findings(rows, lost, (begin, stop)),
            ),
            ttft_p95_claim="time_to_first_token_ms.successful.p95",
            schedule=_SCHEDULES.get(str(strategy.get("type_"))),
        )

    def _rows(self, first: Nanoseconds) -> list[RequestRow]:
        strategy = object_at(self._config, "strategy", child(self._path, "config")).get("type_")
        return [
            _row(index, request, first, self._inputs, strategy in _ARRIVALS, self._counted(request))
            for index, request in enumerate(self._requests)
        ]

    def _counted(self, request: GuidellmRequest) -> bool:
        """Return whether the server counted a request's tokens, by what the report shows or was stated."""
        preferred = self._config.get("prefer_response_metrics", True) is True
        if not (request.succeeded and preferred and request.server_tokens is not None):
            return False
        other_prompt = self._asked_prompt is not None and request.input_tokens != self._asked_prompt
        return other_prompt or request.line_for_each_token or self._inputs.continuous_usage

    def _lost_rows(self, listed_count: int) -> list[RequestRow]:
        outcomes = ["truncated"] * self._missing["successful"] + ["error"] * self._missing["errored"]
        return [
            RequestRow(listed_count + place, 0, 0, 0, 0, (), 0, 0, 0, False, outcome)
            for place, outcome in enumerate(outcomes)
        ]

    def _findings(
        self, rows: Sequence[RequestRow], lost: Sequence[RequestRow], window: tuple[Nanoseconds, Nanoseconds]
    ) -> Iterator[Finding]:
        by_status: Mapping[str, list[RequestRow]] = {
            status: [row for row in rows if self._requests[row.index].status == status] for status in STATUSES
        }
        yield from listed("failed_requests", by_status["errored"], "requests failed")
        yield from listed("cancelled_requests", by_status["incomplete"], "requests were cancelled by the tool")
        short = [row for row in by_status["successful"] if row.outcome == "truncated"]
        silent = [row for row in short if not self._counted(self._requests[row.index])]
        yield from listed(
            "completion_not_shown",
            silent,
            "requests may hold the count that was asked for in place of the server's; state --continuous-usage where"
            " the server sent usage",
        )
        cut = [row for row in short if row not in silent]
        yield from listed("truncated_counted_as_success", cut, "requests ended without the tokens asked for")
        if lost:
            message = (
                f"the tool counts {len(lost)} requests that the report does not list (a sample, or a file cut down):"
                " they count as failures"
            )
            yield Finding("requests_not_listed", "error", message, None)
        outside = [row for row in rows if not window[0] <= self._requests[row.index].start <= window[1]]
        if outside:
            message = f"{len(outside)} requests began outside the window that the tool measures; here they count"
            yield Finding("warmup_included", "info", message, None)
        message = "the report keeps the times of a request's first and last token alone: there are no chunk gaps"
        yield Finding("chunk_times_missing", "info", message, None)


def _row(
    index: int, request: GuidellmRequest, first: Nanoseconds, inputs: TrialInputs, due: bool, counted: bool
) -> RequestRow:
    start = round(request.start - first)
    seen = request.first_token is not None
    outcome, usage = outcome_of(request.tokens, counted, inputs)
    end = request.last_token if request.succeeded and request.last_token is not None else request.end
    return RequestRow(
        index=index,
        start=start,
        queue=max(0, round(request.start - request.due)) if due and request.due is not None else 0,
        ttft=round(request.first_token - request.start) if request.first_token is not None else 0,
        end=start + round(end - request.start),
        gaps=(),
        chunks=int(seen),
        input_tokens=request.input_tokens,
        output_tokens=request.tokens if counted or not request.succeeded else request.iterations,
        usage=usage,
        outcome="error" if request.status == "errored" else outcome,
    )


def _asked_prompt(document: dict[str, Any]) -> int | None:
    """Return the prompt tokens that every request was made of: None where they vary, or are not synthetic.

    Source: guidellm 0.8.1, ``data/finalizers/generative.py``: a synthetic prompt is counted as the length asked for.
    """
    config = document.get("config")
    spec = config.get("spec") if type(config) is dict else None
    data = spec.get("data") if type(spec) is dict else None
    only = data[0] if type(data) is list and len(data) == 1 else None
    if type(only) is not dict or only.get("kind") != "synthetic_text" or only.get("turns") != 1:
        return None
    varied = any(value not in (None, []) for key, value in only.items() if key.startswith(_VARIED))
    asked = only.get("prompt_tokens")
    return asked if type(asked) is int and not varied else None


def _interval(first: Nanoseconds, duration: int) -> Interval:
    try:
        start = int(first // NS_PER_S)
        return Interval(format_instant(start), format_instant(start + 1 + ceil_div(duration, NS_PER_S)))
    except (ValueError, OverflowError, OSError):
        got = escape(str(first), 40)
        raise InputError(Issue("$", "invalid_instant", "not a time", "seconds since the epoch", got)) from None


def _name(value: Any, default: str) -> str:
    return value if type(value) is str and 0 < len(value) <= 200 and value.isprintable() else default


def _streams(strategy: dict[str, Any]) -> int | None:
    if strategy.get("type_") == "synchronous":
        return 1
    streams = strategy.get("streams")
    return streams if type(streams) is int and streams >= 1 else None
