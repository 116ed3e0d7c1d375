"""What the accelerators took while a trial ran, from measured energy or power alone. Exact integers.

A trial lies within whole seconds, so what is counted is what those seconds took: never less than the trial itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from moeplan.model.evidence import EvidenceRecord
from moeplan.model.observations import MemorySeries
from moeplan.model.series import SeriesTable
from moeplan.units import NS_PER_S, ceil_div, parse_instant

__all__ = ["MOST_MISSED_POLLS", "device_energy"]

MOST_MISSED_POLLS = 3
"""A gap between two readings of power of more than so many poll intervals is a hole."""

Readings = list[tuple[int, int, str]]
"""Time in ns, value, state; in order of time."""


def device_energy(trial: EvidenceRecord, record: EvidenceRecord, table: SeriesTable) -> dict[str, int | None]:
    """Return the millijoules of each accelerator of a memory record over the seconds of a trial.

    A counter of energy is preferred: the difference of its readings around the trial. Else power is added up, each time
    between two readings at the greater of both. None where neither was read around the whole trial without a hole, or
    the counter began anew. Empty where the record does not enclose the trial.
    """
    payload = record.payload
    assert isinstance(payload, MemorySeries)
    begin = (parse_instant(trial.interval.start) - parse_instant(record.interval.start)) * NS_PER_S
    end = (parse_instant(trial.interval.end) - parse_instant(record.interval.start)) * NS_PER_S
    if begin < 0 or end > record.duration_ns:
        return {}
    found: dict[str, int | None] = {}
    for device in payload.devices:
        if device.kind == "accelerator":
            counted = [_counted(rows, begin, end) for rows in _readings(table, device.id, "millijoules")]
            known = [value for value in counted if value is not None]
            if not known:
                most = MOST_MISSED_POLLS * payload.poll_interval_ns
                added = [_added(rows, begin, end, most) for rows in _readings(table, device.id, "milliwatts")]
                known = [value for value in added if value is not None]
            found[device.id] = max(known, default=None)
    return found


def _readings(table: SeriesTable, subject: str, unit: str) -> Iterable[Readings]:
    """Yield the readings of each metric of one unit."""
    by_metric: dict[str, Readings] = {}
    for row, (who, what) in enumerate(zip(table.subject, table.unit, strict=True)):
        if who == subject and what == unit:
            readings = by_metric.setdefault(table.metric[row], [])
            readings.append((table.time_ns[row], table.value[row], table.state[row]))
    yield from (sorted(by_metric[name]) for name in sorted(by_metric))


def _around(readings: Readings, begin: int, end: int) -> Readings:
    """Return the measured readings from the last up to ``begin`` to the first from ``end`` on; none where one lacks."""
    kept = [reading for reading in readings if reading[2] in ("measured", "reset")]
    times = [time for time, _value, _state in kept]
    first, last = bisect_right(times, begin) - 1, bisect_left(times, end)
    return kept[first : last + 1] if first >= 0 and last < len(kept) else []


def _counted(readings: Readings, begin: int, end: int) -> int | None:
    around = _around(readings, begin, end)
    values = [value for _time, value, _state in around]
    anew = any(state == "reset" for _time, _value, state in around[1:])
    if len(values) < 2 or anew or values != sorted(values):
        return None
    return values[-1] - values[0]


def _added(readings: Readings, begin: int, end: int, most_ns: int) -> int | None:
    around = _around(readings, begin, end)
    if len(around) < 2:
        return None
    total = 0
    for (time, power, _), (later, next_power, _) in pairwise(around):
        if later - time > most_ns:
            return None
        total += max(power, next_power) * (later - time)
    return ceil_div(total, NS_PER_S)
