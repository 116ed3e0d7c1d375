"""InferaDeployment objects and what stands around them, as plain values in the order in which people read them.

Source: Infera's CRD ``inferadeployments.infera.amd.com`` (v1alpha1) and its recipes, commit
5890f7f60750b17f598a1226a37c5be1fecf8045.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from moeplan.manifests.words import option_words

__all__ = [
    "MODELS",
    "WRAPPER",
    "PodGround",
    "command",
    "environment",
    "infera_deployment",
    "namespace",
    "overlay_copy",
    "rdma_access",
    "rdma_privileges",
    "same_limits",
    "server_service",
    "worker_service",
]

MODELS = "/models"
"""Where the model directory is mounted."""
WRAPPER = "/overlay/bin/infera-exec"
"""Starts a program with the overlay's files before the image's own."""
_POD = (("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace"), ("POD_IP", "status.podIP"))
_LIBIONIC = "/host-libionic/libionic.so"


@attrs.frozen(kw_only=True)
class PodGround:
    """What a pod stands on: its node, that node's model directory, images by digest, what the cluster asks of pods.

    ``rdma_library`` is the host's RDMA provider library; None for a role that moves no KV between nodes.
    """

    node: str
    model_directory: str
    image: str
    overlay: str
    tolerations: tuple[Mapping[str, Any], ...] = ()
    pull_secrets: tuple[str, ...] = ()
    runtime_class: str | None = None
    rdma_library: str | None = None

    def spec(self) -> dict[str, Any]:
        """Return the part of a pod's spec that only the site decides."""
        spec: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": self.node}}
        if self.tolerations:
            spec["tolerations"] = [dict(one) for one in self.tolerations]
        if self.pull_secrets:
            spec["imagePullSecrets"] = [{"name": name} for name in self.pull_secrets]
        if self.runtime_class is not None:
            spec["runtimeClassName"] = self.runtime_class
        return spec

    def model_volume(self) -> dict[str, Any]:
        """Return the volume of the model directory on the node's own disk."""
        return {"name": "model", "hostPath": {"path": self.model_directory, "type": "Directory"}}


def command(module: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the command of one of Infera's programs; JSON options become JSON text, flags stand alone."""
    return [WRAPPER, "python3", "-m", module, *option_words(arguments)]


def environment(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a container's environment: the pod's own names first, so that what refers to them comes after."""
    pod = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in _POD]
    return pod + [{"name": name, "value": value} for name, value in values.items()]


def namespace(name: str) -> dict[str, Any]:
    """Return the namespace; nothing in the operator's chart makes it."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def infera_deployment(
    name: str, namespace: str, labels: Mapping[str, str], services: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return an InferaDeployment of vLLM; discovery and the message broker are said, not left to defaults."""
    return {
        "apiVersion": "infera.amd.com/v1alpha1",
        "kind": "InferaDeployment",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "backendFramework": "vllm",
            "discoveryBackend": "kubernetes",
            "nats": {"deploy": False},
            "services": dict(services),
        },
    }


def server_service(
    ground: PodGround, arguments: Mapping[str, Any], port: int, resources: Mapping[str, Any], labels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the router; it mounts the models too, for the tokenizer."""
    container = {
        "name": "main",
        "image": ground.image,
        "imagePullPolicy": "IfNotPresent",
        "command": command("infera.server", arguments),
        "ports": [_port(port)],
        "env": environment({}),
        "resources": same_limits(resources),
        "volumeMounts": _mounts(),
    }
    return {
        "componentType": "server",
        "port": port,
        "podLabels": dict(labels),
        "extraPodSpec": _pod(ground, container, [_overlay_volume(), ground.model_volume()]),
    }


def worker_service(
    ground: PodGround,
    *,
    role: str,
    arguments: Mapping[str, Any],
    variables: Mapping[str, str],
    port: int,
    resources: Mapping[str, Any],
    startup: Mapping[str, int],
    shared_memory: str,
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """Return an engine's service.

    Args:
        ground: the pod's ground; with an RDMA library the pod is on the host's network and sees its devices.
        role: ``mixed``, ``prefill`` or ``decode``.
        arguments: the engine's options; True is a flag.
        variables: its environment beside the pod's own names.
        port: of the engine, its service and its probe.
        resources: requests and limits, which are the same.
        startup: ``periodSeconds``, ``timeoutSeconds``, ``failureThreshold`` of the start-up probe.
        shared_memory: size of ``/dev/shm``, a Kubernetes quantity; it counts against the memory limit.
        labels: the pod's labels.
    """
    container: dict[str, Any] = {
        "name": "main",
        "image": ground.image,
        "imagePullPolicy": "IfNotPresent",
        "command": command("infera.engine.vllm", arguments),
        "ports": [_port(port)],
        "env": environment(variables),
        "resources": same_limits(resources),
        "startupProbe": {"httpGet": {"path": "/health", "port": port}, **startup},
    }
    mounts, volumes = _mounts(), [_overlay_volume(), ground.model_volume()]
    mounts.append({"name": "dshm", "mountPath": "/dev/shm"})
    volumes.append({"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": shared_memory}})
    if ground.rdma_library is not None:
        container["securityContext"] = rdma_privileges()
        more_mounts, more_volumes = rdma_access(ground.rdma_library)
        mounts += more_mounts
        volumes += more_volumes
    spec = _pod(ground, container | {"volumeMounts": mounts}, volumes)
    if ground.rdma_library is not None:
        spec = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} | spec
    return {
        "componentType": "worker",
        "role": role,
        "replicas": 1,
        "port": port,
        "podLabels": dict(labels),
        "extraPodSpec": spec,
    }


def rdma_privileges() -> dict[str, Any]:
    """Return what a container needs to open RDMA devices and to pin memory."""
    return {"privileged": True, "capabilities": {"add": ["IPC_LOCK", "SYS_PTRACE"]}}


def rdma_access(library: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return mounts and volumes for the host's RDMA devices and its provider library, which fits the host's driver."""
    mounts: list[dict[str, Any]] = [
        {"name": "host-libionic", "mountPath": _LIBIONIC, "readOnly": True},
        {"name": "ib", "mountPath": "/dev/infiniband"},
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "host-libionic", "hostPath": {"path": library, "type": "File"}},
        {"name": "ib", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}},
    ]
    return mounts, volumes


def _pod(ground: PodGround, container: dict[str, Any], volumes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    copied = overlay_copy(ground.overlay)
    return ground.spec() | {"initContainers": [copied], "containers": [container], "volumes": list(volumes)}


def same_limits(resources: Mapping[str, Any]) -> dict[str, Any]:
    """Return requests and limits that are the same, as extended resources have to be."""
    return {"requests": dict(resources), "limits": dict(resources)}


def overlay_copy(image: str) -> dict[str, Any]:
    """Return the init container that puts Infera's files where the wrapper looks for them."""
    return {
        "name": "infera-overlay",
        "image": image,
        "command": ["sh", "-c", "cp -a /payload/. /overlay/"],
        "volumeMounts": [{"name": "overlay", "mountPath": "/overlay"}],
    }


def _port(number: int) -> dict[str, Any]:
    """Return the container's port under a name, for a PodMonitor; the operator adds one without a name otherwise."""
    return {"name": "http", "containerPort": number}


def _overlay_volume() -> dict[str, Any]:
    return {"name": "overlay", "emptyDir": {}}


def _mounts() -> list[dict[str, Any]]:
    return [
        {"name": "overlay", "mountPath": "/overlay", "readOnly": True},
        {"name": "model", "mountPath": MODELS, "readOnly": True},
    ]
