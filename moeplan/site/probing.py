"""Look at this host, or at a cluster through kubectl. A fault of one look is a row, and the rest goes on."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.site import IMAGE_PATTERN, SiteKubernetes, SiteNode
from moeplan.model.site_probe import Look, NodeProbe, SiteProbe
from moeplan.site.kubectl import Kubectl, KubectlFault, NodeState, read_nodes, requested
from moeplan.wire.converter import structure, unstructure
from moeplan.wire.strict_json import parse_strict

__all__ = ["LOOK_DEADLINE_S", "POD_DEADLINE_S", "check_probe", "node_program", "probe_cluster", "probe_here"]

LOOK_DEADLINE_S = 10
"""Time for one look on a node, in seconds."""
POD_DEADLINE_S = 180
"""Time for the probe of one node in a pod, in seconds, the pull of its image included."""
_LOOKS = 16
"""Looks of a node but for its directories, rounded up."""
_AT_ONCE = 4

T = TypeVar("T")


def node_program() -> Path:
    """Return the path of the program that looks at a node: one file, the standard library alone."""
    return Path(__file__).with_name("node_probe.py")


def check_probe(directories: Sequence[str], image: str | None, deadline_s: int | None, *, cluster: bool) -> None:
    """Refuse what cannot be probed before anything is started.

    Raises:
        InputError: a directory is no absolute path, a deadline is none, an image is not pinned by digest, or
            directories on nodes of a cluster are asked for without an image that could look at them.
    """
    issues = [
        Issue("--directory", "invalid_value", "not an absolute path", "a path such as /data/models", _shown(path))
        for path in directories
        if not path.startswith("/") or not path.isprintable() or len(path) > 1024
    ]
    if deadline_s is not None and not 1 <= deadline_s <= 3600:
        issues.append(Issue("--deadline", "invalid_value", "not a deadline", "1 to 3600 seconds", str(deadline_s)))
    if image is not None and re.fullmatch(IMAGE_PATTERN[1:-1], image) is None:
        step = "find the digest, for example with 'crane digest' or 'docker buildx imagetools inspect'"
        issues.append(Issue("--image", "invalid_value", "not pinned", "NAME@sha256:DIGEST", _shown(image), step))
    if cluster and directories and image is None:
        told = "a directory on a node is looked at from a pod, which needs an image"
        issues.append(Issue("--image", "usage", told, "an image with python3, by digest"))
    if issues:
        raise InputError(*issues)


def _shown(text: str) -> str:
    return repr(escape(text, 80))


def probe_here(at: str, directories: Sequence[str] = (), deadline_s: int = LOOK_DEADLINE_S) -> SiteProbe:
    """Look at this host.

    Args:
        at: the instant, for the record.
        directories: absolute paths to look at.
        deadline_s: time for one look, in seconds.

    Returns:
        What was found; a look that fails or is late is a row of it.
    """
    words = [sys.executable, "-I", str(node_program()), f"--deadline={deadline_s}"]
    words += [f"--directory={path}" for path in directories]
    limit = deadline_s * (_LOOKS + len(directories)) + 10

    def run() -> NodeProbe:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)
        return _node_probe(done.stdout)

    row, node = _timed("node_probe", "node_probe.py in a process of its own", run, _name)
    return SiteProbe(at=at, nodes=() if node is None else (node,), kubernetes=None, looks=() if node else (row,))


def probe_cluster(
    at: str,
    kubectl: Kubectl,
    *,
    nodes: Sequence[str] = (),
    directories: Sequence[str] = (),
    image: str | None = None,
    deadline_s: int = POD_DEADLINE_S,
) -> SiteProbe:
    """Look at a cluster: its version, accelerators that are there and free, taints; with an image also at each node.

    Args:
        at: the instant, for the record.
        kubectl: how to call it.
        nodes: names of the nodes (objects or host names); none takes every node with accelerators.
        directories: absolute paths on the nodes, for the pods.
        image: an image with python3, by digest, for a pod on each node; None starts no pod.
        deadline_s: time for one node's pod, in seconds.

    Returns:
        What was found; a look that fails or is late is a row of it.
    """
    looks: list[Look] = []
    version = _see(looks, "server_version", kubectl, ("version",), _version)
    states = _see(looks, "nodes", kubectl, ("get", "nodes"), read_nodes, lambda found: f"{len(found)} nodes")
    chosen = _chosen(states or (), nodes)
    looks += _missing(states, chosen, nodes, kubectl)
    pods = ("get", "pods", "--all-namespaces", "--field-selector=status.phase!=Succeeded,status.phase!=Failed")
    held = _see(looks, "pods", kubectl, pods, requested, lambda found: f"{sum(found.values())} accelerators asked for")
    found = [_with_free(state, held) for state in chosen]
    if image is not None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            jobs = [pool.submit(_in_pod, kubectl, state, image, directories, deadline_s) for state in found]
            made = [job.result() for job in jobs]
    else:
        made = [_bare(state) for state in found]
    looks += [row for _node, row in made if row is not None]
    kubernetes = None if version is None else SiteKubernetes(version=version)
    return SiteProbe(at=at, nodes=tuple(n for n, _row in made if n), kubernetes=kubernetes, looks=tuple(looks))


def _name(node: NodeProbe) -> str:
    return node.values.name


def _timed(
    what: str, how: str, function: Callable[[], T], shown: Callable[[T], str], subject: str | None = None
) -> tuple[Look, T] | tuple[Look, None]:
    """Return the row of a look and what it found."""
    begun = time.monotonic_ns()

    def row(outcome: str, found: str | None, why: str | None) -> Look:
        spent = (time.monotonic_ns() - begun) // 1_000_000
        return Look(
            what=what, subject=subject, how=how, milliseconds=spent, outcome=outcome, found=found, why=why
        )  # fmt: skip

    try:
        value = function()
        return row("found", escape(shown(value), 4000), None), value
    except KubectlFault as fault:
        return row(fault.outcome, None, fault.why), None
    except subprocess.TimeoutExpired:
        return row("timed_out", None, "no answer in time"), None
    except InputError as error:
        return row("failed", None, escape(f"its answer is refused: {error.issues[0]}", 1000)), None
    except OSError as error:
        return row("failed", None, escape(f"cannot be started: {error}", 1000)), None


def _see(
    looks: list[Look],
    what: str,
    kubectl: Kubectl,
    arguments: Sequence[str],
    read: Callable[[Any], T],
    shown: Callable[[T], str] = str,
) -> T | None:
    def ask() -> T:
        return read(kubectl.read(*arguments))

    row, value = _timed(what, kubectl.shown(*arguments, "--output=json"), ask, shown)
    looks.append(row)
    return value


def _version(told: Any) -> str:
    try:
        return escape(str(told["serverVersion"]["gitVersion"]), 60)
    except (KeyError, TypeError):
        raise KubectlFault("failed", "the server did not tell its version") from None


def _chosen(states: Sequence[NodeState], wanted: Sequence[str]) -> list[NodeState]:
    if not wanted:
        return [state for state in states if state.resource is not None]
    return [state for state in states if state.object_name in wanted or state.values["name"] in wanted]


def _missing(
    states: Sequence[NodeState] | None, chosen: Sequence[NodeState], wanted: Sequence[str], kubectl: Kubectl
) -> list[Look]:
    """Return a row for each node that was asked for and is not there."""
    if states is None:
        return []
    names = {state.object_name for state in chosen} | {state.values["name"] for state in chosen}
    return [
        Look(
            what="node", subject=escape(name, 1000), how=kubectl.shown("get", "nodes"), milliseconds=0,
            outcome="not_found", found=None, why="the cluster has no such node",
        )
        for name in dict.fromkeys(wanted)
        if name not in names
    ]  # fmt: skip


def _with_free(state: NodeState, held: dict[tuple[str, str], int] | None) -> NodeState:
    """Return a node with its free accelerators: allocatable less what its pods ask for; unknown without the pods."""
    if held is None or state.resource is None:
        return state
    free = max(0, state.values["accelerators"] - held.get((state.object_name, state.resource), 0))
    return attrs.evolve(state, values={**state.values, "freeAccelerators": free})


def _bare(state: NodeState) -> tuple[NodeProbe | None, Look | None]:
    row, values = _timed("node", "the node's object", lambda: structure(state.values, SiteNode), str)
    if values is None:
        return None, attrs.evolve(row, subject=escape(state.object_name, 1000))
    return NodeProbe(values=values, directories=(), looks=()), None


def _in_pod(
    kubectl: Kubectl, state: NodeState, image: str, directories: Sequence[str], deadline_s: int
) -> tuple[NodeProbe | None, Look | None]:
    """Return a node with what a pod on it found; the API server's values stand before the pod's."""
    bare, fault = _bare(state)
    if bare is None:
        return None, fault
    name = state.object_name

    def run() -> NodeProbe:
        program = node_program().read_bytes()
        return _node_probe(kubectl.run_probe(name, image, program, directories, deadline_s))

    how = f"node_probe.py over standard input in a pod on the node, {escape(image, 300)}"
    row, inside = _timed("node_probe", how, run, _name, subject=escape(name, 1000))
    if inside is None:
        return attrs.evolve(bare, looks=(row,)), None
    values = structure({**unstructure(inside.values), **state.values}, SiteNode)
    return NodeProbe(values=values, directories=inside.directories, looks=(row, *inside.looks)), None


def _node_probe(printed: bytes) -> NodeProbe:
    """Return what the probe printed: the line that is JSON, as kubectl may put lines of its own around it."""
    lines = [line for line in printed.splitlines() if line.startswith(b"{")]
    if not lines:
        raise KubectlFault("failed", "the probe printed nothing")
    return structure(parse_strict(lines[0]), NodeProbe)
