"""Pods of engines: container, probes, volumes, what the node has to give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from moeplan_vllm_cuda.data import read_data
from moeplan_vllm_cuda.rendering.ground import Ground, Host
from moeplan_vllm_cuda.rendering.words import MODELS

__all__ = ["EnginePod", "engine_pod", "give_rdma", "host_ground", "model_volume", "pinned"]

_LEADER_READY = (
    "import os, urllib.request; "
    "urllib.request.urlopen('http://' + os.environ['LWS_LEADER_ADDRESS'] + ':{port}/health', timeout=5)"
)
"""What a rank without HTTP is asked: whether its leader answers. Source: fact C-NET-014."""


@attrs.frozen(kw_only=True)
class EnginePod:
    """One engine's pod.

    Attributes:
        hosts: nodes it may stand on, of which it gets one.
        image: the engine's.
        command: words of the container's command.
        environment: beside the pod's own address.
        gpus: of the container.
        port: of HTTP.
        serves: whether it answers HTTP.
        startup_seconds: how long it may take to start.
        paired: whether it hands KV over.
    """

    hosts: Sequence[Host]
    image: str
    command: Sequence[str]
    environment: Mapping[str, str]
    gpus: int
    port: int
    serves: bool
    startup_seconds: int
    paired: bool


def engine_pod(ground: Ground, pod: EnginePod) -> dict[str, Any]:
    """Return an engine's pod spec."""
    data = read_data("rendering/profiles.json")["pod"]
    mounts: list[dict[str, Any]] = [
        {"name": "model", "mountPath": MODELS, "readOnly": True},
        {"name": "dshm", "mountPath": "/dev/shm"},
    ]
    volumes = [
        model_volume(pod.hosts[0]),
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": data["sharedMemory"]}},
    ]
    container: dict[str, Any] = {
        "name": "engine",
        "image": pod.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(pod.command),
        "env": _environment(pod.environment),
        "resources": _resources(pod.gpus, data),
        "volumeMounts": mounts,
    }
    if pod.serves:
        container["ports"] = [{"name": "http", "containerPort": pod.port}]
    give_rdma(ground, container, volumes)
    container |= _probes(pod)
    return (
        host_ground(ground)
        | pinned(pod.hosts)
        | {
            "terminationGracePeriodSeconds": data["graceSeconds"],
            "containers": [container],
            "volumes": volumes,
        }
    )


def host_ground(ground: Ground) -> dict[str, Any]:
    """Return what the cluster asks of every pod, and the host's network where nodes talk over an interface of it."""
    spec: dict[str, Any] = {}
    if ground.spans_nodes:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if ground.tolerations:
        spec["tolerations"] = [dict(one) for one in ground.tolerations]
    if ground.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in ground.pull_secrets]
    if ground.runtime_class is not None:
        spec["runtimeClassName"] = ground.runtime_class
    if ground.service_account is not None:
        spec["serviceAccountName"] = ground.service_account
    return spec


def pinned(hosts: Sequence[Host]) -> dict[str, Any]:
    """Return what keeps a pod on its node, or on one of several."""
    if len(hosts) == 1:
        return {"nodeSelector": {"kubernetes.io/hostname": hosts[0].name}}
    names = [host.name for host in hosts]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def model_volume(host: Host) -> dict[str, Any]:
    """Return the volume of a node's own model directory."""
    return {"name": "model", "hostPath": {"path": host.model_directory, "type": "Directory"}}


def give_rdma(ground: Ground, container: dict[str, Any], volumes: list[dict[str, Any]]) -> None:
    """Let a container use the host's RDMA devices and pin memory, where anything goes between nodes over them.

    A device plugin's resource gives the devices alone; without one a mount needs a privileged container.
    """
    if not (ground.spans_nodes and ground.rdma):
        return
    context: dict[str, Any] = {"capabilities": {"add": ["IPC_LOCK"]}}
    if ground.rdma_resource is not None:
        for key in ("requests", "limits"):
            container["resources"][key][ground.rdma_resource] = len(ground.rdma)
    else:
        context = {"privileged": True, **context}
        container["volumeMounts"].append({"name": "infiniband", "mountPath": "/dev/infiniband"})
        volumes.append({"name": "infiniband", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}})
    container["securityContext"] = context


def _environment(values: Mapping[str, str]) -> list[dict[str, Any]]:
    own = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    return own + [{"name": name, "value": value} for name, value in values.items()]


def _resources(gpus: int, data: Mapping[str, Any]) -> dict[str, Any]:
    asked = {"cpu": str(gpus * data["cpuPerGpu"]), "memory": f"{gpus * data['memoryGiPerGpu']}Gi"}
    return {"requests": asked | {"nvidia.com/gpu": gpus}, "limits": {"nvidia.com/gpu": gpus}}


def _probes(pod: EnginePod) -> dict[str, Any]:
    """Return the probes; the startup probe's budget covers the start, and liveness waits for it (C-TIM-002)."""
    budget = {"periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": -(-pod.startup_seconds // 10)}
    if not pod.serves:
        asked = {"exec": {"command": ["python3", "-c", _LEADER_READY.format(port=pod.port)]}}
        return {
            "startupProbe": asked | budget,
            "readinessProbe": asked | {"periodSeconds": 30, "timeoutSeconds": 10, "failureThreshold": 3},
        }
    health = {"httpGet": {"path": "/health", "port": "http"}}
    return {
        "startupProbe": health | budget,
        "livenessProbe": health | {"periodSeconds": 15, "timeoutSeconds": 10, "failureThreshold": 4},
        "readinessProbe": health | {"periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": 3},
    }
