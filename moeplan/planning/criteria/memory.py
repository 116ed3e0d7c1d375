"""Criteria of memory_envelope."""

from __future__ import annotations

from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["memory_criteria"]

MEMORY_PHASES = 3
"""Idle, warm and peak."""
_MEMORY = ("memory_series",)

_PHASES = criterion(
    "memory_phases", "memory.phases", "memory_phases_captured", "sum", "ge", MEMORY_PHASES, "count", _MEMORY
)
_WORKLOAD_AND_PARTS = (
    criterion(
        "memory_workload",
        "memory.workload",
        "workload_requests_in_capture",
        "sum",
        "ge",
        1,
        "count",
        ("memory_series", "serving_trial"),
    ),
    criterion("memory_parts", "memory.parts", "memory_parts_missing", "sum", "le", 0, "count", _MEMORY),
)


def memory_criteria(device_bytes: int | None, workload_tokens: int) -> Criteria:
    """Return the criteria of ``memory_envelope``.

    Args:
        device_bytes: memory of one device, None where unknown.
        workload_tokens: tokens that the workload holds in the KV cache at once.
    """
    peak = criterion(
        "memory_phases",
        "memory.device_peak",
        "device_memory_peak_bytes",
        "all_records",
        "le",
        device_bytes,
        "bytes",
        _MEMORY,
    )
    return (_PHASES, peak, *_WORKLOAD_AND_PARTS)
