"""The forms in which a controlled failure is written down, each read into one timeline.

Times are nanoseconds from the start of the run. Words of errors and bodies of responses are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.endpoint_raw import judge
from moeplan.importers.tool_lines import parse_tool_lines
from moeplan.model.fields import ID_PATTERN
from moeplan.units import MAX_SAFE_INTEGER, seconds_to_ns

__all__ = ["RESTART_FORMAT", "TimedEvent", "Timeline", "TimelineRequest", "read_timeline"]

RESTART_FORMAT = ("moeplan-restart", 1)
"""Format and version of the file that ``moeplan collect restart`` writes."""
_EVENTS = ("fault_injected", "process_exited", "process_started", "health_status")
_FAULTS = ("kill", "signal", "command")


@attrs.frozen
class TimedEvent:
    """One event of the timeline; the value is an HTTP status for ``health_status``, else 1."""

    time_ns: int
    metric: str
    value: int


@attrs.frozen
class TimelineRequest:
    """One request, judged; see :class:`moeplan.model.tables.RequestTable`."""

    index: int
    start_ns: int
    ttft_ns: int
    end_ns: int
    chunks: int
    input_tokens: int
    output_tokens: int
    usage: bool
    outcome: str


@attrs.frozen
class Timeline:
    """What a file tells: when it began (ns since the epoch), how long it took, requests and events.

    ``interrupted``: it has no regular end.
    """

    source: str
    fault: str
    target: str
    requested_output_tokens: int
    started_ns: int
    wall_ns: int
    requests: tuple[TimelineRequest, ...]
    events: tuple[TimedEvent, ...]
    interrupted: bool


Line = tuple[str, dict[str, Any]]


def read_timeline(data: bytes, requested_output_tokens: int | None) -> Timeline:
    """Return the timeline in a file of either form.

    Raises:
        InputError: neither form, cut off, a line without what it needs, or no request or event in it.
    """
    lines = list(parse_tool_lines(data))
    own = lines[0][1].get("format") == RESTART_FORMAT[0]
    timeline = _own(lines) if own else _foreign(lines, requested_output_tokens)
    if not timeline.requests or not timeline.events:
        raise InputError(Issue("$", "no_timeline", "no request or no event in it", "both"))
    return timeline


def _own(lines: list[Line]) -> Timeline:
    (place, head), (_, tail) = lines[0], lines[-1]
    _require(place, head, {"version": int, "fault": str, "target": str, "requested_output_tokens": int})
    _require(place, head, {"ignore_eos": bool, "started_ns": str})
    started = head["started_ns"]
    if (
        head["version"] != RESTART_FORMAT[1]
        or head["fault"] not in _FAULTS
        or not re.fullmatch(r"[0-9]{1,20}", started)
    ):
        raise InputError(Issue(place, "unknown_format", "another version or fault", str(RESTART_FORMAT)))
    if re.fullmatch(ID_PATTERN[1:-1], head["target"]) is None:
        raise InputError(Issue(f"{place}: $.target", "invalid_value", "not a pseudonym", "an identifier"))
    ended = "wall_ns" in tail
    inner = lines[1:-1] if ended else lines[1:]
    events = [_own_event(place, line) for place, line in inner if "event" in line]
    requests = [_own_request(place, line, head["ignore_eos"]) for place, line in inner if "event" not in line]
    last = max([event.time_ns for event in events] + [row.end_ns for row in requests], default=1)
    if ended:
        _require(lines[-1][0], tail, {"wall_ns": int, "interrupted": bool})
    return Timeline(
        source="moeplan",
        fault=head["fault"],
        target=head["target"],
        requested_output_tokens=head["requested_output_tokens"],
        started_ns=int(started),
        wall_ns=tail["wall_ns"] if ended else last,
        requests=tuple(requests),
        events=tuple(events),
        interrupted=not ended or tail["interrupted"],
    )


def _own_event(place: str, line: dict[str, Any]) -> TimedEvent:
    _require(place, line, {"event": str, "time": int, "value": int})
    if line["event"] not in _EVENTS:
        raise InputError(Issue(f"{place}: $.event", "unknown_event", "no such event", ", ".join(_EVENTS)))
    return TimedEvent(line["time"], line["event"], line["value"])


def _own_request(place: str, line: dict[str, Any], ignore_eos: bool) -> TimelineRequest:
    _require(place, line, {"index": int, "sent": int, "end": int, "asked_input": int, "asked_output": int})
    _require(place, line, {"chunks": list, "contradicted": bool})
    for key in ("prompt_tokens", "completion_tokens", "status"):
        if type(line.get(key)) not in (int, type(None)):
            raise InputError(Issue(f"{place}: $.{key}", "wrong_type", "another type", "an integer or null"))
    if not all(type(chunk) is list and len(chunk) == 2 and type(chunk[0]) is int for chunk in line["chunks"]):
        raise InputError(Issue(f"{place}: $.chunks", "wrong_type", "no chunk", "[ns, tokens]"))
    outcome, counted = judge({"fault": None, "finish": None, **line}, ignore_eos)
    chunks = line["chunks"]
    return TimelineRequest(
        index=line["index"],
        start_ns=line["sent"],
        ttft_ns=chunks[0][0] - line["sent"] if chunks else 0,
        end_ns=line["end"],
        chunks=len(chunks),
        input_tokens=line["prompt_tokens"] if counted else line["asked_input"],
        output_tokens=line["completion_tokens"] if counted else len(chunks),
        usage=counted,
        outcome=outcome,
    )


def _foreign(lines: list[Line], requested: int | None) -> Timeline:
    place, first = lines[0]
    if first.get("ev") != "load_start":
        expected = "a file of 'moeplan collect restart', or lines with 'ev' that begin with load_start"
        raise InputError(Issue(place, "foreign_file", "not a failure's timeline", expected))
    if requested is None:
        message, expected = "the file does not hold the tokens that were asked for", "--requested-output"
        raise InputError(Issue("--requested-output", "value_missing", message, expected))
    started = _nanoseconds(place, first, "wall") - _nanoseconds(place, first, "t")
    requests, events = [], []
    for place, line in lines:
        if line.get("ev") == "request":
            requests.append(_foreign_request(place, line, requested))
        else:
            events += list(_foreign_events(place, line))
    last = max(_nanoseconds(place, line, "t") for place, line in lines)
    return Timeline(
        source="restart-timeline",
        fault="kill" if any(line.get("ev") == "kill" for _, line in lines) else "command",
        target="worker",
        requested_output_tokens=requested,
        started_ns=started,
        wall_ns=max([last, *(row.end_ns for row in requests)]),
        requests=tuple(requests),
        events=tuple(events),
        interrupted=lines[-1][1].get("ev") != "load_end",
    )


def _foreign_events(place: str, line: dict[str, Any]) -> Iterator[TimedEvent]:
    """Yield the event of a line; a state of health that is no status is that nothing answered."""
    metric = {"kill": "fault_injected", "restart": "process_started", "health": "health_status"}.get(
        str(line.get("ev"))
    )
    if metric is None:
        return
    value = 1
    if metric == "health_status":
        state = str(line.get("state", ""))
        value = int(state) if re.fullmatch(r"[1-5][0-9]{2}", state, re.ASCII) else 0
    yield TimedEvent(_nanoseconds(place, line, "t"), metric, value)


def _foreign_request(place: str, line: dict[str, Any], requested: int) -> TimelineRequest:
    """Return a request judged anew: complete with a whole stream and the tokens asked for, by the server's count."""
    _require(place, line, {"i": int, "ok": bool, "chunks": int})
    start, end = (_nanoseconds(place, line, key) for key in ("start", "end"))
    tokens = line.get("completion_tokens")
    whole = line.get("done") is True and line.get("status") == 200 and "stream_error" not in line
    complete = whole and line["ok"] and tokens == requested
    outcome = "complete" if complete else "truncated" if whole else "error"
    # A first chunk's moment is rounded apart from the request's end, and may lie a tenth of a millisecond behind it.
    ttft = min(_nanoseconds(place, line, "ttft"), end - start) if line["chunks"] else 0
    return TimelineRequest(
        index=line["i"],
        start_ns=start,
        ttft_ns=ttft,
        end_ns=end,
        chunks=line["chunks"],
        input_tokens=0,
        output_tokens=tokens if type(tokens) is int and tokens >= 0 else 0,
        usage=False,
        outcome=outcome,
    )


def _nanoseconds(place: str, line: dict[str, Any], key: str) -> int:
    value = line.get(key)
    exact = Decimal(value) if type(value) is int or isinstance(value, Decimal) else Decimal(-1)
    if not 0 <= exact < 10**10:
        raise InputError(Issue(f"{place}: $.{key}", "wrong_type", "not a time", "seconds"))
    whole = int(exact)
    return whole * 10**9 + seconds_to_ns(exact - whole)


def _require(place: str, line: dict[str, Any], types: dict[str, type]) -> None:
    for key, wanted in types.items():
        value = line.get(key)
        if type(value) is not wanted or (type(value) is int and not 0 <= value <= MAX_SAFE_INTEGER):
            raise InputError(Issue(f"{place}: $.{key}", "wrong_type", "missing or of another type", wanted.__name__))
