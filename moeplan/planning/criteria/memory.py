"""Criteria of memory_envelope."""

from __future__ import annotations

from moeplan.planning.criteria.rule import Criteria, criterion

__all__ = ["memory_criteria"]

MEMORY_PHASES = 3
"""Idle, warm and loaded."""
_MEMORY = ("memory_series",)

_PHASES = criterion(
    "memory_phases", "memory.phases", "memory_phases_captured", "sum", "ge", MEMORY_PHASES, "count", _MEMORY
)
_REPORTED = (
    criterion(
        "memory_phases",
        "memory.headroom",
        "device_memory_headroom_bytes",
        "all_records",
        "reported",
        None,
        "bytes",
        _MEMORY,
    ),
    criterion(
        "memory_phases",
        "memory.host_peak",
        "host_memory_peak_bytes",
        "all_records",
        "reported",
        None,
        "bytes",
        _MEMORY,
    ),
)
_WORKLOAD = criterion(
    "memory_workload",
    "memory.workload",
    "workload_requests_in_capture",
    "sum",
    "ge",
    1,
    "count",
    ("memory_series", "serving_trial"),
)
_PARTS = criterion("memory_parts", "memory.parts", "memory_parts_missing", "sum", "le", 0, "count", _MEMORY)


def memory_criteria(device_bytes: int | None, workload_tokens: int | None) -> Criteria:
    """Return the criteria of ``memory_envelope``.

    Args:
        device_bytes: memory of one device, None where unknown.
        workload_tokens: tokens that the workload holds in the KV cache at once; None where they are past 2^53 - 1.
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
    capacity = criterion(
        "memory_workload",
        "memory.kv_capacity",
        "kv_cache_capacity_tokens",
        "sum",
        "ge",
        workload_tokens,
        "tokens",
        _MEMORY,
    )
    return (_PHASES, peak, *_REPORTED, _WORKLOAD, capacity, _PARTS)
