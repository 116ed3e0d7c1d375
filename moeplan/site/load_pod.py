"""A pod of one's own from which an endpoint is loaded: made, waited for, asked, and deleted whatever happens."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any, NoReturn

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.site.kubectl import Kubectl, KubectlFault

__all__ = ["LoadPod", "load_pod_manifest", "rendered_load"]

_NEVER_STARTS = ("ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError")
"""Reasons of a waiting container that waiting does not cure. Source: kubelet, pkg/kubelet/images and kuberuntime."""
_NO_PROGRAM = "executable file not found"
_CONTAINER = "load"


def load_pod_manifest(name: str, image: str, lifetime_s: int) -> dict[str, Any]:
    """Return the pod: without privileges, without a token of the cluster, ended by the cluster after its lifetime."""
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": _CONTAINER,
        "image": image,
        "command": ["python3", "-c", f"import time; time.sleep({lifetime_s})"],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": security,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # the pod's own, not this machine's
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "moeplan-load"}},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": lifetime_s,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "containers": [container],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    }


def rendered_load(image: str, lifetime_s: int) -> dict[str, Any]:
    """Return what would be made, and the Role that whoever runs the command needs; the pod itself needs none."""
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "get", "delete"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]},
    ]
    metadata = {"name": "moeplan-load-caller"}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    pod = load_pod_manifest("moeplan-load", image, lifetime_s)
    return {"apiVersion": "v1", "kind": "List", "items": [role, pod]}


@attrs.define
class LoadPod:
    """One pod.

    Attributes:
        kubectl: how the cluster is asked.
        image: with python3 of at least 3.11 and msgspec, as images of vLLM and SGLang have; named by digest.
        ready_within_s: deadline of its start, the pull of the image included.
        lifetime_s: after which the cluster ends it, whatever became of this program.
    """

    kubectl: Kubectl
    image: str
    ready_within_s: int = 600
    lifetime_s: int = 86_400
    name: str = attrs.field(factory=lambda: f"moeplan-load-{secrets.token_hex(4)}")
    pause_s: float = 1.0

    def start(self) -> None:
        """Make the pod and wait until it runs.

        Raises:
            InputError: ``forbidden``, ``image_pull``, ``python_missing``, ``pod_failed`` or ``pod_not_ready``.
        """
        manifest = json.dumps(load_pod_manifest(self.name, self.image, self.lifetime_s)).encode()
        self._called("create", "--filename=-", "--output=name", stdin=manifest)
        until = time.monotonic() + self.ready_within_s
        while True:
            state = self._state()
            if state is None:
                return
            if time.monotonic() >= until:
                message = f"the pod does not run after {self.ready_within_s} s: {state}"
                _refuse("pod_not_ready", message, "see 'kubectl describe pod', or give a longer --pod-ready-within")
            time.sleep(self.pause_s)

    def ask(self, boot: str, stdin: bytes, timeout_s: int) -> bytes:
        """Return what a program prints in the pod.

        Raises:
            InputError: ``forbidden``, ``pod_gone``, ``python_missing`` or ``exec_died``.
        """
        return self._called(
            "exec", "--stdin", self.name, f"--container={_CONTAINER}", "--", "python3", "-c", boot,
            stdin=stdin, timeout_s=timeout_s,
        )  # fmt: skip

    def delete(self, say: Callable[[str], None]) -> None:
        """Delete the pod, and nothing else; where that fails, say what is left and until when."""
        words = ("delete", "pod", self.name, "--ignore-not-found", "--wait=false")
        try:
            self.kubectl.call(*words)
        except KubectlFault as fault:
            say(f"the pod may be left, at most {self.lifetime_s} s: {self.kubectl.shown(*words)} ({fault.why})")

    def _called(self, *words: str, stdin: bytes, timeout_s: int | None = None) -> bytes:
        try:
            return self.kubectl.call(*words, stdin=stdin, timeout_s=timeout_s)
        except KubectlFault as fault:
            _refuse(*_kind(words[0], fault))

    def _state(self) -> str | None:
        """Return None once the container runs, else what it waits for."""
        try:
            status = self.kubectl.read("get", "pod", self.name)["status"]
            containers = status.get("containerStatuses") or [{}]
            state = containers[0].get("state", {})
            phase = status.get("phase")
        except KubectlFault as fault:
            _refuse(*_kind("get", fault))
        except (KeyError, TypeError, AttributeError, IndexError):
            return "its status has another shape"
        if phase == "Running" and "running" in state:
            return None
        held = state.get("terminated") or state.get("waiting") or {}
        told = escape(f"{held.get('reason') or phase}: {held.get('message') or _unscheduled(status)}", 300)
        self._final(phase, held.get("reason"), told)
        return told

    def _final(self, phase: object, reason: object, told: str) -> None:
        if _NO_PROGRAM in told:
            _refuse("python_missing", f"the image has no python3: {told}", "name an image with python3 by --load-image")
        if reason in ("ImagePullBackOff", "InvalidImageName"):
            _refuse("image_pull", f"the image is not pulled: {told}", "check --load-image and the pull secrets")
        if reason in _NEVER_STARTS or phase in ("Failed", "Succeeded"):
            _refuse("pod_failed", f"the pod does not run: {told}", "see 'kubectl describe pod'")


def _unscheduled(status: Any) -> str:
    conditions = status.get("conditions") or ()
    return str(next((one.get("message") for one in conditions if one.get("status") == "False"), ""))


def _kind(verb: str, fault: KubectlFault) -> tuple[str, str, str]:
    """Return code, message and next step of a call that failed."""
    why = fault.why
    if "forbidden" in why.lower():
        return "forbidden", f"the cluster refuses {verb}: {why}", "ask for the Role that --render-only prints"
    if _NO_PROGRAM in why:
        return "python_missing", f"the image has no python3: {why}", "name an image with python3 by --load-image"
    if "not found" in why.lower() and verb in ("exec", "get"):
        return "pod_gone", f"the pod is gone: {why}", "see the namespace's events: it may have been evicted"
    if verb == "exec":
        return "exec_died", f"'kubectl exec' ended before its answer: {why}", "run it again; nothing of it is evidence"
    return "kubectl_failed", f"kubectl {verb} gives no answer: {why}", "check --kube-context and --namespace"


def _refuse(code: str, message: str, step: str) -> NoReturn:
    raise InputError(Issue("--kube-context", code, message, "a pod that loads the endpoint", None, step))
