"""A page of NVIDIA's DCGM exporter: frame buffer in MiB, power in W, energy in mJ; instances of a MIG device apart.

Source: dcgm-exporter ``etc/default-counters.csv``; DCGM field identifiers 150-156, 250-253.
"""

from __future__ import annotations

from collections.abc import Iterable

from moeplan.importers.device_rows import DeviceReading, scaled
from moeplan.wire.prometheus_text import Sample

__all__ = ["dcgm_readings", "is_dcgm"]

_PREFIX = "DCGM_FI_"
_MIB = 1 << 20
_FIELDS = {
    "DCGM_FI_DEV_FB_USED": ("used_bytes", _MIB),
    "DCGM_FI_DEV_FB_FREE": ("free_bytes", _MIB),
    "DCGM_FI_DEV_FB_RESERVED": ("reserved_bytes", _MIB),
    "DCGM_FI_DEV_FB_TOTAL": ("total_bytes", _MIB),
    "DCGM_FI_DEV_POWER_USAGE": ("power_mw", 1000),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_mj", 1),
}
_INSTANCE = "GPU_I_ID"


def is_dcgm(samples: Iterable[Sample]) -> bool:
    """Return whether a page is the exporter's."""
    return any(sample.name.startswith(_PREFIX) for sample in samples)


def dcgm_readings(samples: Iterable[Sample]) -> list[DeviceReading]:
    """Return one reading a device, or an instance of one where it is partitioned.

    Memory of a partitioned device is that of its instances; power and energy are the whole device's and stay its own.
    """
    found: dict[str, dict[str, int]] = {}
    for sample in samples:
        if sample.name not in _FIELDS:
            continue
        field, factor = _FIELDS[sample.name]
        value = scaled(sample.value, factor)
        name = sample.labels.get("UUID") or f"{sample.labels.get('Hostname', '')}/{sample.labels.get('gpu', '')}"
        instance = sample.labels.get(_INSTANCE)
        if instance and field not in ("power_mw", "energy_mj"):
            name = f"{name}/{instance}"
        if value is not None:
            found.setdefault(name, {})[field] = value
    return [_reading(name, values) for name, values in sorted(found.items())]


def _reading(name: str, values: dict[str, int]) -> DeviceReading:
    free = values.pop("free_bytes", None)
    used, total = values.get("used_bytes"), values.get("total_bytes")
    if total is None and used is not None and free is not None:
        values["total_bytes"] = used + free + values.get("reserved_bytes", 0)
    return DeviceReading(name, **values, asked=frozenset({"used_bytes"}) if free is not None else frozenset())
