"""Look at an engine's environment here or in its pod: the site's probe of the node, and the probe of its process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

import moeplan.collectors
from moeplan.collectors.environment import Seen, facts_of_engine, facts_of_node, facts_of_pod
from moeplan.collectors.server_info import read_server_info
from moeplan.errors import InputError, Issue, escape
from moeplan.model.observations import EnvironmentFact
from moeplan.model.pseudonyms import pseudonym
from moeplan.site.kubectl import Kubectl, KubectlFault
from moeplan.site.probing import node_program
from moeplan.wire.pod_status import PodStatus, read_pods

__all__ = ["EngineTarget", "PodTarget", "see_environment"]

_LOOK_DEADLINE_S = 10
_NO_PROCESS = 3

Ask = Callable[[bytes, Sequence[str]], bytes]
"""Runs one program of ours with arguments and returns what it prints."""


@attrs.frozen
class EngineTarget:
    """Which process is the engine's: its id, a text of its command line, or neither for vLLM's server; its model."""

    pid: int | None = None
    process_name: str | None = None
    directory: str | None = None

    def words(self) -> list[str]:
        """Return the arguments of ``engine_probe.py``."""
        words = [] if self.pid is None else [f"--pid={self.pid}"]
        words += [] if self.process_name is None else [f"--process-name={self.process_name}"]
        return words + ([] if self.directory is None else [f"--directory={self.directory}"])


@attrs.frozen
class PodTarget:
    """A pod whose container runs the engine, through kubectl; ``container`` of None takes the pod's first."""

    kubectl: Kubectl
    pod: str
    container: str | None = None


def see_environment(
    target: EngineTarget,
    *,
    node: str | None,
    key: bytes | None,
    pod: PodTarget | None = None,
    pods_file: bytes | None = None,
    server_info: bytes | None = None,
    deadline_s: int = 120,
) -> Seen:
    """Return what is seen of an engine's environment. Starts two programs of ours, changes nothing.

    Args:
        target: the engine's process.
        node: pseudonym of the node; None makes one of the node's name and the key.
        key: key of pseudonyms.
        pod: where the engine runs in a pod: the probes are sent over ``kubectl exec``.
        pods_file: what ``kubectl get pod -o json`` wrote of the engine's pod, where kubectl is not asked.
        server_info: what ``GET /server_info`` answered.
        deadline_s: time for each of the two programs, in seconds.

    Raises:
        InputError: no such process, several of them, neither pseudonym nor key, or a malformed file.
    """
    ask = _asking_here(deadline_s) if pod is None else _asking_pod(pod, deadline_s)
    status = _pod_status(pod, pods_file)
    engine = _engine(ask, target)
    facts: list[EnvironmentFact] = [] if status is None else facts_of_pod(status)
    if server_info is not None:
        for part, values in read_server_info(server_info).items():
            facts += [EnvironmentFact(part, name, value, "server-info") for name, value in values.items()]
    facts += facts_of_engine(engine) + facts_of_node(_node(ask, in_pod=pod is not None))
    named = node if node is not None else _pseudonym(status, key)
    start = engine.get("started")
    return Seen(named, "engine_process" if pod is None else "pod", tuple(facts), start if type(start) is int else None)


def _pseudonym(status: PodStatus | None, key: bytes | None) -> str:
    import socket

    if key is None:
        raise InputError(Issue("--node", "usage", "the node has no pseudonym", "--node NAME, or --pseudonym-key FILE"))
    name = status.node if status is not None and status.node is not None else socket.gethostname().lower()
    return pseudonym(key, "node", name)


def _engine_program() -> Path:
    return Path(str(moeplan.collectors.__file__)).with_name("engine_probe.py")


def _asking_here(deadline_s: int) -> Ask:
    def ask(program: bytes, words: Sequence[str]) -> bytes:
        command = [sys.executable, "-I", "-", *words]
        try:
            return subprocess.run(command, input=program, capture_output=True, timeout=deadline_s, check=False).stdout
        except subprocess.TimeoutExpired:
            raise _late(deadline_s) from None

    return ask


def _asking_pod(pod: PodTarget, deadline_s: int) -> Ask:
    chosen = [] if pod.container is None else [f"--container={pod.container}"]

    def ask(program: bytes, words: Sequence[str]) -> bytes:
        call = ("exec", "--stdin", pod.pod, *chosen, "--", "sh", "-c", 'python3 - "$@" || true', "sh", *words)
        try:
            return pod.kubectl.call(*call, stdin=program, timeout_s=deadline_s)
        except KubectlFault as fault:
            raise _unreachable(pod, fault) from None

    return ask


def _late(deadline_s: int) -> InputError:
    step = "look for a mount that hangs, or give a longer --deadline"
    return InputError(Issue("--deadline", "timed_out", f"no answer in {deadline_s} s", "an answer in time", None, step))


def _unreachable(pod: PodTarget, fault: KubectlFault) -> InputError:
    step = "check --pod, --container, --namespace and --kube-context; the container needs sh and python3"
    return InputError(Issue("--pod", "kubectl_failed", f"kubectl exec gives no answer: {fault.why}", None, None, step))


def _pod_status(pod: PodTarget | None, pods_file: bytes | None) -> PodStatus | None:
    data = pods_file
    if data is None:
        if pod is None:
            return None
        try:
            data = pod.kubectl.call("get", "pod", pod.pod, "--output=json")
        except KubectlFault as fault:
            raise _unreachable(pod, fault) from None
    pods = read_pods(data)
    wanted = [one for one in pods if pod is None or one.name == pod.pod]
    if len(wanted) != 1:
        got = f"{len(wanted)} of {len(pods)}"
        raise InputError(Issue("--pods-file", "one_pod", "not the engine's one pod", "exactly one", got))
    return wanted[0]


def _engine(ask: Ask, target: EngineTarget) -> dict[str, Any]:
    told = _answer(ask(_engine_program().read_bytes(), target.words()))
    if told.get("parts") is None:
        count = told.get("processes", 0)
        message = "no such process" if not count else f"{count} processes may be the engine's"
        step = "name the API server's process with --pid" if count else "start the engine, or name it with --pid"
        raise InputError(Issue("--pid", "engine_process", message, "one engine's process", None, step))
    return told


def _node(ask: Ask, *, in_pod: bool) -> dict[str, Any]:
    words = ["--node=x", f"--deadline={_LOOK_DEADLINE_S}", *(["--in-pod"] if in_pod else [])]
    return _answer(ask(node_program().read_bytes(), words))


def _answer(printed: bytes) -> dict[str, Any]:
    """Return the line that is JSON, as kubectl may put lines of its own around it."""
    lines = [line for line in printed.splitlines() if line.startswith(b"{")]
    try:
        told = json.loads(lines[0]) if lines else None
    except ValueError:
        told = None
    if type(told) is not dict:
        shown = escape(printed[:80].decode("utf-8", "replace"), 80)
        raise InputError(
            Issue("--pid", "probe_failed", "the probe printed no answer", "one line of JSON", shown or None)
        )
    return told
