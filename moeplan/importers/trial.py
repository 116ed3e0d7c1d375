"""What an importer is told about one trial, and what it makes of the tool's file."""

from __future__ import annotations

import re

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.evidence import Claim, ClientLoad, Interval
from moeplan.model.finding import Finding
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.units import parse_instant

__all__ = ["ImportedTrial", "TrialInputs", "parse_utc_offset", "require_instant", "stated_interval"]

_OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})", re.ASCII)
_MOST_OFFSET_SECONDS = 14 * 3600


@attrs.frozen
class TrialInputs:
    """What the person who ran the tool states, because the tool's file does not hold it.

    Attributes:
        requested_input_tokens: prompt tokens asked of the data set, before a chat template adds its own.
        requested_output_tokens: tokens each request was to generate.
        ignore_eos: whether the engine was told to generate them all.
        utc_offset_seconds: offset of the tool's local clock from UTC.
        concurrency: cap on requests in flight; None where there was none or it is not stated.
        warmup_requests: requests sent before the measured ones, an initial test request included; None if not stated.
        accept_early_stop: whether fewer tokens than requested are a stop of the model's own; nothing in the file
            tells one from a broken stream.
        endpoint: what was called; None takes the tool's word.
        tool_version: the tool's version, where the file does not hold it.
        started: instant before the first request, for files without a clock.
        ended: instant after the last one, for files without a clock.
        continuous_usage: the tool was told to ask for the server's counts with every chunk
            (``stream_options.continuous_usage_stats``) and the server sent them, for files that do not show it.
        model: the model name the tool asked for, where no file of the tool's holds it.
        summaries: the tool's own summaries beside its raw file, as they lie.
        output_varies: each request asked for a number of tokens of its own, for files that do not hold it; with
            ``ignore_eos`` the server's count at a stream's end is then taken as that number.
        stage: the only stage to take, from 0, of a file that holds several; None takes all.
        path: what lay between client and engine, as ``ServingTrial.path``; None where it is not stated.
    """

    requested_input_tokens: int
    requested_output_tokens: int
    ignore_eos: bool
    utc_offset_seconds: int = 0
    concurrency: int | None = None
    warmup_requests: int | None = None
    accept_early_stop: bool = False
    endpoint: str | None = None
    tool_version: str | None = None
    started: str | None = None
    ended: str | None = None
    continuous_usage: bool = False
    model: str | None = None
    summaries: tuple[bytes, ...] = ()
    output_varies: bool = False
    stage: int | None = None
    path: str | None = None


@attrs.frozen
class ImportedTrial:
    """One tool file, read: raw tables, the tool's claims, and what a person should know.

    Attributes:
        duration_ns: the tool's own duration, or the last request's end where that is later.
        interval: whole seconds UTC that enclose the trial.
        endpoint: what was called.
        model: the model name the tool asked for; picks the engine's counters where it serves several.
        concurrency: the stated cap, else the one in the file.
        warmup_input_tokens: None where the warm-up is not stated.
        warmup_output_tokens: None where the warm-up is not stated or its length is unknown.
        tool_version: the version that the file itself names; None where it names none.
        warmup_requests: where the file itself holds the warm-up; None takes the stated number.
        schedule: how requests were sent, as ``ServingTrial.schedule``; None where it is not known.
        path: what lay between client and engine, as ``ServingTrial.path``; None where it is not known.
        client: what the client itself needed; None where the tool does not measure itself.
        ttft_p95_claim: which of ``claims`` is the tool's own 95th percentile of TTFT in milliseconds.
    """

    requests: RequestTable
    chunk_gaps: ChunkGapTable
    duration_ns: int
    interval: Interval
    endpoint: str
    model: str
    concurrency: int | None
    warmup_input_tokens: int | None
    warmup_output_tokens: int | None
    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]
    tool_version: str | None = None
    ttft_p95_claim: str = "p95_ttft_ms"
    schedule: str | None = None
    warmup_requests: int | None = None
    path: str | None = None
    client: ClientLoad | None = None


def stated_interval(inputs: TrialInputs) -> Interval:
    """Return the interval that was stated, for a file that holds no clock.

    Raises:
        InputError: it was not stated.
    """
    for option, value in (("--started", inputs.started), ("--ended", inputs.ended)):
        if value is None:
            message = "the tool's file holds no clock"
            raise InputError(Issue(option, "not_stated", message, "an instant in UTC such as 2026-11-30T17:29:49Z"))
    return Interval(str(inputs.started), str(inputs.ended))


def require_instant(option: str, text: str | None) -> str | None:
    """Return an option's instant as it was given.

    Raises:
        InputError: it is no instant in UTC.
    """
    try:
        if text is not None:
            parse_instant(text)
    except InputError as error:
        raise InputError(*(attrs.evolve(issue, path=option) for issue in error.issues)) from None
    return text


def parse_utc_offset(text: str) -> int:
    """Return seconds east of UTC for ``+HH:MM``, ``-HH:MM`` or ``Z``.

    Raises:
        InputError: another form, or beyond 14 hours.
    """
    match = _OFFSET.fullmatch("+00:00" if text == "Z" else text)
    seconds = int(match[2]) * 3600 + int(match[3]) * 60 if match else -1
    if match is None or int(match[3]) > 59 or seconds > _MOST_OFFSET_SECONDS:
        got = escape(repr(text), 40)
        raise InputError(Issue("--utc-offset", "invalid_offset", "not an offset from UTC", "such as +02:00", got))
    return -seconds if match[1] == "-" else seconds
