"""Jobs that look at a node and at its model directory as the engine's own pod will see them.

They use the engine's image, so that pulling it is done when they are, and the overlay's wrapper, so that libraries are
found as the engine finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from moeplan.manifests.probes import probe_job, storage_probe_container
from moeplan_infera.rendering import MODELS, WRAPPER, PodGround, overlay_copy, rdma_access, rdma_privileges, same_limits

__all__ = ["node_job", "storage_job"]

_LOCAL = ("xfs", "ext4")
"""Source: AMD-AGI/Infera@5890f7f, examples/recipes/kimi-k3/README.md, section 5; R-WT-003."""


def node_job(
    name: str, namespace: str, ground: PodGround, *, accelerators: int, driver: str | None, labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return a Job that holds all accelerators of its node for a moment, and looks at them.

    It asks for as many as the engine will: where fewer are free it stays pending and fails at its deadline.
    """
    container: dict[str, Any] = {
        "name": "probe",
        "image": ground.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            WRAPPER,
            "python3",
            "-c",
            files("moeplan_infera").joinpath("rendering_node_probe.py").read_text("utf-8"),
        ],
        "env": [
            {"name": "ACCELERATORS", "value": str(accelerators)},
            {"name": "RDMA", "value": "yes" if ground.rdma_library is not None else "no"},
            {"name": "DRIVER", "value": driver or "any"},
        ],
        "resources": same_limits({"cpu": "1", "memory": "2Gi", "amd.com/gpu": accelerators}),
    }
    mounts: list[dict[str, Any]] = [{"name": "overlay", "mountPath": "/overlay", "readOnly": True}]
    volumes: list[dict[str, Any]] = [{"name": "overlay", "emptyDir": {}}]
    more: dict[str, Any] = {}
    if ground.rdma_library is not None:
        container["securityContext"] = rdma_privileges()
        more = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        more_mounts, more_volumes = rdma_access(ground.rdma_library)
        mounts, volumes = mounts + more_mounts, volumes + more_volumes
    spec = (
        more
        | ground.spec()
        | {
            "initContainers": [overlay_copy(ground.overlay)],
            "containers": [container | {"volumeMounts": mounts}],
            "volumes": volumes,
        }
    )
    return probe_job(name, namespace, labels, spec)


def storage_job(
    name: str,
    namespace: str,
    ground: PodGround,
    *,
    target: str,
    draft: str | None,
    shards: int,
    tensor_bytes: int,
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """Return a Job that mounts the model directory itself, says what it lies on, and counts what is in it.

    Args:
        name: of the Job.
        namespace: of the Job.
        ground: the pod's ground; no device is asked for.
        target: the target's directory below the model directory.
        draft: the draft's, None where none is wanted.
        shards: how many files the target's index names.
        tensor_bytes: the least bytes they hold together.
        labels: of the Job and its pod.
    """
    container = storage_probe_container(
        ground.image,
        MODELS,
        target=target,
        draft=draft,
        tensor_bytes=tensor_bytes,
        resources=same_limits({"cpu": "1", "memory": "1Gi"}),
        shards=shards,
        filesystems=_LOCAL,
    )
    spec = ground.spec() | {"containers": [container], "volumes": [ground.model_volume()]}
    return probe_job(name, namespace, labels, spec)
