"""Jobs that look at a node before an engine starts there, and the look at the model directory that it will mount."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

__all__ = ["PROBE_SECONDS", "probe_job", "storage_probe_container", "until_ended"]

PROBE_SECONDS = 3600
"""Deadline of a probe: pulling tens of gigabytes of image is in it."""


def probe_job(name: str, namespace: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Job that is tried once, with the spec of its pod."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": PROBE_SECONDS,
            "template": {"metadata": {"labels": dict(labels)}, "spec": {"restartPolicy": "Never", **spec}},
        },
    }


def until_ended(namespace: str, jobs: str) -> str:
    """Return the command that waits until Jobs have ended, well or not; ``jobs`` are a shell's words such as ``job/a``.

    ``kubectl wait`` for completion would wait for a Job that has failed until its deadline. This ends by then too: a
    probe that is not done at its own deadline has failed.
    """
    ended = (
        f"kubectl -n {namespace} get \"$job\" -o 'jsonpath={{.status.conditions[*].type}}' | grep -Eq 'Complete|Failed'"
    )
    return f"for job in {jobs}; do until {ended}; do sleep 5; done; done"


def storage_probe_container(
    image: str,
    directory: str,
    *,
    target: str,
    draft: str | None,
    tensor_bytes: int,
    resources: Mapping[str, Any],
    shards: int = 0,
    filesystems: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a container that says what a model directory lies on, and counts what is in it.

    It asks for no device and mounts the pod's volume ``model`` to read.

    Args:
        image: one that has ``python3``, 3.8 or later; the engine's own, so that it is pulled when the probe is done.
        directory: where the model directory is mounted.
        target: the target's directory below it.
        draft: the draft's, None where none is wanted.
        tensor_bytes: the least bytes that the target's files hold together.
        resources: of the container.
        shards: how many files hold the target's weights; 0 is any number.
        filesystems: those that will do; none named is all that are not over a network.
    """
    values = {
        "DIRECTORY": directory,
        "TARGET": target,
        "DRAFT": draft or "",
        "FILESYSTEMS": ",".join(filesystems),
        "SHARDS": str(shards),
        "BYTES": str(tensor_bytes),
    }
    return {
        "name": "probe",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", files("moeplan.manifests").joinpath("storage_probe.py").read_text("utf-8")],
        "env": [{"name": key, "value": value} for key, value in values.items()],
        "resources": dict(resources),
        "volumeMounts": [{"name": "model", "mountPath": directory, "readOnly": True}],
    }
