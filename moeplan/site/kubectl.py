"""What kubectl tells of a cluster: every call a list of words with a deadline, every fault a reason."""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from moeplan.errors import escape

__all__ = ["Kubectl", "KubectlFault", "NodeState", "pod_overrides", "read_nodes", "requested"]

ACCELERATORS = ("nvidia.com/gpu", "amd.com/gpu")
"""Extended resources that count whole accelerators. Source: the device plugins of NVIDIA and AMD."""
_HOSTNAME = "kubernetes.io/hostname"

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


class KubectlFault(Exception):
    """Why kubectl gave no answer: ``failed`` or ``timed_out``, and the reason."""

    def __init__(self, outcome: str, why: str) -> None:
        self.outcome = outcome
        self.why = escape(why, 400)
        super().__init__(outcome, self.why)


@attrs.frozen
class Kubectl:
    """How kubectl is called.

    Attributes:
        context: the kubeconfig context; None takes the current one.
        namespace: where probe pods run; None takes the context's.
        timeout_s: deadline of one call in seconds.
        program: the program's name or path.
        run: what starts it; :func:`subprocess.run`, or another in a test.
    """

    context: str | None = None
    namespace: str | None = None
    timeout_s: int = 20
    program: str = "kubectl"
    run: Run = attrs.field(default=subprocess.run, repr=False)

    def words(self, *arguments: str) -> list[str]:
        """Return the command line of a call."""
        chosen = [] if self.context is None else [f"--context={self.context}"]
        chosen += [] if self.namespace is None else [f"--namespace={self.namespace}"]
        return [self.program, *chosen, *arguments]

    def shown(self, *arguments: str) -> str:
        """Return a call as a person would type it."""
        return escape(shlex.join(self.words(*arguments)), 400)

    def call(self, *arguments: str, stdin: bytes = b"", timeout_s: int | None = None) -> bytes:
        """Return standard output.

        Raises:
            KubectlFault: not installed, too late, or an exit other than 0.
        """
        limit = self.timeout_s if timeout_s is None else timeout_s
        try:
            done = self.run(self.words(*arguments), input=stdin, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            raise KubectlFault("timed_out", f"no answer in {limit} s") from None
        except (OSError, ValueError) as error:
            raise KubectlFault("failed", f"cannot start {self.program}: {error}") from None
        if done.returncode != 0:
            # Before its last line kubectl may log each of its tries.
            lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
            raise KubectlFault("failed", f"exit {done.returncode}: {lines[-1] if lines else 'it says nothing'}")
        return done.stdout

    def read(self, *arguments: str) -> Any:
        """Return standard output as JSON; raises as :meth:`call`."""
        try:
            return json.loads(self.call(*arguments, "--output=json"))
        except (ValueError, RecursionError):
            raise KubectlFault("failed", "its answer is not JSON") from None

    def run_probe(self, node: str, image: str, program: bytes, directories: Sequence[str], timeout_s: int) -> bytes:
        """Return what the probe prints in a pod pinned to a node; the pod is deleted whatever happens.

        Args:
            node: the node object's name.
            image: an image that has python3.
            program: the probe's source, sent over standard input.
            directories: absolute paths on the node; each is mounted by itself, as a mounted parent would lie.
            timeout_s: deadline in seconds, the pull of the image included.
        """
        name = f"moeplan-probe-{secrets.token_hex(4)}"
        overrides = json.dumps(pod_overrides(name, node, image, directories, timeout_s))
        try:
            return self.call(
                "run", name, f"--image={image}", "--restart=Never", "--rm", "--stdin", "--quiet",
                f"--pod-running-timeout={timeout_s}s", f"--overrides={overrides}",
                stdin=program, timeout_s=timeout_s,
            )  # fmt: skip
        except KubectlFault as fault:
            reason = self._reason(name)
            self._delete(name)
            raise KubectlFault(fault.outcome, f"{fault.why}; {reason}" if reason else fault.why) from None

    def _reason(self, name: str) -> str | None:
        """Return what the cluster says of a pod that did not run: an image that is not there, a missing directory."""
        chosen = f"--field-selector=involvedObject.name={name},type=Warning"
        try:
            told = self.read("get", "events", chosen)
            return str(told["items"][-1]["message"])
        except (KubectlFault, KeyError, IndexError, TypeError):
            return None

    def _delete(self, name: str) -> None:
        try:
            self.call("delete", "pod", name, "--ignore-not-found", "--wait=false")
        except KubectlFault:
            return  # activeDeadlineSeconds ends the pod


def pod_overrides(name: str, node: str, image: str, directories: Sequence[str], timeout_s: int) -> dict[str, Any]:
    """Return the pod that runs the probe: on this node whatever its taints, without privileges and accelerators."""
    mounted = [(f"directory-{index}", f"/moeplan/{index}", path) for index, path in enumerate(directories)]
    arguments = [f"--directory={path}={here}" for _volume, here, path in mounted]
    container = {
        "name": name,
        "image": image,
        "stdin": True,
        "stdinOnce": True,
        "command": ["python3", "-", f"--node={node}", "--in-pod", *arguments],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": volume, "mountPath": here, "readOnly": True} for volume, here, _path in mounted],
    }
    return {
        "apiVersion": "v1",
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": timeout_s,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [
                {"name": volume, "hostPath": {"path": path, "type": "Directory"}} for volume, _here, path in mounted
            ],
        },
    }


