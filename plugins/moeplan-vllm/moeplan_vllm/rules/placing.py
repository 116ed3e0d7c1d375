"""Where a launch's ranks stand: on one node or several, beside their other half or on another host."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from moeplan.facts.derived import nodes_of
from moeplan.facts.launches import Subject
from moeplan_vllm.rules.reading import count, flag, is_set, known_text, look

__all__ = ["across_hosts", "data_parallel_nodes", "gpus_of_node", "is_multi_node", "rdma_visible", "same_node"]

_DEVICE = re.compile(r"[0-9]{1,3}|(?:GPU|MIG)-[0-9a-f-]+")


def gpus_of_node(subject: Subject) -> int | None:
    """Return the GPUs that the launch can see on its node: those it names, asks for, or the site has."""
    named = _visible(subject)
    asked = look(subject, "derived accelerators")
    if asked.is_known:
        return int(asked.value) if named is None else min(named, int(asked.value))
    if named is not None:
        return named
    sited = subject.scene.site.get("acceleratorsPerNode")
    return sited if asked.state == "absent" and isinstance(sited, int) else None


def _visible(subject: Subject) -> int | None:
    """Return how many GPUs ``CUDA_VISIBLE_DEVICES`` names, None where it names none or that is not known.

    Source: CUDA C++ Programming Guide, "CUDA Environment Variables".
    """
    text = known_text(subject, "environment CUDA_VISIBLE_DEVICES") or ""
    listed = [one.strip() for one in text.split(",")]
    return len(listed) if all(_DEVICE.fullmatch(one) for one in listed) else None


def data_parallel_nodes(subject: Subject) -> bool | None:
    """Return whether data-parallel ranks of the engine stand on other nodes too."""
    total = count(subject, "--data-parallel-size", 1)
    if total is None:
        return None
    if total == 1:
        return False
    if is_set(subject, "argument --data-parallel-size-local"):
        local = count(subject, "--data-parallel-size-local", total)
        return None if local is None else local < total
    return is_set(subject, "argument --data-parallel-start-rank") or flag(subject, "--headless") is True


def is_multi_node(subject: Subject) -> bool | None:
    """Return whether the ranks of one engine stand on several nodes; None where that is not known."""
    several = [
        _above(count(subject, "--nnodes", 1), 1),
        _above(count(subject, "--node-rank", 0), 0),
        flag(subject, "--headless"),
        data_parallel_nodes(subject),
        _spread(subject),
        _group_of_pods(subject),
    ]
    if True in several:
        return True
    return None if None in several else False


def _above(number: int | None, limit: int) -> bool | None:
    return None if number is None else number > limit


def _spread(subject: Subject) -> bool | None:
    """Return whether one model replica has more ranks than its node has GPUs, where the site has several nodes."""
    tensor, stages = count(subject, "--tensor-parallel-size", 1), count(subject, "--pipeline-parallel-size", 1)
    there, nodes = gpus_of_node(subject), nodes_of(subject)
    if tensor is None or stages is None:
        return None
    if there is None or not nodes.is_known or nodes.value < 2:
        return False
    return tensor * stages > there


def _group_of_pods(subject: Subject) -> bool:
    """Return whether the launch is in a LeaderWorkerSet of several pods and its engine spans them."""
    if subject.template is None or subject.template.kind != "LeaderWorkerSet":
        return False
    size = look(subject, "document spec.leaderWorkerTemplate.size")
    return size.is_known and isinstance(size.value, int) and size.value > 1


def same_node(one: Subject, other: Subject) -> bool | None:
    """Return whether two launches run on one host: one script, one pod, or pods pinned to one node."""
    if one.template is other.template and one.source.name == other.source.name:
        return True if one.document is not None or one.template is not None or one.source is other.source else None
    hosts = [known_text(subject, 'pod nodeSelector["kubernetes.io/hostname"]') for subject in (one, other)]
    if None not in hosts:
        return hosts[0] == hosts[1]
    return None


def across_hosts(subject: Subject) -> bool | None:
    """Return whether a half of a pair finds its other half on another host, so that loopback does not reach it.

    In Kubernetes each pod has its own loopback. A script that starts both halves keeps them on one host; of a script
    with one half, a site of several nodes tells that the other is elsewhere.
    """
    others = [one for one in subject.engines() if one is not subject and one.role not in ("", subject.role)]
    if subject.document is not None:
        return not any(other.template is subject.template for other in others)
    if any(other.source.name == subject.source.name for other in others):
        return False
    nodes = nodes_of(subject)
    return nodes.value > 1 if nodes.is_known else None


def rdma_visible(subject: Subject) -> bool | None:
    """Return whether a container can see an RDMA device: by resource, mount or privilege; None outside a container."""
    if subject.container is None:
        return None
    container = subject.container
    names = (*container.limits, *container.requests)
    if any(
        fnmatchcase(str(name).lower(), pattern) for name in names for pattern in ("rdma/*", "*/rdma*", "*efa", "*/hca*")
    ):
        return True
    if any(mount.mount_path.startswith("/dev/infiniband") for mount in container.mounts):
        return True
    privileged = look(subject, "container securityContext.privileged")
    mounted = any(mount.mount_path.rstrip("/") == "/dev" for mount in container.mounts)
    return mounted or (privileged.is_known and privileged.value is True)
