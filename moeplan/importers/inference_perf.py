"""inference-perf: its ``per_request_lifecycle_metrics.json``, whole or with its texts cut -> one trial, or one a stage.

Source: inference-perf 0.7.0, ``reportgen/base.py`` (``summarize_requests`` and the per-request report): times are
seconds of a monotonic clock, ``chunk_times`` the arrival of each chunk, ``output_token_times`` that of each token as
the tool's own tokenizer counts them. The tool counts every stream without an exception as a success, also one that told
of an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.inference_perf_claims import Report, Sample, claim_findings, read_report
from moeplan.importers.inference_perf_findings import request_findings
from moeplan.importers.inference_perf_request import AskedFor, asked_for, told_of_error
from moeplan.importers.request_rows import RequestRow, tables_of
from moeplan.importers.tool_files import tool_of
from moeplan.importers.tool_json import parse_tool_json
from moeplan.importers.tool_values import count_at, list_at, object_at, refused, seconds_at
from moeplan.importers.trial import ImportedTrial, TrialInputs, stated_interval
from moeplan.model.evidence import Interval
from moeplan.model.finding import Finding
from moeplan.units import NS_PER_S, format_instant, parse_instant, seconds_to_ns

__all__ = ["INFERENCE_PERF_IMPORTER_VERSION", "import_inference_perf"]

INFERENCE_PERF_IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

_STEP = "give per_request_lifecycle_metrics.json (report.request_lifecycle.per_request: true)"
_MOST_ISSUES = 20


@attrs.frozen
class _Record:
    """One request of the file; ``row.start`` and ``row.end`` still on the tool's clock."""

    row: RequestRow
    success: bool
    asked: AskedFor
    sample: Sample | None


def import_inference_perf(data: bytes, inputs: TrialInputs) -> tuple[ImportedTrial, ...]:
    """Return the file's requests as one trial, or as one a stage where the stages' reports are given.

    A request's index is its place in the trial. Outcomes: ``error`` where the tool reports one, or the stream told of
    one; ``truncated`` where it reports none but there is no server usage count, or not the tokens asked for (by the
    request itself, where the file holds it, else as stated); else ``complete``.

    Args:
        data: the file's bytes.
        inputs: what the file does not hold; ``summaries`` are the stages' reports in order, the summary, or none.
            ``stage`` picks one stage.

    Raises:
        InputError: not such a file, stages that do not add up to it, or records that contradict themselves.
    """
    document = parse_tool_json(data)
    if type(document) is not list or not document:
        got = tool_of(document) or type(document).__name__
        raise InputError(Issue("$", "wrong_file", "not inference-perf's requests", "a list of requests", got, _STEP))
    records: list[_Record] = []
    issues: list[Issue] = []
    for place, item in enumerate(document):
        try:
            records.append(_record(item, place, inputs))
        except InputError as error:
            issues += error.issues
    if issues:
        raise InputError(*issues[:_MOST_ISSUES])
    reports = [read_report(summary, f"--summary {place}") for place, summary in enumerate(inputs.summaries, 1)]
    return tuple(_trials(records, reports, inputs))


def _record(item: Any, place: int, inputs: TrialInputs) -> _Record:
    path = f"$[{place}]"
    if type(item) is not dict or not {"start_time", "end_time", "info", "error"} <= set(item):
        message = "not a request of inference-perf's"
        raise InputError(Issue(path, "wrong_file", message, "start_time, end_time, info and error", None, _STEP))
    start, end = (_moment(item[key], f"{path}.{key}") for key in ("start_time", "end_time"))
    if end < start:
        raise InputError(Issue(f"{path}.end_time", "time_reversed", "ends before it starts", f"≥ {start} ns", str(end)))
    info, asked = object_at(item, "info", path), asked_for(item.get("request"))
    metrics = info.get("response_metrics")
    told = metrics if type(metrics) is dict else {}
    chunks = _moments(told, "chunk_times", f"{path}.info.response_metrics")
    tokens = _moments(told, "output_token_times", f"{path}.info.response_metrics")
    usage, at = told.get("server_usage"), f"{path}.info.response_metrics.server_usage"
    counts = _usage(usage, at)
    counted = told.get("output_tokens")
    client = count_at(0 if counted is None else counted, f"{path}.info.response_metrics.output_tokens")
    prompt = count_at(info.get("input_tokens", 0), f"{path}.info.input_tokens")
    success = item["error"] is None
    failed = not success or told_of_error(item.get("response"))
    row = RequestRow(
        index=place,
        start=start,
        queue=0,
        ttft=chunks[0] - start if chunks else 0,
        end=max([end, *chunks[-1:]]),
        gaps=tuple(right - left for left, right in pairwise(chunks)),
        chunks=len(chunks),
        input_tokens=counts[0] if counts else prompt,
        output_tokens=counts[1] if counts else client,
        usage=counts is not None,
        outcome="error" if failed else _outcome(counts, asked, inputs),
    )
    return _Record(row, success, asked, Sample(start, end, tuple(tokens), client) if success else None)


def _moment(value: Any, path: str) -> int:
    return seconds_to_ns(seconds_at(value, path))


