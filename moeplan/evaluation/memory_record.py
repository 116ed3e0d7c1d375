"""One ``memory_series`` added up: samples, peaks and parts by subject, at instants that all records share."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import attrs

from moeplan.model import memory_metrics as names
from moeplan.model.observations import MemorySeries
from moeplan.model.verified import VerifiedRecord
from moeplan.units import NS_PER_S, parse_instant

__all__ = ["MemoryRecord", "memory_record"]

_PARTS = {metric: part for part, metric in names.PART_METRICS.items()}
_KNOWN: WeakKeyDictionary[VerifiedRecord, MemoryRecord] = WeakKeyDictionary()


@attrs.define
class MemoryRecord:
    """Times are nanoseconds since 1970.

    Attributes:
        start_ns: start of the record's interval.
        end_ns: its end.
        payload: devices, phases and beat.
        samples: when a device's memory was read, ascending.
        most: most bytes seen in use, on the device's own count where it keeps one.
        reserved: most bytes that were reserved beside them.
        parts: when each part of memory was read, by part and subject.
        unexposed: parts that a subject said it does not tell.
        capacity: least tokens that a process said its KV cache holds.
        roles: the role that a process serves.
    """

    start_ns: int
    end_ns: int
    payload: MemorySeries
    samples: dict[str, list[int]] = attrs.field(factory=dict)
    most: dict[str, int] = attrs.field(factory=dict)
    reserved: dict[str, int] = attrs.field(factory=dict)
    parts: dict[str, dict[str, list[int]]] = attrs.field(factory=dict)
    unexposed: dict[str, set[str]] = attrs.field(factory=dict)
    capacity: dict[str, int] = attrs.field(factory=dict)
    roles: dict[str, str] = attrs.field(factory=dict)

    def take(self, time_ns: int, subject: str, metric: str, value: int) -> None:
        """Add a row that was measured."""
        if metric == names.USED:
            self.samples.setdefault(subject, []).append(self.start_ns + time_ns)
        if metric in (names.USED, names.HIGH_WATER):
            self.most[subject] = max(value, self.most.get(subject, 0))
        elif metric == names.RESERVED:
            self.reserved[subject] = max(value, self.reserved.get(subject, 0))
        elif metric == names.KV_CACHE_TOKENS:
            self.capacity[subject] = min(value, self.capacity.get(subject, value))
        elif metric in _PARTS:
            self.parts.setdefault(_PARTS[metric], {}).setdefault(subject, []).append(self.start_ns + time_ns)

    def peak(self, subject: str) -> int | None:
        """Return the most bytes of a device that were not to be had; None where it was never read."""
        return self.most[subject] + self.reserved.get(subject, 0) if subject in self.samples else None


def memory_record(item: VerifiedRecord) -> MemoryRecord:
    """Return what a record's table adds up to, reckoned once for all the criteria that look at it."""
    if item not in _KNOWN:
        _KNOWN[item] = _added_up(item)
    return _KNOWN[item]


def _added_up(item: VerifiedRecord) -> MemoryRecord:
    payload, table = item.record.payload, item.series
    assert isinstance(payload, MemorySeries)
    assert table is not None
    start, end = (parse_instant(text) * NS_PER_S for text in (item.record.interval.start, item.record.interval.end))
    made = MemoryRecord(start, end, payload)
    columns = zip(table.time_ns, table.subject, table.metric, table.value, table.text, table.state, strict=True)
    for time_ns, subject, metric, value, text, state in columns:
        if state in ("measured", "reset"):
            made.take(time_ns, subject, metric, value)
            if metric == names.ROLE and text:
                made.roles[subject] = text
        elif state == "not_exposed" and metric in _PARTS:
            made.unexposed.setdefault(_PARTS[metric], set()).add(subject)
    return made
