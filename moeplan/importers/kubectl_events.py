"""What ``kubectl get events -o json`` wrote: warnings as counts, a kill for memory as a fatal line of an engine log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.evaluation.engine_logs import FATAL_PREFIX
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import EngineLog
from moeplan.model.pseudonyms import pseudonym
from moeplan.model.series_rows import SeriesRows
from moeplan.units import MAX_SAFE_INTEGER, NS_PER_S
from moeplan.wire.observation import MadeObservation, ObservationContext, SideFile, enclosing_interval, make_observation
from moeplan.wire.pod_status import read_items

__all__ = ["IMPORTER_VERSION", "import_kubectl_events"]

IMPORTER_VERSION = "1"
_OUT_OF_MEMORY = ("OOMKilling", "OOMKilled", "SystemOOM")
"""Reasons of the kubelet and of the node problem detector."""
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{1,63}")
_TIMES = ("lastTimestamp", "eventTime", "firstTimestamp")
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z")


@attrs.frozen
class _Event:
    time_ns: int
    subject: str
    reason: str
    warning: bool
    count: int


def import_kubectl_events(
    data: bytes, context: ObservationContext, key: bytes, role: str = "serve"
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the events as the ``engine_log`` of an engine named ``kubernetes``. Pure: no path, no clock.

    Each warning is a row ``event_<reason>`` with its count. No message and no name enters the record: objects are
    pseudonyms, and the file is named by digest alone. The cluster forgets events after an hour, so that it is never
    whole.

    Args:
        data: the file.
        context: plan and deployment.
        key: key of pseudonyms.
        role: role of the deployment whose pods they are about.

    Raises:
        InputError: not a list of events, or none with a time.
    """
    items = read_items(data, "Event")
    events = [event for event in (_event(item, key) for item in items) if event is not None]
    if not events:
        raise InputError(Issue("$.items", "no_events", "no event with a reason and a time is listed", "at least one"))
    interval, origin = enclosing_interval(min(e.time_ns for e in events), max(e.time_ns for e in events))
    rows = SeriesRows("kubectl")
    for event in events:
        if event.reason in _OUT_OF_MEMORY:
            rows.add(event.time_ns - origin, event.subject, f"{FATAL_PREFIX}killed_for_memory", event.count, "count")
        elif event.warning:
            rows.add(event.time_ns - origin, event.subject, f"event_{event.reason.lower()}", event.count, "count")
    table = rows.table()
    payload = EngineLog(
        role=role, engine="kubernetes", engine_version=None, whole=False, line_count=len(items), row_count=len(table)
    )
    made = make_observation(
        payload,
        {"series": table},
        context=context,
        collector=Collector("kubectl", None, "kubectl-events", IMPORTER_VERSION),
        interval=interval,
        side_files=[SideFile("tool_output", "events.json", data, "json", "application/json", enclosed=False)],
    )
    return made, tuple(_findings(events))


def _event(item: dict[str, Any], key: bytes) -> _Event | None:
    reason, times = item.get("reason"), (_nanoseconds(item.get(name)) for name in _TIMES)
    time = next((value for value in times if value is not None), None)
    about = item.get("involvedObject") or item.get("regarding")
    if type(reason) is not str or _REASON.fullmatch(reason) is None or time is None or type(about) is not dict:
        return None
    kind = "node" if about.get("kind") == "Node" else "process"
    name = str(about.get("name", "")) if kind == "node" else f"{about.get('namespace', '')}/{about.get('name', '')}"
    count = item.get("count")
    return _Event(
        time,
        pseudonym(key, kind, name),
        reason,
        item.get("type") == "Warning",
        count if type(count) is int and 1 <= count <= MAX_SAFE_INTEGER else 1,
    )


def _nanoseconds(text: object) -> int | None:
    match = _INSTANT.fullmatch(text) if type(text) is str else None
    if match is None:
        return None
    try:
        whole = datetime(*(int(match[index]) for index in range(1, 7)), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return None
    return int(whole.timestamp()) * NS_PER_S + int((match[7] or "0").ljust(9, "0"))


def _findings(events: list[_Event]) -> Iterator[Finding]:
    counts: dict[str, int] = {}
    for event in events:
        if event.warning or event.reason in _OUT_OF_MEMORY:
            counts[event.reason] = counts.get(event.reason, 0) + event.count
    for reason in sorted(counts):
        yield Finding("warning_event", "warning", f"{reason}: {counts[reason]} time(s)", None)
