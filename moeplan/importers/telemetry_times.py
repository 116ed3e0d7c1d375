"""Instants in telemetry: a tool's local time, and phases that a person marks."""

from __future__ import annotations

import re

from moeplan.errors import InputError, Issue, escape
from moeplan.model.observations import MEMORY_PHASES
from moeplan.units import NS_PER_S, parse_instant

__all__ = ["local_instant", "read_phase"]

_LOCAL = re.compile(r"(\d{4})[/-](\d{2})[/-](\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?", re.ASCII)


def local_instant(where: str, text: str | None, utc_offset: int) -> int:
    """Return nanoseconds since 1970 for ``2025/08/19 17:31:19.123`` of local time.

    Args:
        where: file and line, for messages.
        text: the instant; None where the tool was not asked for it.
        utc_offset: seconds that the local time is ahead of UTC.

    Raises:
        InputError: none, or another form.
    """
    match = None if text is None else _LOCAL.fullmatch(text)
    if match is None:
        got = None if text is None else escape(text, 40)
        step = "query timestamp too: nvidia-smi --query-gpu=timestamp,uuid,memory.used,…"
        raise InputError(Issue(where, "invalid_instant", "no instant", "such as 2025/08/19 17:31:19.123", got, step))
    seconds = parse_instant(f"{match[1]}-{match[2]}-{match[3]}T{match[4]}Z") - utc_offset
    return seconds * NS_PER_S + int((match[5] or "0").ljust(9, "0"))


def read_phase(text: str) -> tuple[str, int, int]:
    """Return a phase given as ``NAME=FROM/TO``: its name, and its ends in nanoseconds since 1970.

    Raises:
        InputError: another form, no phase of that name, or an end that is not after the beginning.
    """
    name, _, span = text.partition("=")
    first, _, last = span.partition("/")
    try:
        ends = parse_instant(first) * NS_PER_S, parse_instant(last) * NS_PER_S
    except InputError:
        ends = (0, 0)
    if name not in MEMORY_PHASES or ends[0] >= ends[1]:
        expected = f"{'|'.join(MEMORY_PHASES)}=2026-11-30T16:00:00Z/2026-11-30T16:05:00Z"
        raise InputError(Issue("--phase", "invalid_value", "no phase", expected, escape(repr(text), 100)))
    return name, *ends