def _moments(told: dict[str, Any], key: str, path: str) -> list[int]:
    if told.get(key) is None:
        return []
    made = [_moment(value, f"{path}.{key}[{place}]") for place, value in enumerate(list_at(told, key, path))]
    if made != sorted(made):
        raise InputError(Issue(f"{path}.{key}", "time_reversed", "arrivals are not in order", "ascending seconds"))
    return made


def _usage(usage: Any, path: str) -> tuple[int, int] | None:
    if usage is None:
        return None
    if type(usage) is not dict:
        raise refused(path, "a JSON object or null", usage)
    if usage.get("prompt_tokens") is None or usage.get("completion_tokens") is None:
        return None
    return tuple(count_at(usage[f"{side}_tokens"], f"{path}.{side}_tokens") for side in ("prompt", "completion"))  # type: ignore[return-value]


def _outcome(counts: tuple[int, int] | None, asked: AskedFor, inputs: TrialInputs) -> str:
    if counts is None or not counts[1]:
        return "truncated"
    wanted = asked.tokens
    if wanted is None:
        varied = inputs.output_varies and inputs.ignore_eos
        wanted = counts[1] if varied else inputs.requested_output_tokens
    early = not inputs.ignore_eos and inputs.accept_early_stop and counts[1] < wanted
    return "complete" if early or counts[1] == wanted else "truncated"


def _trials(records: Sequence[_Record], reports: Sequence[Report], inputs: TrialInputs) -> list[ImportedTrial]:
    """Cut the records where the stages' reports say; without such reports they are one trial."""
    stages = [report for report in reports if report.is_stage]
    whole = [report for report in reports if not report.is_stage]
    if len(whole) > 1 or (stages and sum(stage.count for stage in stages) != len(records)):
        message = "the reports do not add up to the file: give every stage's, in order, of the same run"
        expected = f"stages of {len(records)} requests together, at most one summary"
        got = " + ".join(str(stage.count) for stage in stages) or f"{len(whole)} summaries"
        raise InputError(Issue("--summary", "stages_differ", message, expected, got))
    if inputs.stage is not None and not 0 <= inputs.stage < len(stages):
        expected = f"0 to {len(stages) - 1}" if stages else "every stage's report with --summary"
        raise InputError(Issue("--stage", "unknown_stage", "no such stage", expected, str(inputs.stage)))
    ends = _ends(records)
    made, place = [], 0
    for number, stage in enumerate(stages):
        part = records[place : place + stage.count]
        if inputs.stage in (None, number):
            made.append(_trial(part, stage, inputs, ends))
        place += stage.count
    return made or [_trial(records, whole[0] if whole else None, inputs, ends)]


def _ends(records: Sequence[_Record]) -> tuple[int, int]:
    return min(record.row.start for record in records), max(record.row.end for record in records)


def _trial(
    records: Sequence[_Record], report: Report | None, inputs: TrialInputs, run: tuple[int, int]
) -> ImportedTrial:
    begun, over = _ends(records)
    rows = [
        attrs.evolve(record.row, index=place, start=record.row.start - begun, end=record.row.end - begun)
        for place, record in enumerate(records)
    ]
    duration = max(over - begun, 1)
    requests, gaps = tables_of(rows, duration)
    samples = [record.sample for record in records if record.sample is not None]
    return ImportedTrial(
        requests=requests,
        chunk_gaps=gaps,
        duration_ns=duration,
        interval=_interval(inputs, begun - run[0], run[1] - over),
        endpoint=_stated("--endpoint", inputs.endpoint, {record.asked.endpoint for record in records}),
        model=_stated("--model", inputs.model, {record.asked.model for record in records}),
        concurrency=inputs.concurrency,
        warmup_input_tokens=0 if inputs.warmup_requests == 0 else None,
        warmup_output_tokens=0 if inputs.warmup_requests == 0 else None,
        claims=report.claims if report else (),
        findings=(
            *request_findings(
                rows, [record.success for record in records], [record.asked for record in records], inputs
            ),
            *_report_findings(report),
            *(claim_findings(report, len(records), samples, duration) if report else ()),
        ),
        ttft_p95_claim="",
    )


def _interval(inputs: TrialInputs, after: int, before: int) -> Interval:
    """Return what encloses a part of the stated interval that begins and ends so many ns within the run."""
    stated = stated_interval(inputs)
    return Interval(
        format_instant(parse_instant(stated.start) + after // NS_PER_S),
        format_instant(parse_instant(stated.end) - before // NS_PER_S),
    )


def _stated(option: str, value: str | None, seen: set[str | None]) -> str:
    """Return the option's value, else the only one that the requests name."""
    named = sorted(name for name in seen if name is not None)
    if value is not None:
        return value
    if len(named) != 1:
        message = "the requests name none" if not named else "the requests name several"
        got = escape(", ".join(named), 200) if named else None
        raise InputError(Issue(option, "not_stated", message, "the option", got))
    return named[0]


def _report_findings(report: Report | None) -> Iterator[Finding]:
    if report is None:
        message = "no --summary given: nothing shows that the file holds every request, or which stage each is of"
        yield Finding("summary_missing", "info", message, None)
    message = "the file holds no scheduled times; the client's wait before sending is taken as 0"
    yield Finding("queue_times_missing", "info", message, None)
