"""Lines of a vLLM server's log taken apart: which process wrote them, when, and what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import attrs

from moeplan.errors import InputError, Issue
from moeplan.units import NS_PER_S

__all__ = ["LogClock", "LogLine", "log_lines"]

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_KUBECTL = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)\s")
"""The prefix of ``kubectl logs --timestamps`` and ``docker logs --timestamps``. Source: RFC 3339."""
_PROCESS = re.compile(r"\(([A-Za-z][A-Za-z0-9_-]{0,63}) pid=\d+(?:, ip=[0-9a-fA-F.:]+)?\)\s?")
_DATED = re.compile(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))? ")
"""vLLM's own form: month and day, local time, no year. Source: vLLM, ``logger.py``, ``_DATE_FORMAT``."""
_PLACE = re.compile(r"\[[A-Za-z0-9_./-]+:\d+\]\s?")
_REPEATED = re.compile(r"\[repeated (\d{1,6})x across cluster\]")
_LINE_CHARACTERS = 1 << 16
_PREFIX_CHARACTERS = 120
"""Where a line's own prefix may stand: what collects logs (compose, systemd, a supervisor) puts words before it."""
_MIDYEAR = 6


@attrs.frozen
class LogLine:
    """One line: its process without pid and address, its time, and its text without prefixes and colours.

    ``time_ns`` is in ns since the epoch. A line without a time has the last one before it, as the engine wrote it after
    that. ``repeated``: how many further lines like it Ray held back.
    """

    number: int
    process: str
    time_ns: int | None
    text: str
    repeated: int


@attrs.define
class LogClock:
    """What makes instants of the times of a log: its year and offset, needed where its lines name none.

    Attributes:
        year: year of the first line.
        utc_offset_seconds: seconds east of UTC.
    """

    year: int | None = None
    utc_offset_seconds: int | None = None
    _month: int = 0

    def local(self, month: int, day: int, clock: tuple[int, int, int], fraction_ns: int) -> int | None:
        """Return the instant of a local time without a year, in ns since the epoch; None for a date there is not.

        Raises:
            InputError: year or offset is not known.
        """
        if self.year is None or self.utc_offset_seconds is None:
            step = "state --year and --utc-offset, or keep the log with 'kubectl logs --timestamps'"
            message = "the log's lines have neither a year nor a time zone"
            raise InputError(
                Issue("--year", "value_missing", message, "the year and offset they were written in", None, step)
            )
        if self._month > _MIDYEAR >= month and self._month - month > _MIDYEAR:
            self.year += 1
        self._month = month
        try:
            seconds = int(datetime(self.year, month, day, *clock, tzinfo=UTC).timestamp())
        except ValueError:
            return None
        return (seconds - self.utc_offset_seconds) * NS_PER_S + fraction_ns


def log_lines(data: bytes, clock: LogClock) -> Iterator[LogLine]:
    """Yield every line of a log.

    Args:
        data: the log; what is no UTF-8 is replaced.
        clock: year and offset of its times.

    Raises:
        InputError: its lines are dated without year or offset, and the clock does not know them.
    """
    last: int | None = None
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw and number > 1:
            continue
        text = _COLOURS.sub("", raw[:_LINE_CHARACTERS].decode("utf-8", "replace")).rstrip("\r")
        stamped, text = _stamp(text)
        match = _PROCESS.search(text, 0, _PREFIX_CHARACTERS)
        process, text = (_process(match[1]), text[match.end() :]) if match else ("engine", text)
        dated, text = _dated(text, clock, stamped is None)
        time_ns = stamped if stamped is not None else dated
        last = time_ns if time_ns is not None else last
        repeated = _REPEATED.search(text)
        yield LogLine(number, process, last, text, int(repeated[1]) if repeated else 0)


def _stamp(text: str) -> tuple[int | None, str]:
    match = _KUBECTL.match(text)
    if match is None:
        return None, text
    try:
        whole = datetime(*(int(match[index]) for index in range(1, 7)), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return None, text
    zone = match[8]
    east = 0 if zone == "Z" else (int(zone[1:3]) * 3600 + int(zone[4:]) * 60) * (-1 if zone[0] == "-" else 1)
    return (int(whole.timestamp()) - east) * NS_PER_S + _fraction(match[7]), text[match.end() :]


def _dated(text: str, clock: LogClock, needed: bool) -> tuple[int | None, str]:
    match = _DATED.search(text, 0, _PREFIX_CHARACTERS)
    if match is None:
        return None, text
    rest = text[match.end() :]
    place = _PLACE.match(rest)
    rest = rest[place.end() :] if place else rest
    if not needed:
        return None, rest
    numbers = [int(match[index]) for index in range(1, 6)]
    at = clock.local(numbers[0], numbers[1], (numbers[2], numbers[3], numbers[4]), _fraction(match[6]))
    return at, rest


def _fraction(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))


def _process(name: str) -> str:
    """Return a process's name as a subject: ``EngineCore_DP0`` becomes ``engine-core-dp0``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()
