"""Accelerators as the engine sees them: their total memory, and to which multiples expert kernels round weights."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import attrs

from moeplan_vllm.data import read_data
from moeplan_vllm.weights import Padding

__all__ = ["GIB", "Device", "find_device", "padding_of"]

GIB = 2**30


@attrs.frozen
class Device:
    """One kind of accelerator.

    Attributes:
        id: as in moeplan's registry (``h200``).
        vendor: ``nvidia`` or ``amd``.
        generation: the architecture that kernels are chosen by.
        total_bytes: what torch reports, from logs to 0.01 GiB, rounded down: less than what is advertised.
        about: whether the source rounds more than that.
        source: where it was read.
    """

    id: str
    vendor: str
    generation: str
    total_bytes: int
    about: bool
    source: str


@cache
def _devices() -> dict[str, Device]:
    return {
        row["id"]: Device(
            row["id"],
            row["vendor"],
            row["generation"],
            int(Decimal(row["gib"]) * GIB),
            row.get("about", False),
            row["source"],
        )
        for row in read_data("devices.json")["devices"]
    }


def find_device(hardware: str) -> Device | None:
    """Return the accelerator of a registry's id, or None; the memory of others has not been seen in a log."""
    return _devices().get(hardware.lower())


def padding_of(form: str | None, device: Device, backend: str | None = None) -> tuple[Padding, bool]:
    """Return how experts of a format are padded on a device, and whether the kernel is known to be that one.

    Without ``backend`` the device's default is taken where the facts name one, else the widest padding of the vendor.

    Source: vLLM 0.32.0 ``fused_moe/oracle/mxfp4.py`` lines 816-895. The rule changes with releases: earlier ones pad
    less (64) on some kernels.

    Raises:
        KeyError: no such backend.
    """
    rows = [row for row in read_data("devices.json")["padding"] if row["format"] == form]
    if not rows:
        return Padding(), True
    if backend is not None:
        named = {row["backend"]: row for row in rows}[backend]
        return Padding(named["intermediate"], named["hidden"]), True
    for row in rows:
        if device.generation in row.get("default", ()):
            return Padding(row["intermediate"], row["hidden"]), True
    return (Padding(256, 256), False) if device.vendor == "amd" else (Padding(128, 256), False)
