"""Timelines of a killed engine, recorded by hand-written clients, against their own lines and the measured figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.evaluation.failures import Failure, read_failure
from moeplan.importers.given import GivenFile
from moeplan.importers.restart_timeline import TimelineInputs, import_restart_timeline
from moeplan.model.finding import Finding
from moeplan.model.observations import FailureTimeline
from moeplan.wire.closed_table import load_table
from moeplan.wire.observation import MadeObservation, ObservationContext
from moeplan.wire.series import SERIES
from moeplan.wire.tables import REQUESTS
from tests.build import digest_of, make_deployment

SHARED = Path(__file__).resolve().parents[3].parent / "shared/samples/made"
INPUTS = TimelineInputs(ObservationContext(digest_of("plan"), make_deployment()), requested_output_tokens=96)


def imported(data: bytes, inputs: TimelineInputs = INPUTS) -> tuple[MadeObservation, tuple[Finding, ...]]:
    return import_restart_timeline(GivenFile("timeline.jsonl", data), inputs)


def failure_of(made: MadeObservation) -> Failure:
    paths = {part.role: str(part.path) for part in made.record.attachments}
    return read_failure(
        load_table(REQUESTS, made.files[paths["requests"]]), load_table(SERIES, made.files[paths["series"]])
    )


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared samples are not here")
@pytest.mark.parametrize(("name", "restart_s"), [("engine", Decimal("34.7")), ("all", Decimal("31.4"))])
def test_recorded_timelines_have_their_own_moments(name: str, restart_s: Decimal) -> None:
    data = (SHARED / f"restart-timeline-kill9-{name}.jsonl").read_bytes()
    made, findings = imported(data)
    lines = [json.loads(line, parse_float=Decimal) for line in data.splitlines()]
    requests = [line for line in lines if line["ev"] == "request"]
    at = {line["ev"]: line["t"] for line in lines}
    ready = next(line["t"] for line in reversed(lines) if line["ev"] == "health" and line["state"] == "200")
    good = sorted(line["end"] for line in requests if line["ok"])
    # The restart was measured from the command that started the engine anew.
    assert round(ready - at["restart"], 1) == restart_s
    failure = failure_of(made)
    origin = int(lines[0]["wall"]) - lines[0]["wall"] + lines[0]["t"]
    assert failure.fault_ns == (at["kill"] - origin) * 10**9
    assert failure.ready_ns == (ready - origin) * 10**9
    assert failure.last_good_ns == (max(end for end in good if end <= at["kill"]) - origin) * 10**9
    assert failure.first_good_ns == (min(end for end in good if end > ready) - origin) * 10**9
    # One request of the second run completed 1.4 ms after the kill.
    assert failure.longest_gap_ns == max(later - earlier for earlier, later in pairwise(good)) * 10**9
    assert failure.lost == sum(not line["ok"] for line in requests) == len(requests) - 65
    assert failure.served == 0
    assert failure.restart_seconds == ceil(ready - at["kill"])
    payload = made.record.payload
    assert isinstance(payload, FailureTimeline)
    assert (payload.fault, payload.requested_output_tokens, payload.request_count) == ("kill", 96, len(requests))
    assert [finding.code for finding in findings] == ["failure_read"]
    assert made.record.attachments[-1].path is None


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared samples are not here")
def test_a_recorded_timeline_cut_off_is_incomplete() -> None:
    lines = (SHARED / "restart-timeline-kill9-all.jsonl").read_bytes().splitlines(keepends=True)
    _made, findings = imported(b"".join(lines[:100]))
    assert [finding.code for finding in findings] == ["timeline_incomplete", "interrupted"]
    assert "first good" in findings[0].message


HEAD: dict[str, Any] = {
    "format": "moeplan-restart",
    "version": 1,
    "fault": "command",
    "target": "process-0123456789ab",
    "requested_output_tokens": 4,
    "ignore_eos": True,
    "started_ns": "1796056346037900123",
}
TAIL = {"wall_ns": 60_000_000_000, "interrupted": False}
S = 10**9


def event(name: str, time: int, value: int = 1) -> dict[str, Any]:
    return {"event": name, "time": time, "value": value}


def sent(index: int, start: int, end: int, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "index": index,
        "due": start,
        "sent": start,
        "end": end,
        "asked_input": 8,
        "asked_output": 4,
        "status": 200,
        "chunks": [[start + 5, 1], [end, 3]],
        "empty": 0,
        "prompt_tokens": 8,
        "completion_tokens": 4,
        "finish": "length",
        "fault": None,
        "contradicted": False,
        "done_marks": 1,
        "retry_after_s": None,
    }
    return row | changes


WHOLE: list[dict[str, Any]] = [
    HEAD,
    event("health_status", 0, 200),
    sent(0, S, 2 * S),
    event("fault_injected", 5 * S),
    event("process_exited", 5 * S + 9),
    event("health_status", 6 * S, 0),
    sent(1, 4 * S, 5 * S, fault="reset", chunks=[], prompt_tokens=None, completion_tokens=None),
    event("process_started", 7 * S),
    event("health_status", 30 * S, 200),
    sent(2, 31 * S, 33 * S),
    TAIL,
]


def written(lines: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_the_collectors_own_file() -> None:
    made, findings = imported(written(WHOLE), attrs.evolve(INPUTS, enclose=True))
    shift = 37_900_123  # the interval begins at the whole second before
    failure = failure_of(made)
    assert made.record.interval.start == "2026-11-30T16:32:26Z"
    assert (failure.fault_ns, failure.ready_ns) == (5 * S + shift, 30 * S + shift)
    assert (failure.restart_seconds, failure.longest_gap_ns, failure.lost, failure.served) == (25, 31 * S, 1, 0)
    assert [finding.code for finding in findings] == ["failure_read"]
    payload = made.record.payload
    assert isinstance(payload, FailureTimeline)
    assert (payload.fault, payload.target) == ("command", "process-0123456789ab")
    assert made.record.attachments[-1].path is not None


def test_without_its_end_it_was_interrupted() -> None:
    _made, findings = imported(written(WHOLE[:-3]))
    assert [finding.code for finding in findings] == ["timeline_incomplete", "interrupted"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([{"a": 1}, {"b": 2}], "foreign_file"),
        ([HEAD | {"version": 2}, *WHOLE[1:]], "unknown_format"),
        ([HEAD | {"fault": "prayer"}, *WHOLE[1:]], "unknown_format"),
        ([HEAD | {"target": "the host vm-7"}, *WHOLE[1:]], "invalid_value"),
        ([HEAD, event("reboot", 5), *WHOLE[1:]], "unknown_event"),
        ([HEAD, event("health_status", -5, 200), *WHOLE[1:]], "wrong_type"),
        ([*WHOLE[:2], sent(0, S, 2 * S, chunks=7), *WHOLE[3:]], "wrong_type"),
        ([*WHOLE[:2], sent(0, S, 2 * S, chunks=[[1]]), *WHOLE[3:]], "wrong_type"),
        ([*WHOLE[:2], sent(0, S, 2 * S, prompt_tokens="8"), *WHOLE[3:]], "wrong_type"),
        ([*WHOLE[:2], sent(0, 2 * S, S), *WHOLE[3:]], "outside_interval"),
        ([*WHOLE[:2], sent(1, S, 2 * S), *WHOLE[3:]], "rows_not_numbered"),
        ([HEAD, TAIL], "no_timeline"),
    ],
)
def test_what_is_no_timeline_is_refused_by_name(lines: list[dict[str, Any]], code: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(written(lines))
    assert caught.value.issues[0].code == code
    assert caught.value.source == "timeline.jsonl"


def test_a_foreign_file_needs_the_tokens_that_were_asked_for() -> None:
    inputs = TimelineInputs(INPUTS.context)
    line = {"t": 0.1, "wall": 1796056346.1, "ev": "load_start"}
    with pytest.raises(InputError) as caught:
        imported(written([line, line]), inputs)
    assert caught.value.issues[0].path == "--requested-output"


def test_words_of_errors_and_bodies_stay_out() -> None:
    row = {"t": 1, "wall": 1796056347, "ev": "request", "i": 0, "start": 0, "end": 1, "ok": False, "chunks": 0}
    lines = [{"t": 0, "wall": 1796056346, "ev": "load_start"}, row | {"error": "hidden-word", "body": "hidden-word"}]
    kill = {"t": 1, "wall": 1796056347, "ev": "kill", "signal": "hidden-word"}
    made, _findings = imported(written([*lines, kill]))
    assert not any(b"hidden-word" in data for data in made.files.values())
