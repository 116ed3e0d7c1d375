"""Metrics of artifact_integrity and static_residency."""

from __future__ import annotations

from moeplan.catalogue.metrics.metric import MOEPLAN, ONE_VALUE, Metric

__all__ = ["METRICS"]

METRICS = (
    Metric(
        "checkpoint_revision",
        "checkpoint revision",
        "identity",
        "Repository and immutable revision that the checkpoint manifest names.",
        "repository, '@' and revision of the checkpoint manifest, compared as text",
        ONE_VALUE,
        MOEPLAN,
    ),
    Metric(
        "checkpoint_root",
        "checkpoint root digest",
        "digest",
        "One digest over every file of the checkpoint. It fails where an engine loaded a tensor with other bytes than "
        "the files hold.",
        "SHA-256 over one line a file in name order: hex digest, two spaces, size, two spaces, name, LF",
        ONE_VALUE,
        MOEPLAN,
    ),
    Metric(
        "digest_lead_seconds",
        "digest before execution",
        "s",
        "How long before the engine started the checkpoint's files had been hashed on the nodes that serve.",
        "for each trial and each node of its deployment, engineStart minus the end of the node's hashing, in whole "
        "seconds; the least of them",
        "one engine start on one node",
        MOEPLAN,
    ),
    Metric(
        "minimum_accelerators",
        "static floor",
        "accelerators",
        "Fewest accelerators whose usable memory holds the checkpoint's tensors.",
        "ceil(tensor bytes / floor(device bytes × (10000 - reserve basis points) / 10000)), from the plan itself",
        ONE_VALUE,
        MOEPLAN,
    ),
    Metric(
        "checkpoint_tensor_bytes",
        "checkpoint tensor bytes",
        "bytes",
        "Exact bytes of all tensors in the checkpoint's files.",
        "sum of the data lengths in the safetensors headers, from the checkpoint manifest",
        ONE_VALUE,
        "safetensors format: data_offsets of each tensor in the header",
    ),
)
