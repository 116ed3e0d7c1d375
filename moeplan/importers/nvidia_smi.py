"""The CSV of ``nvidia-smi --query-gpu``: memory in MiB, power in W, with or without a header and units.

Source: ``nvidia-smi --help-query-gpu``. ``memory.used`` leaves out what driver and firmware reserve (R510 and later);
``memory.reserved`` tells that. ``utilization.memory`` is bandwidth, not occupancy, and is not read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.device_rows import DeviceReading, scaled

__all__ = ["QUERY", "NvidiaRow", "read_nvidia_smi"]

QUERY = ("uuid", "memory.used", "memory.reserved", "memory.total", "power.draw")
"""What ``moeplan collect metrics`` asks for."""

_COLUMNS = {
    "uuid": "name",
    "gpu_uuid": "name",
    "serial": "name",
    "gpu_serial": "name",
    "pci.bus_id": "name",
    "gpu_bus_id": "name",
    "index": "name",
    "memory.used": "used_bytes",
    "memory.reserved": "reserved_bytes",
    "memory.total": "total_bytes",
    "power.draw": "power_mw",
    "power.draw.average": "power_mw",
    "power.draw.instant": "power_mw",
    "timestamp": "timestamp",
}
_NAMES = ("uuid", "gpu_uuid", "serial", "gpu_serial", "pci.bus_id", "gpu_bus_id", "index")
"""What names a device, the best first."""
_POWERS = ("power.draw", "power.draw.average", "power.draw.instant")
_UNITS = {"MiB": 1 << 20, "GiB": 1 << 30, "KiB": 1 << 10, "W": 1000, "mW": 1}
_DEFAULTS = {"used_bytes": "MiB", "reserved_bytes": "MiB", "total_bytes": "MiB", "power_mw": "W"}
_HEADER = re.compile(r"([a-z_]+(?:\.[a-z_]+)*)(?: \[([A-Za-z%]+)\])?")
_VALUE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(?: ([A-Za-z]+))?")


@attrs.frozen
class NvidiaRow:
    """One line: its number, the text of its timestamp (the node's local time) where it has one, and the device."""

    line: int
    timestamp: str | None
    reading: DeviceReading


def read_nvidia_smi(name: str, data: bytes, columns: Sequence[str] | None = None) -> Iterator[NvidiaRow]:
    """Yield each line of the output.

    Args:
        name: the file's name, for messages.
        data: the output.
        columns: what was queried, where the output has no header.

    Raises:
        InputError: not UTF-8, no header and no columns, no column that names a device or its memory, a line with
            another number of columns, or a unit that is not known.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = escape(name, 200)
        raise InputError(Issue(where, "wrong_encoding", f"not UTF-8 at byte {error.start}", "UTF-8")) from None
    lines = csv.reader(io.StringIO(text), skipinitialspace=True)
    header: list[tuple[str, str | None]] | None = None if columns is None else [(one, None) for one in columns]
    fields: dict[str, int] = {}
    for cells in lines:
        if not any(cell.strip() for cell in cells):
            continue
        read = _header(cells)
        if read is not None:
            header, fields = read, {}
            continue
        header = _known(name, header, lines.line_num)
        fields = fields or _fields(name, header)
        if len(cells) != len(header):
            raise _bad(name, lines.line_num, "columns_differ", f"{len(header)} columns", str(len(cells)))
        yield _row(name, lines.line_num, cells, header, fields)


def _header(cells: list[str]) -> list[tuple[str, str | None]] | None:
    found = [_HEADER.fullmatch(cell.strip()) for cell in cells]
    named = [match for match in found if match is not None and match[1] in _COLUMNS]
    if not named:
        return None
    return [(match[1], match[2]) if match is not None else ("", None) for match in found]


def _known(name: str, header: list[tuple[str, str | None]] | None, line: int) -> list[tuple[str, str | None]]:
    if header is None:
        step = "say what was queried: --columns timestamp,uuid,memory.used,memory.total"
        issue = Issue(f"{escape(name, 200)}:{line}", "no_header", "the output has no header", "names", None, step)
        raise InputError(issue)
    return header


def _fields(name: str, header: list[tuple[str, str | None]]) -> dict[str, int]:
    places = {column: index for index, (column, _unit) in reversed(list(enumerate(header)))}
    fields = {_COLUMNS[column]: index for column, index in places.items() if column in _COLUMNS}
    for best, field in ((_NAMES, "name"), (_POWERS, "power_mw")):
        first = next((column for column in best if column in places), None)
        if first is not None:
            fields[field] = places[first]
    for needed, spelled in (("name", "uuid or index"), ("used_bytes", "memory.used")):
        if needed not in fields:
            raise _bad(name, 1, "column_missing", spelled, ", ".join(places), f"query {spelled} too")
    return fields


def _row(
    name: str, line: int, cells: list[str], header: list[tuple[str, str | None]], fields: dict[str, int]
) -> NvidiaRow:
    values: dict[str, int | None] = {}
    for field, default in _DEFAULTS.items():
        if field in fields:
            unit = header[fields[field]][1] or default
            values[field] = _value(name, line, cells[fields[field]].strip(), unit)
    device = cells[fields["name"]].strip()
    if not device:
        raise _bad(name, line, "no_device", "the name of a device", "")
    at = cells[fields["timestamp"]].strip() if "timestamp" in fields else None
    return NvidiaRow(line, at, DeviceReading(device, **values, asked=frozenset(values)))


def _value(name: str, line: int, text: str, unit: str) -> int | None:
    """Return bytes or milliwatts; None where the tool says that it does not know: ``[N/A]``, ``[Not Supported]``."""
    match = _VALUE.fullmatch(text)
    if match is None:
        if text.startswith("[") or text == "N/A":
            return None
        raise _bad(name, line, "invalid_value", "a number, or [N/A]", text)
    factor = _UNITS.get(match[2] or unit)
    if factor is None:
        raise _bad(name, line, "unknown_unit", ", ".join(_UNITS), match[2] or unit)
    return scaled(match[1], factor)


def _bad(name: str, line: int, code: str, expected: str, got: str, step: str | None = None) -> InputError:
    return InputError(
        Issue(f"{escape(name, 200)}:{line}", code, "not nvidia-smi's CSV", expected, escape(got, 80), step)
    )
