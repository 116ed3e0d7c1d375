"""Objects around pods: Deployment, LeaderWorkerSet, Service, Namespace.

Source: Kubernetes API 1.31; LeaderWorkerSet API leaderworkerset.x-k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["PROGRESS_BEYOND", "deployment", "leader_worker_set", "namespace", "service"]

PROGRESS_BEYOND = 600
"""Seconds beyond the startup probe's budget after which a Deployment counts as stuck: pulling the image is in it."""


def namespace(name: str) -> dict[str, Any]:
    """Return the namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def deployment(
    name: str, namespace: str, labels: Mapping[str, str], spec: Mapping[str, Any], startup_seconds: int
) -> dict[str, Any]:
    """Return a Deployment of one pod, which is ended before a new one starts: there are no GPUs for two."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": startup_seconds + PROGRESS_BEYOND,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": dict(spec)},
        },
    }


def leader_worker_set(
    name: str,
    namespace: str,
    size: int,
    leader: tuple[Mapping[str, str], Mapping[str, Any]],
    worker: tuple[Mapping[str, str], Mapping[str, Any]],
) -> dict[str, Any]:
    """Return a LeaderWorkerSet of one group, which restarts as a whole; leader and worker are labels and pod spec."""
    templates = [{"metadata": {"labels": dict(labels)}, "spec": dict(spec)} for labels, spec in (leader, worker)]
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(leader[0])},
        "spec": {
            "replicas": 1,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": size,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": templates[0],
                "workerTemplate": templates[1],
            },
        },
    }


def service(name: str, namespace: str, labels: Mapping[str, str], port: int) -> dict[str, Any]:
    """Return a Service of the pods with these labels."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "selector": dict(labels),
            "ports": [{"name": "http", "port": port, "targetPort": "http"}],
        },
    }
