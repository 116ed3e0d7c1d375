"""What ``kubectl get pods -o json`` wrote of the engine's pods, as one environment a node: images, restarts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moeplan.errors import InputError, Issue
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import ENVIRONMENT_PARTS, Environment, EnvironmentFact, EnvironmentGap
from moeplan.model.pseudonyms import pseudonym
from moeplan.units import NS_PER_S, parse_instant
from moeplan.wire.observation import MadeObservation, ObservationContext, SideFile, enclosing_interval, make_observation
from moeplan.wire.pod_status import ContainerStatus, PodStatus, read_pods

__all__ = ["IMPORTER_VERSION", "import_kubectl_pods"]

IMPORTER_VERSION = "1"
_SOURCE = "kubectl"


def import_kubectl_pods(
    data: bytes, context: ObservationContext, taken: str, *, node: str | None, key: bytes | None
) -> tuple[tuple[MadeObservation, ...], tuple[Finding, ...]]:
    """Return one environment a node, and what a person should know. Pure: no path, no clock.

    No name of a pod, a namespace or a node enters a record; the file itself is named by digest alone.

    Args:
        data: the file; every pod in it is taken as one of the engine's.
        context: plan and deployment.
        taken: the instant at which kubectl was asked.
        node: pseudonym of the one node; None makes one of each node's name and the key.
        key: key of pseudonyms.

    Raises:
        InputError: not a list of pods, a pod without a node, several nodes and one pseudonym, or neither of the two.
    """
    at = parse_instant(taken) * NS_PER_S
    interval, _origin = enclosing_interval(at, at)
    made = []
    pods = read_pods(data)
    for name, listed in sorted(_by_node(pods, node, key).items()):
        facts = {fact.name: fact for number, pod in enumerate(listed) for fact in _facts(number, pod, len(listed))}
        gaps = (EnvironmentGap(part, "kubectl does not tell it") for part in ENVIRONMENT_PARTS if part != "container")
        payload = Environment(
            node=name, seen_from="pod", facts=tuple(facts[key] for key in sorted(facts)), gaps=tuple(gaps)
        )
        file = SideFile("tool_output", "pods.json", data, "json", "application/json", enclosed=False)
        collector = Collector("kubectl", None, "kubectl-pods", IMPORTER_VERSION)
        made.append(
            make_observation(payload, {}, context=context, collector=collector, interval=interval, side_files=[file])
        )
    return tuple(made), tuple(_findings(pods))


def _by_node(pods: Sequence[PodStatus], node: str | None, key: bytes | None) -> Mapping[str, list[PodStatus]]:
    names = {pod.node for pod in pods}
    if None in names:
        step = "wait until every pod is scheduled"
        raise InputError(Issue("$.items", "pod_without_node", "a pod is on no node", "spec.nodeName", None, step))
    if node is not None and len(names) > 1:
        message, step = "pods of several nodes and one pseudonym", "use --pseudonym-key"
        raise InputError(Issue("--node", "several_nodes", message, "one node", f"{len(names)} nodes", step))
    if node is None and key is None:
        raise InputError(Issue("--node", "usage", "nodes have no pseudonym", "--node NAME, or --pseudonym-key FILE"))
    found: dict[str, list[PodStatus]] = {}
    for pod in pods:
        named = node if node is not None else pseudonym(key or b"", "node", str(pod.node))
        found.setdefault(named, []).append(pod)
    return found


def _facts(number: int, pod: PodStatus, pods: int) -> Iterator[EnvironmentFact]:
    prefix = f"pod-{number}-" if pods > 1 else ""
    yield EnvironmentFact("container", f"{prefix}phase", pod.phase, _SOURCE)
    yield EnvironmentFact("container", f"{prefix}runtime", "kubernetes", _SOURCE)
    for index, one in enumerate(pod.containers):
        name = f"{prefix}{one.kind}-{index}"
        yield EnvironmentFact("container", f"{name}-image", one.image or "no digest in the status", _SOURCE)
        yield EnvironmentFact("container", f"{name}-restarts", str(one.restarts), _SOURCE)
        if one.reason is not None:
            yield EnvironmentFact("container", f"{name}-reason", one.reason, _SOURCE)


def _findings(pods: Sequence[PodStatus]) -> Iterator[Finding]:
    containers: list[ContainerStatus] = [one for pod in pods for one in pod.containers]
    restarts = sum(one.restarts for one in containers)
    if restarts:
        yield Finding("restarted", "warning", f"{restarts} restart(s) of {len(containers)} container(s)", None)
    nameless = sum(one.image is None for one in containers)
    if nameless:
        yield Finding("image_not_by_digest", "warning", f"{nameless} image(s) have no digest in the status", None)
    reasons = sorted({one.reason for one in containers if one.reason is not None})
    if reasons:
        yield Finding(
            "container_stopped", "warning", f"containers are not running, or were ended: {', '.join(reasons)}", None
        )
