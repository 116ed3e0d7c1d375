"""Metrics of runtime_load."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, PER_RECORD, Metric

__all__ = ["METRICS"]

METRICS = (
    Metric(
        "engine_ready",
        "engine readiness",
        "state",
        "Whether the engine reported that it serves.",
        "'ready' where the engine's own log or health endpoint says so, else the last state seen",
        "one engine start",
        MOEPLAN,
    ),
    Metric(
        "fatal_log_signatures",
        "fatal log signatures",
        "count",
        "Lines in the engine's log that match a known fatal signature, unsupported architecture and memory exhaustion "
        "among them.",
        "number of matches, summed over the records",
        "one engine start",
        MOEPLAN,
    ),
    Metric(
        "environment_parts_missing",
        "environment parts missing",
        "count",
        "Parts of the environment record that are absent: runtime, container, kernels, drivers, sharding, precision, "
        "start command.",
        "number of absent parts, summed over the records",
        PER_RECORD,
        MOEPLAN,
    ),
)
