"""Metrics of routing_health."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, Metric

__all__ = ["METRICS"]

METRICS = (
    Metric(
        "expert_layers_without_counts",
        "layers without expert counts",
        "count",
        "Mixture-of-experts layers for which no per-expert count was recorded.",
        "number of such layers, summed over the records",
        "one layer of one engine start",
        MOEPLAN,
    ),
    Metric(
        "dropped_tokens_unreported",
        "layers silent on dropped tokens",
        "count",
        "Layers whose record does not say how many tokens were dropped.",
        "number of such layers, summed over the records",
        "one layer of one engine start",
        MOEPLAN,
    ),
    Metric(
        "communication_samples",
        "communication samples",
        "count",
        "Samples that split a step into routing, all-to-all communication and the rest.",
        "number of samples, summed over the records",
        "one traced step; steps of one run hang together",
        MOEPLAN,
    ),
)
