"""What a tool says of devices at one moment -> rows of a series, the devices under pseudonyms."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import attrs

from moeplan.model import memory_metrics as names
from moeplan.model.observations import MemoryDevice
from moeplan.model.pseudonyms import pseudonym
from moeplan.model.series_rows import SeriesRows
from moeplan.units import MAX_SAFE_INTEGER

__all__ = ["DeviceReading", "DeviceRows", "scaled"]

_VALUES = (
    ("used_bytes", names.USED, "bytes"),
    ("reserved_bytes", names.RESERVED, "bytes"),
    ("power_mw", names.POWER, "milliwatts"),
    ("energy_mj", names.ENERGY, "millijoules"),
)


@attrs.frozen
class DeviceReading:
    """One device at one moment; a value that the tool does not tell is None.

    Attributes:
        name: what the tool calls it: a UUID, a serial, else its index. It becomes a pseudonym.
        asked: the values that the tool was asked for: one of them that is None is recorded as not exposed.
    """

    name: str
    used_bytes: int | None = None
    reserved_bytes: int | None = None
    total_bytes: int | None = None
    power_mw: int | None = None
    energy_mj: int | None = None
    asked: frozenset[str] = frozenset({"used_bytes"})


class DeviceRows:
    """Readings of one tool on one node, in order of time."""

    def __init__(self, rows: SeriesRows, key: bytes, node: str) -> None:
        """Take where rows go, the key of pseudonyms, and the node: an index names a device only there."""
        self._rows, self._key, self._node = rows, key, node
        self._totals: dict[str, int | None] = {}
        self._energy: dict[str, int] = {}

    def read(self, time_ns: int, readings: list[DeviceReading]) -> None:
        """Add one reading of each device; a device that was there before and is not now is recorded as failed."""
        self._absent(time_ns, {self.one(time_ns, reading) for reading in readings})

    def one(self, time_ns: int, reading: DeviceReading) -> str:
        """Add one device's reading and return its pseudonym; of the others nothing is said."""
        subject = pseudonym(self._key, "gpu", _full_name(reading.name, self._node))
        if "used_bytes" in reading.asked:
            self._totals[subject] = reading.total_bytes or self._totals.get(subject)
        for field, metric, unit in _VALUES:
            self._add(time_ns, subject, field, metric, unit, reading)
        return subject

    def failed(self, time_ns: int) -> None:
        """Add that the tool gave no answer."""
        self._absent(time_ns, set())

    def devices(self) -> list[MemoryDevice]:
        """Return every device whose memory was asked for and seen."""
        return [MemoryDevice(name, "accelerator", total) for name, total in sorted(self._totals.items())]

    def _absent(self, time_ns: int, here: set[str]) -> None:
        for subject in sorted(self._totals.keys() - here):
            self._rows.unread(time_ns, subject, names.USED, "bytes", "failed")

    def _add(self, at: int, subject: str, field: str, metric: str, unit: str, reading: DeviceReading) -> None:
        value: int | None = getattr(reading, field)
        if value is None:
            if field in reading.asked:
                self._rows.unread(at, subject, metric, unit, "not_exposed")
            return
        if metric == names.ENERGY and value < self._energy.get(subject, 0):
            self._rows.reset(at, subject, metric, value, unit)
        else:
            self._rows.add(at, subject, metric, value, unit)
        if metric == names.ENERGY:
            self._energy[subject] = value


def _full_name(name: str, node: str) -> str:
    """Return a device's name that no other node has: an index counts on its node alone."""
    return name if len(name) > 8 else f"{node}/{name}"


def scaled(text: str, factor: int) -> int | None:
    """Return a decimal number times ``factor`` as an integer, the nearest; None where the text is no such number."""
    try:
        value = Decimal(text.strip()) * factor
    except InvalidOperation:
        return None
    if not value.is_finite() or not 0 <= value <= MAX_SAFE_INTEGER:
        return None
    return int(value.to_integral_value())