@attrs.frozen
class NodeState:
    """A node as the API server has it: its object's name, and the values for the site, without free accelerators."""

    object_name: str
    resource: str | None
    values: dict[str, Any]


def read_nodes(told: Any) -> list[NodeState]:
    """Return the nodes of ``kubectl get nodes`` in the order of their names.

    Raises:
        KubectlFault: the answer has another shape.
    """
    try:
        return sorted(map(_node, told["items"]), key=lambda node: node.object_name)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise KubectlFault("failed", f"its answer has another shape: {type(error).__name__} {error}") from None


def _node(item: Any) -> NodeState:
    name = str(item["metadata"]["name"])
    spec, status = item.get("spec", {}), item.get("status", {})
    allocatable = status.get("allocatable", {})
    resource = next((one for one in ACCELERATORS if one in allocatable), None)
    values: dict[str, Any] = {"name": str(item["metadata"].get("labels", {}).get(_HOSTNAME, name))}
    address = next((a["address"] for a in status.get("addresses", ()) if a.get("type") == "InternalIP"), None)
    if address is not None:
        values["address"] = str(address)
    values["accelerators"] = int(allocatable[resource]) if resource else 0
    values["taints"] = [_taint(taint) for taint in spec.get("taints") or ()]
    values["unschedulable"] = bool(spec.get("unschedulable", False))
    return NodeState(name, resource, values)


def _taint(taint: Any) -> dict[str, str]:
    return {key: str(taint[key]) for key in ("key", "value", "effect") if key == "key" or taint.get(key) is not None}


def requested(told: Any) -> dict[tuple[str, str], int]:
    """Return how many accelerators the pods of ``kubectl get pods`` hold, by node object and resource.

    A pod holds the larger of the sum over its containers (and restartable init containers) and the most that one
    init container asks for. Source: Kubernetes documentation, "Init Containers" and "Sidecar Containers".

    Raises:
        KubectlFault: the answer has another shape.
    """
    held: dict[tuple[str, str], int] = {}
    try:
        for pod in told["items"]:
            node = pod.get("spec", {}).get("nodeName")
            if node is None or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                continue
            for resource in ACCELERATORS:
                held[node, resource] = held.get((node, resource), 0) + _pod_request(pod["spec"], resource)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise KubectlFault("failed", f"its answer has another shape: {type(error).__name__} {error}") from None
    return held


def _pod_request(spec: Any, resource: str) -> int:
    running = sum(_request(container, resource) for container in spec.get("containers", ()))
    peak = 0
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            running += _request(container, resource)
        else:
            peak = max(peak, _request(container, resource))
    return max(running, peak)


def _request(container: Any, resource: str) -> int:
    resources = container.get("resources") or {}
    asked = (resources.get("requests") or {}).get(resource, (resources.get("limits") or {}).get(resource, 0))
    return int(asked)
