"""The raw record of a controlled failure: JSON Lines of times, counts and states of health, without a word of text.

:mod:`moeplan.importers.restart_forms` reads it; ``docs/collecting.md`` describes it.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from moeplan.collectors.endpoint_raw import ObservedRequest

__all__ = ["FORMAT", "FORMAT_VERSION", "RestartEvent", "RestartObserved", "dump_restart"]

FORMAT = "moeplan-restart"
FORMAT_VERSION = 1


@attrs.frozen
class RestartEvent:
    """One event; ``value`` is an HTTP status for ``health_status`` (0: nothing answered), else 1."""

    event: str
    time: int
    value: int


@attrs.frozen
class RestartObserved:
    """What was seen; times in ns from the start of the run.

    Attributes:
        started_ns: the wall clock at the start, ns since the epoch.
        wall_ns: how long it took.
        requests: each request in the order of its index.
        events: in order of time.
        interrupted: it was stopped before its end.
    """

    started_ns: int
    wall_ns: int
    requests: tuple[ObservedRequest, ...]
    events: tuple[RestartEvent, ...]
    interrupted: bool


def dump_restart(seen: RestartObserved, *, fault: str, target: str, output_tokens: int, ignore_eos: bool) -> bytes:
    """Return the raw record: a head, one line an event, one a request, an end."""
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "fault": fault,
        "target": target,
        "requested_output_tokens": output_tokens,
        "ignore_eos": ignore_eos,
        "started_ns": str(seen.started_ns),
    }
    rows = [attrs.asdict(event) for event in seen.events]
    rows += [attrs.asdict(row, recurse=False) for row in seen.requests]
    end = {"wall_ns": seen.wall_ns, "interrupted": seen.interrupted}
    return b"".join(_line(value) for value in (head, *rows, end))


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
