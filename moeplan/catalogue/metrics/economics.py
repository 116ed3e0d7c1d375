"""Metrics of economics_resilience."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, PER_RECORD, Metric

__all__ = ["METRICS"]

METRICS = (
    Metric(
        "cost_inputs_missing",
        "cost inputs missing",
        "count",
        "Inputs of a cost for each million successful output tokens that are absent: price, duration, tokens.",
        "number of absent inputs, summed over the records",
        PER_RECORD,
        MOEPLAN,
    ),
    Metric(
        "worker_failures_recorded",
        "worker failures recorded",
        "count",
        "Controlled worker failures with failure, recovery and the gap in service on one timeline.",
        "number of such timelines, summed over the records",
        "one failure",
        MOEPLAN,
    ),
    Metric(
        "requests_lost_in_failure",
        "requests lost in a failure",
        "requests",
        "Requests sent during a controlled worker failure that did not complete.",
        "number of such requests, summed over the records",
        "one failure",
        MOEPLAN,
    ),
)
