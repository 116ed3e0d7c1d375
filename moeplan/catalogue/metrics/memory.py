"""Metrics of memory_envelope."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, PER_RECORD, Metric

__all__ = ["METRICS"]

_ONE_RECORD = "one record; samples within it hang together"

METRICS = (
    Metric(
        "memory_phases_captured",
        "memory phases captured",
        "count",
        "Phases in which the memory of every accelerator and node was recorded: idle, warm, loaded.",
        "number of phases in which each device has a sample; loaded counts where no device has a hole in it",
        "one engine start",
        MOEPLAN,
    ),
    Metric(
        "device_memory_peak_bytes",
        "peak device memory",
        "bytes",
        "Most memory in use on any one accelerator.",
        "maximum over samples and devices of the bytes in use, those that the driver reserves beside them added",
        _ONE_RECORD,
        MOEPLAN,
    ),
    Metric(
        "device_memory_headroom_bytes",
        "headroom of device memory",
        "bytes",
        "What the fullest accelerator had left at its peak.",
        "minimum over devices of the device's own total less its peak, 0 where the peak is above it",
        _ONE_RECORD,
        MOEPLAN,
    ),
    Metric(
        "host_memory_peak_bytes",
        "peak host memory",
        "bytes",
        "Most main memory in use on any one node.",
        "maximum over samples and nodes of total less available memory, as the kernel tells them",
        _ONE_RECORD,
        "proc_meminfo(5), MemAvailable",
    ),
    Metric(
        "kv_cache_capacity_tokens",
        "capacity of the KV cache",
        "tokens",
        "Tokens that the engines say their KV caches hold, which must be those of all requests in flight at once.",
        "sum over processes, those that decode where roles are apart, of the least that each told; the log's if less",
        "one value; nothing is sampled",
        "vLLM 0.32, vllm:cache_config_info",
    ),
    Metric(
        "workload_requests_in_capture",
        "requests during the capture",
        "count",
        "Complete requests of the planned shape that ran while memory was recorded.",
        "number of complete requests, long enough in and out, of trials that reach the planned concurrency and "
        "through which every accelerator was watched without a hole",
        "one request",
        MOEPLAN,
    ),
    Metric(
        "memory_parts_missing",
        "memory parts missing",
        "count",
        "Parts of memory that no record breaks out: allocator, KV cache, activations, routing buffers, fragmentation.",
        "number of parts that were not read under load from a process of each accelerator planned",
        PER_RECORD,
        MOEPLAN,
    ),
)
