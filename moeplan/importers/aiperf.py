"""``aiperf profile``: its ``profile_export.jsonl``, one record a request -> one trial a profiling phase.

Source: aiperf 0.13.0. ``common/models/record_models.py``: moments are ``time.time_ns()`` of the wall clock.
``metrics/types``: ``request_latency`` ends at the last response with content, ``inter_chunk_latency`` holds the gaps
between such responses. The tool counts a stream that broke after HTTP 200 as a success; only the server's usage count,
which then is missing, tells: here it is ``truncated``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import IO, Any

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.aiperf_findings import phase_findings
from moeplan.importers.aiperf_phase import Phase, WarmUp
from moeplan.importers.aiperf_summary import AiperfSummary, no_summary, read_summary
from moeplan.importers.exact_ns import many_to_ns, one_to_ns
from moeplan.importers.streamed_lines import at_line, read_objects
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.model.columns import view
from moeplan.units import NS_PER_MS

__all__ = ["AIPERF_IMPORTER_VERSION", "import_aiperf"]

AIPERF_IMPORTER_VERSION = "1.0.0"
"""Changes when the same file and inputs give another record."""

_MOST_MS = 9 * 10**9
_MOST_TOKENS = 10**9
_MOST_EPOCH_NS = 2**62
_PHASES = ("warmup", "profiling")
_OTHERS = (
    ("aiperf_version", "aiperf's summary (profile_export_aiperf.json)"),
    ("responses", "aiperf's raw export (profile_export_raw.jsonl)"),
    ("phases", "aiperf's phase manifest (phase_manifest.json)"),
)
_STEP = "give profile_export.jsonl, and the summary with --summary"
_SLACK = Fraction(1, 10**6)
_GAPS = "inter_chunk_latency"
_BATCH = 16
"""Records whose gaps are converted at once: few enough for the caches."""
_NUMBERS = frozenset((float, int, Decimal))


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
    for number, document, gaps in _with_gaps(read_objects(data)):
        metadata, metrics = document["metadata"], document["metrics"]
        kind, index = metadata.get("benchmark_phase"), metadata.get("phase_index")
        if kind not in _PHASES or (index is not None and type(index) is not int):
            got = escape(repr(kind), 40)
            raise InputError(Issue(_at(number, "benchmark_phase"), "invalid_value", "not a phase", str(_PHASES), got))
        if kind == "warmup":
            _warm_up(warm.setdefault(index or 0, WarmUp()), document, metrics, number)
        else:
            phase = phases.setdefault(1 if index is None else index, Phase())
            _measured(phase, document, gaps, number, inputs)
    if not phases:
        expected = "records with benchmark_phase profiling"
        raise InputError(Issue("$", "no_trial", "no measured request in the file", expected, None, _STEP))
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


def _parts(document: dict[str, Any], number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    metadata, metrics = document.get("metadata"), document.get("metrics")
    if type(metadata) is dict and type(metrics) is dict:
        return metadata, metrics
    known = next((title for key, title in _OTHERS if key in document), None)
    message = "not a record of aiperf's" if known is None else f"this is {known}"
    raise InputError(Issue(at_line(number), "wrong_file", message, "metadata and metrics in each line", None, _STEP))


def _at(number: int, key: str) -> str:
    return at_line(number, f"$.metadata.{key}")


def _moment(metadata: Mapping[str, Any], key: str, number: int) -> int:
    value = metadata.get(key)
    if type(value) is not int or not 0 < value < _MOST_EPOCH_NS:
        got = escape(repr(value), 40)
        raise InputError(Issue(_at(number, key), "invalid_value", "value refused", "nanoseconds since 1970", got))
    return value


def _value(metrics: Mapping[str, Any], name: str, unit: str, number: int) -> Any:
    """Return a metric's value; None where the record has none.

    Raises:
        InputError: another unit, which a file of another version may have.
    """
    entry = metrics.get(name)
    if entry is None:
        return None
    if type(entry) is not dict or entry.get("unit") != unit:
        got = escape(repr(entry.get("unit") if type(entry) is dict else entry), 40)
        path = at_line(number, f"$.metrics.{name}.unit")
        raise InputError(Issue(path, "unknown_unit", "a unit that this importer does not know", unit, got))
    return entry.get("value")


def _refused(name: str, number: int, expected: str, value: Any) -> InputError:
    path = at_line(number, f"$.metrics.{name}.value")
    return InputError(Issue(path, "invalid_value", "value refused", expected, escape(repr(value), 40)))


def _ns(metrics: Mapping[str, Any], name: str, number: int) -> int | None:
    value = _milliseconds(metrics, name, number)
    return None if value is None else one_to_ns(value)


def _milliseconds(metrics: Mapping[str, Any], name: str, number: int) -> int | float | Decimal | None:
    value = _value(metrics, name, "ms", number)
    if value is not None and (type(value) not in _NUMBERS or not 0 <= value <= _MOST_MS):
        raise _refused(name, number, f"milliseconds from 0 to {_MOST_MS}", value)
    return value  # type: ignore[no-any-return]


def _with_gaps(
    records: Iterable[tuple[int, dict[str, Any]]],
) -> Iterator[tuple[int, dict[str, Any], array[int] | None]]:
    """Yield each record with its gaps between chunks in ns, None where it has none; many are converted at once."""
    remaining = iter(records)
    while batch := list(islice(remaining, _BATCH)):
        lists = [_gap_list(_parts(document, number)[1], number) for number, document in batch]
        column, at = _gap_column(lists, [number for number, _ in batch]), 0
        for (number, document), values in zip(batch, lists, strict=True):
            yield number, document, None if values is None else column[at : at + len(values)]
            at += len(values or ())


def _gap_list(metrics: Mapping[str, Any], number: int) -> list[Any] | None:
    values = _value(metrics, _GAPS, "ms", number)
    if values is None or type(values) is list:
        return values
    raise _refused(_GAPS, number, "a list of milliseconds", type(values).__name__)


def _gap_column(lists: Sequence[list[Any] | None], numbers: Sequence[int]) -> array[int]:
    flat = [value for values in lists if values for value in values]
    if _NUMBERS.issuperset(map(type, flat)):
        with suppress(InputError):
            column = many_to_ns(flat)
            if not column or 0 <= view(column).min() <= view(column).max() <= _MOST_MS * NS_PER_MS:
                return column
    for values, number in zip(lists, numbers, strict=True):
        for value in values or ():
            if type(value) not in _NUMBERS or not 0 <= value <= _MOST_MS:
                raise _refused(_GAPS, number, f"milliseconds from 0 to {_MOST_MS}", value)
    raise AssertionError("one of the values is refused")


def _tokens(metrics: Mapping[str, Any], name: str, number: int) -> int | None:
    value = _value(metrics, name, "tokens", number)
    if value is None or (type(value) is int and 0 <= value <= _MOST_TOKENS):
        return value
    if type(value) not in _NUMBERS or not 0 <= value <= _MOST_TOKENS or value != int(value):
        raise _refused(name, number, f"an integer from 0 to {_MOST_TOKENS}", value)
    return int(value)


def _client_input(metrics: Mapping[str, Any], number: int) -> int:
    """Return the prompt tokens as the client counts them; 0 where the record does not tell."""
    counted = _tokens(metrics, "input_sequence_length", number)
    return (_tokens(metrics, "error_isl", number) if counted is None else counted) or 0


def _failed(document: Mapping[str, Any]) -> bool:
    """Return whether the tool itself reports an error, a cancellation, or a request that it did not count."""
    metadata = document["metadata"]
    return (
        document.get("error") is not None
        or metadata.get("was_cancelled") is not False
        or metadata.get("context_overflow_skip") not in (None, False)
    )


def _warm_up(warm: WarmUp, document: Mapping[str, Any], metrics: Mapping[str, Any], number: int) -> None:
    prompt, completion = (_tokens(metrics, f"usage_{side}_tokens", number) for side in ("prompt", "completion"))
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
    start, end = _moment(metadata, "request_start_ns", number), _moment(metadata, "request_end_ns", number)
    issued = start if metadata.get("credit_issued_ns") is None else _moment(metadata, "credit_issued_ns", number)
    if end < start:
        raise InputError(Issue(_at(number, "request_end_ns"), "time_reversed", "ends before it starts", f"≥ {start}"))
    ttft, latency = _ns(metrics, "time_to_first_token", number), _ns(metrics, "request_latency", number)
    prompt, completion = (_tokens(metrics, f"usage_{side}_tokens", number) for side in ("prompt", "completion"))
    counted = _tokens(metrics, "output_sequence_length", number)
    asked = _asked(metrics, counted, number)
    failed = _failed(document)
    outcome = "error" if failed else _outcome(completion, asked, inputs)
    phase.add(
        start=start,
        queue=max(start - issued, 0),
        ttft=ttft,
        gaps=gaps,
        latency=end - start if latency is None else latency,
        closed=end,
        input_tokens=_client_input(metrics, number) if prompt is None else prompt,
        output_tokens=(counted or 0) if completion is None else completion,
        usage=prompt is not None and completion is not None,
        outcome=outcome,
        asked=asked,
        tool_itl_ms=None if failed else _milliseconds(metrics, "inter_token_latency", number),
    )


def _asked(metrics: Mapping[str, Any], counted: int | None, number: int) -> int | None:
    """Return the tokens that the request asked for, from the tool's (counted - asked) / asked * 100; else None.

    Source: aiperf 0.13.0, ``metrics/types/osl_mismatch_metrics.py``.
    """
    percent = _value(metrics, "osl_mismatch_diff_pct", "%", number)
    if percent is None or not counted:
        return None
    if type(percent) not in (int, float, Decimal) or not -100 < percent <= 100 * _MOST_TOKENS:
        raise _refused("osl_mismatch_diff_pct", number, "a percentage above -100", percent)
    near = round(counted * 100 / (100 + float(percent)))
    if near and (counted - near) / near * 100.0 == percent:
        # The tool's own arithmetic gives the very same number.
        return near
    told: Fraction = Fraction(percent)
    asked = round(counted * 100 / (100 + told))
    if not asked or abs(Fraction((counted - asked) * 100, asked) - told) > _SLACK * (1 + abs(told)):
        raise _refused("osl_mismatch_diff_pct", number, f"a whole number of tokens asked for {counted}", percent)
    return asked


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
