"""The JSON of ``amd-smi metric --json``: VRAM in ``MB`` that are MiB, socket power in W.

Source: ROCm ``amd-smi`` 6.3 to 7.0: a list, or an object whose ``gpu_data`` is that list; a value is an object with
``value`` and ``unit``, or the text ``N/A``. An MI355X tells 294896 MB for its 288 GiB: the unit is 2^20 bytes.
"""

from __future__ import annotations

import json
from typing import Any

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.device_rows import DeviceReading, scaled

__all__ = ["amd_readings"]

_MIB = 1 << 20
_UNITS = {"B": 1, "KB": 1 << 10, "MB": _MIB, "GB": 1 << 30}
_POWER = ("socket_power", "average_socket_power", "current_socket_power")


def amd_readings(name: str, data: bytes) -> list[DeviceReading]:
    """Return one reading a GPU, named by its UUID where the output has one, else by its index.

    Raises:
        InputError: not JSON, or not of this form.
    """
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad(name, "not JSON") from None
    rows = told.get("gpu_data") if type(told) is dict else told
    if type(rows) is not list or not all(type(row) is dict and "gpu" in row for row in rows):
        raise _bad(name, "no list of GPUs")
    return [_reading(row) for row in rows]


def _reading(row: dict[str, Any]) -> DeviceReading:
    memory, power = row.get("mem_usage"), row.get("power")
    power = power if type(power) is dict else {}
    asked = {"used_bytes"} if type(memory) is dict else set()
    memory = memory if type(memory) is dict else {}
    watts = next((_number(power[key]) for key in _POWER if key in power), (None, ""))
    return DeviceReading(
        str(row.get("uuid") or row["gpu"]),
        used_bytes=_bytes(memory.get("used_vram")),
        total_bytes=_bytes(memory.get("total_vram")),
        power_mw=None if watts[0] is None else scaled(watts[0], 1000),
        asked=frozenset(asked | ({"power_mw"} if power else set())),
    )


def _bytes(cell: object) -> int | None:
    text, unit = _number(cell)
    return None if text is None or unit not in _UNITS else scaled(text, _UNITS[unit])


def _number(cell: object) -> tuple[str | None, str]:
    """Return a cell's number as text, and its unit; None where it holds none."""
    if type(cell) is dict:
        value, unit = cell.get("value"), cell.get("unit")
    else:
        value, unit = cell, ""
    shown = str(value) if type(value) in (int, float, str) else ""
    return (shown if shown.replace(".", "", 1).isdigit() else None), str(unit)


def _bad(name: str, message: str) -> InputError:
    expected = "the output of 'amd-smi metric --mem-usage --power --json'"
    return InputError(Issue(escape(name, 200), "not_amd_smi", message, expected))
