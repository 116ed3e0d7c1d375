"""Metrics of memory_envelope."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, PER_RECORD, Metric

__all__ = ["METRICS"]

METRICS = (
    Metric(
        "memory_phases_captured",
        "memory phases captured",
        "count",
        "Phases of which device and host memory were recorded: idle, warm, peak.",
        "number of distinct phases with at least one device and one host sample",
        "one engine start",
        MOEPLAN,
    ),
    Metric(
        "device_memory_peak_bytes",
        "peak device memory",
        "bytes",
        "Most memory in use on any one accelerator.",
        "maximum over samples and devices of the bytes in use, each record judged alone",
        "one record; samples within it hang together",
        MOEPLAN,
    ),
    Metric(
        "workload_requests_in_capture",
        "requests during the capture",
        "count",
        "Complete requests of the planned shape that ran while memory was recorded.",
        "number of complete requests whose interval lies within the memory record's interval",
        "one request",
        MOEPLAN,
    ),
    Metric(
        "memory_parts_missing",
        "memory parts missing",
        "count",
        "Parts of memory that no record breaks out: allocator, KV cache, activations, routing buffers, fragmentation.",
        "number of absent parts, summed over the records",
        PER_RECORD,
        MOEPLAN,
    ),
)
