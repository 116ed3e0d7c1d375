"""``aiperf profile``: its ``profile_export.jsonl``, one record a request -> one trial a profiling phase.

Source: aiperf 0.13.0. ``common/models/record_models.py``: moments are ``time.time_ns()`` of the wall clock.
``metrics/types``: ``request_latency`` ends at the last response with content, ``inter_chunk_latency`` holds the gaps
between such responses. The tool counts a stream that broke after HTTP 200 as a success; only the server's usage count,
which then is missing, tells: here it is ``truncated``.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import IO, Any

from moeplan.errors import InputError, Issue
from moeplan.importers.aiperf_findings import phase_findings
from moeplan.importers.aiperf_phase import Phase, WarmUp
from moeplan.importers.aiperf_summary import AiperfSummary, no_summary, read_summary
from moeplan.importers.aiperf_values import (
    GIVE_THE_RECORDS,
    asked_tokens,
    client_input,
    metadata_path,
    milliseconds_at,
    moment_at,
    ns_at,
    tokens_at,
    with_gaps,
)
from moeplan.importers.shown import shown
from moeplan.importers.streamed_lines import read_objects
from moeplan.importers.trial import ImportedTrial, TrialInputs

__all__ = ["AIPERF_IMPORTER_VERSION", "import_aiperf"]

AIPERF_IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

_PHASES = ("warmup", "profiling")


def import_aiperf(data: bytes | IO[bytes], inputs: TrialInputs) -> tuple[ImportedTrial, ...]:
    """Return the trials in an aiperf ``profile_export.jsonl``, one a profiling phase, in order of the phases.

    A request's index is its place among the phase's records in the file. Outcomes: ``error`` where the tool reports one
    or cancelled the request; ``truncated`` where it reports none but there is no server usage count, or not the tokens
    asked for; else ``complete``. The tokens asked for are the record's own (its OSL mismatch tells them), else the
    stated ones. Records of a warm-up are counted apart.

    Args:
        data: the file's bytes, or the file opened for reading bytes, which is then never in memory as a whole.
        inputs: what the file does not hold; ``summaries`` is none or the tool's ``profile_export_aiperf.json``.

    Raises:
        InputError: not such a file, broken off, or contradicting itself; with line and JSON path.
    """
    phases: dict[int, Phase] = {}
    warm: dict[int, WarmUp] = {}
    for number, document, gaps in with_gaps(read_objects(data)):
        metadata, metrics = document["metadata"], document["metrics"]
        kind, index = metadata.get("benchmark_phase"), metadata.get("phase_index")
        if kind not in _PHASES or (index is not None and type(index) is not int):
            got = shown(kind)
            raise InputError(
                Issue(metadata_path(number, "benchmark_phase"), "invalid_value", "not a phase", str(_PHASES), got)
            )
        if kind == "warmup":
            _warm_up(warm.setdefault(index or 0, WarmUp()), document, metrics, number)
        else:
            phase = phases.setdefault(1 if index is None else index, Phase())
            _measured(phase, document, gaps, number, inputs)
    if not phases:
        expected = "records with benchmark_phase profiling"
        raise InputError(Issue("$", "no_trial", "no measured request in the file", expected, None, GIVE_THE_RECORDS))
    summary = _summary(inputs)
    return tuple(
        _trial(phases[index], _between(warm, previous, index), inputs, summary, alone=len(phases) == 1)
        for previous, index in zip([-1, *sorted(phases)], sorted(phases), strict=False)
    )


def _summary(inputs: TrialInputs) -> AiperfSummary:
    if len(inputs.summaries) > 1:
        got = str(len(inputs.summaries))
        raise InputError(Issue("--summary", "summary_count", "more than one summary for a file", "at most one", got))
    try:
        return read_summary(inputs.summaries[0]) if inputs.summaries else no_summary()
    except InputError as error:
        raise InputError(*(issue.under("--summary: $") for issue in error.issues)) from None


def _between(warm: Mapping[int, WarmUp], after: int, before: int) -> WarmUp:
    """Return the warm-up phases that ran between two profiling phases, as one."""
    return WarmUp.joined(part for index, part in warm.items() if after < index < before)


def _failed(document: Mapping[str, Any]) -> bool:
    """Return whether the tool itself reports an error, a cancellation, or a request that it did not count."""
    metadata = document["metadata"]
    return (
        document.get("error") is not None
        or metadata.get("was_cancelled") is not False
        or metadata.get("context_overflow_skip") not in (None, False)
    )


def _warm_up(warm: WarmUp, document: Mapping[str, Any], metrics: Mapping[str, Any], number: int) -> None:
    prompt, completion = (tokens_at(metrics, f"usage_{side}_tokens", number) for side in ("prompt", "completion"))
    warm.requests += 1
    if _failed(document) or prompt is None or completion is None:
        warm.unknown += 1
    else:
        warm.input_tokens += prompt
        warm.output_tokens += completion


def _measured(
    phase: Phase, document: Mapping[str, Any], gaps: array[int] | None, number: int, inputs: TrialInputs
) -> None:
    metadata, metrics = document["metadata"], document["metrics"]
    start, end = moment_at(metadata, "request_start_ns", number), moment_at(metadata, "request_end_ns", number)
    issued = start if metadata.get("credit_issued_ns") is None else moment_at(metadata, "credit_issued_ns", number)
    if end < start:
        raise InputError(
            Issue(metadata_path(number, "request_end_ns"), "time_reversed", "ends before it starts", f"≥ {start}")
        )
    ttft, latency = ns_at(metrics, "time_to_first_token", number), ns_at(metrics, "request_latency", number)
    prompt, completion = (tokens_at(metrics, f"usage_{side}_tokens", number) for side in ("prompt", "completion"))
    counted = tokens_at(metrics, "output_sequence_length", number)
    asked = asked_tokens(metrics, counted, number)
    failed = _failed(document)
    outcome = "error" if failed else _outcome(completion, asked, inputs)
    phase.add(
        start=start,
        queue=max(start - issued, 0),
        ttft=ttft,
        gaps=gaps,
        latency=end - start if latency is None else latency,
        closed=end,
        input_tokens=client_input(metrics, number) if prompt is None else prompt,
        output_tokens=(counted or 0) if completion is None else completion,
        usage=prompt is not None and completion is not None,
        outcome=outcome,
        asked=asked,
        tool_itl_ms=None if failed else milliseconds_at(metrics, "inter_token_latency", number),
    )


def _outcome(completion: int | None, asked: int | None, inputs: TrialInputs) -> str:
    wanted = inputs.requested_output_tokens if asked is None else asked
    if completion == wanted:
        return "complete"
    early = not inputs.ignore_eos and inputs.accept_early_stop
    return "complete" if early and completion is not None and 0 < completion < wanted else "truncated"


def _trial(phase: Phase, warm: WarmUp, inputs: TrialInputs, summary: AiperfSummary, *, alone: bool) -> ImportedTrial:
    endpoint, model = inputs.endpoint or summary.endpoint, inputs.model or summary.model
    for option, value in (("--endpoint", endpoint), ("--model", model)):
        if value is None:
            message = "the file does not name it and no --summary does"
            raise InputError(Issue(option, "not_stated", message, "the option, or the tool's summary"))
    made = phase.tables()
    claims = summary.claims if alone else ()
    return ImportedTrial(
        requests=made.requests,
        chunk_gaps=made.gaps,
        duration_ns=made.duration_ns,
        interval=made.interval,
        endpoint=str(endpoint),
        model=str(model),
        concurrency=inputs.concurrency if inputs.concurrency is not None else summary.concurrency,
        warmup_input_tokens=None if warm.unknown else warm.input_tokens,
        warmup_output_tokens=None if warm.unknown else warm.output_tokens,
        claims=claims,
        findings=tuple(phase_findings(made, warm, inputs, summary, claims)),
        tool_version=summary.version,
        ttft_p95_claim="time_to_first_token.p95",
        schedule=summary.schedule,
        warmup_requests=warm.requests,
    )
