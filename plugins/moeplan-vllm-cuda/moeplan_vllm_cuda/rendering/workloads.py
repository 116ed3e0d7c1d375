"""Manifests of a rendering: engines, services, router, probes, monitoring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from moeplan_vllm.monitoring import handoff_rule, pod_monitor, prometheus_rule

from moeplan.manifests.probes import probe_job, storage_probe_container
from moeplan_vllm_cuda.data import read_data
from moeplan_vllm_cuda.rendering.asked import Asked
from moeplan_vllm_cuda.rendering.ground import Host
from moeplan_vllm_cuda.rendering.objects import deployment, leader_worker_set, service
from moeplan_vllm_cuda.rendering.pods import (
    EnginePod,
    engine_pod,
    give_rdma,
    host_ground,
    model_volume,
    pinned,
)
from moeplan_vllm_cuda.rendering.ranks import network_environment, rank_arguments, serves_http, size_arguments
from moeplan_vllm_cuda.rendering.words import MODELS, SHELL_START, serve_words, shell_lines

__all__ = [
    "driver_branch",
    "engine_arguments",
    "engines",
    "monitoring",
    "probes",
    "router",
    "router_words",
]

_POD_IP = "$(POD_IP)"
_LEAST_HANDOFF_PERCENT = 90


def engines(asked: Asked) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each role with its objects: the workload and its Service."""
    for role in asked.options:
        name, labels, port = asked.service_name(role), asked.labels(role), asked.ground.ports["serve"]
        yield role, [_workload(asked, role), service(name, asked.ground.namespace, labels, port)]


def _workload(asked: Asked, role: str) -> dict[str, Any]:
    name, where, hosts = asked.workload_name(role), asked.ground.namespace, asked.ground.hosts[role]
    leader = engine_pod(asked.ground, _pod(asked, role, hosts[:1], leader=True))
    if len(hosts) == 1:
        return deployment(name, where, asked.labels(role), leader, asked.startup_seconds)
    worker = engine_pod(asked.ground, _pod(asked, role, hosts[1:], leader=False))
    answers = serves_http(asked.sizes, asked.balance, leader=False)
    labels = asked.labels(role), asked.labels(role if answers else f"{role}-worker")
    return leader_worker_set(name, where, len(hosts), (labels[0], leader), (labels[1], worker))


def _pod(asked: Asked, role: str, hosts: Sequence[Host], *, leader: bool) -> EnginePod:
    ground, options = asked.ground, asked.options[role]
    return EnginePod(
        hosts=hosts,
        image=ground.images[role],
        command=_command(asked, role, workers=0 if leader else len(hosts)),
        environment=dict(options.environment)
        | network_environment(ground, hosts[0].interface, _POD_IP, paired=asked.paired),
        gpus=asked.sizes.gpus_per_node,
        port=ground.ports["serve"],
        serves=serves_http(asked.sizes, asked.balance, leader=leader),
        startup_seconds=asked.startup_seconds,
        paired=asked.paired,
    )


def _command(asked: Asked, role: str, workers: int) -> list[str]:
    """Return the container's command; several workers share one, and the shell reckons each one's start rank."""
    local = asked.sizes.local_data
    start = str(local) if workers == 1 else "$(LWS_WORKER_INDEX)" if local == 1 else SHELL_START.format(local=local)
    ranks = rank_arguments(
        asked.sizes,
        asked.balance,
        asked.ground.ports,
        leader=workers == 0,
        master="$(LWS_LEADER_ADDRESS)",
        rank="$(LWS_WORKER_INDEX)",
        start=start,
    )
    words = serve_words(f"{MODELS}/{asked.ground.target}", engine_arguments(asked, role, ranks))
    if start in words and start.startswith("$(("):
        return ["/bin/sh", "-c", "exec " + shell_lines(words, expand=(start,))]
    return words


def engine_arguments(asked: Asked, role: str, ranks: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of one node's engine in the order they are written."""
    named = {"--served-model-name": asked.ground.served, "--port": str(asked.ground.ports["serve"])}
    return named | size_arguments(asked.sizes) | dict(ranks) | dict(asked.options[role].arguments)


def router_words(asked: Asked, addresses: Mapping[str, str]) -> list[str]:
    """Return the router's command; it sends each request to prefill first and then to decode.

    Source: vllm-project/router README, "Prefill-Decode Disaggregation".
    """
    serve = asked.ground.ports["serve"]
    words = ["vllm-router", "--vllm-pd-disaggregation", "--policy", "round_robin"]
    for role in asked.options:
        words += [f"--{role}", f"http://{addresses[role]}:{serve}"]
    port = str(asked.ground.ports["router"])
    return [*words, "--host", "0.0.0.0", "--port", port, "--intra-node-data-parallel-size", "1"]


def router(asked: Asked) -> list[dict[str, Any]]:
    """Return the pair's router and the Service that clients use."""
    name, labels, port = f"{asked.name}-router", asked.labels("router"), asked.ground.ports["router"]
    probe = {"tcpSocket": {"port": "http"}, "periodSeconds": 10, "failureThreshold": 3}
    container = {
        "name": "router",
        "image": asked.ground.router,
        "imagePullPolicy": "IfNotPresent",
        "command": router_words(asked, {role: asked.service_name(role) for role in asked.options}),
        "ports": [{"name": "http", "containerPort": port}],
        "resources": {"requests": {"cpu": "4", "memory": "8Gi"}},
        "startupProbe": probe | {"failureThreshold": -(-asked.startup_seconds // 10)},
        "readinessProbe": probe,
    }
    ground = {key: value for key, value in host_ground(asked.ground).items() if key not in ("hostNetwork", "dnsPolicy")}
    spec = {key: value for key, value in ground.items() if key != "runtimeClassName"} | {"containers": [container]}
    where = asked.ground.namespace
    return [
        deployment(name, where, labels, spec, asked.startup_seconds),
        service(asked.name, where, labels, port),
    ]


def probes(asked: Asked) -> list[dict[str, Any]]:
    """Return for each node a Job that looks at its GPUs, driver and RDMA devices, and one for its model directory."""
    made = []
    for number, (role, host) in enumerate(asked.ground.every_host(), 1):
        made += [_node_job(asked, number, role, host), _storage_job(asked, number, role, host)]
    return made


def driver_branch(asked: Asked) -> int:
    """Return the first driver branch that the engine's CUDA release runs on, 0 where that is not known."""
    from moeplan.manifests.versions import parse_range, parse_version

    version = parse_version(asked.ground.engine_version) if asked.ground.engine_version else None
    for row in read_data("rendering/profiles.json")["cuda"]:
        if version is not None and parse_range(row["engines"]).contains(version):
            return int(row["driver"])
    return 0


def _node_job(asked: Asked, number: int, role: str, host: Host) -> dict[str, Any]:
    gpus, ground = asked.sizes.gpus_per_node, asked.ground
    container: dict[str, Any] = {
        "name": "probe",
        "image": ground.images[role],
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", files("moeplan_vllm_cuda.rendering").joinpath("node_probe.py").read_text("utf-8")],
        "env": [
            {"name": "GPUS", "value": str(gpus)},
            {"name": "DRIVER", "value": str(driver_branch(asked))},
            {"name": "RDMA", "value": ",".join(ground.rdma) if ground.spans_nodes else ""},
        ],
        "resources": {
            "requests": {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": gpus},
            "limits": {"nvidia.com/gpu": gpus},
        },
        "volumeMounts": [],
    }
    volumes: list[dict[str, Any]] = []
    give_rdma(ground, container, volumes)
    spec = host_ground(ground) | pinned([host]) | {"containers": [container], "volumes": volumes}
    name = f"{asked.name}-node-{number}"
    return probe_job(name, ground.namespace, asked.labels("probe"), spec)


def _storage_job(asked: Asked, number: int, role: str, host: Host) -> dict[str, Any]:
    ground, size = asked.ground, asked.plan.residency.tensor_bytes
    container = storage_probe_container(
        ground.images[role],
        MODELS,
        target=ground.target,
        draft=ground.draft,
        tensor_bytes=size or 0,
        resources={"requests": {"cpu": "1", "memory": "1Gi"}},
    )
    spec = host_ground(ground) | pinned([host]) | {"containers": [container], "volumes": [model_volume(host)]}
    spec.pop("hostNetwork", None)
    spec.pop("dnsPolicy", None)
    name = f"{asked.name}-storage-{number}"
    return probe_job(name, ground.namespace, asked.labels("probe"), spec)


def monitoring(asked: Asked) -> list[dict[str, Any]]:
    """Return the PodMonitor and the PrometheusRule of the engines, made from the plan's criteria."""
    where, labels = asked.ground.namespace, asked.labels("monitoring")
    selector = {
        "matchLabels": {"app.kubernetes.io/instance": labels["app.kubernetes.io/instance"]},
        "matchExpressions": [
            {"key": "app.kubernetes.io/component", "operator": "In", "values": list(asked.options)},
        ],
    }
    pods = "|".join(f"{asked.workload_name(role)}-.*" for role in asked.options)
    more = []
    if asked.paired:
        more.append(handoff_rule(where, f"{asked.workload_name('decode')}-.*", _LEAST_HANDOFF_PERCENT))
    return [
        pod_monitor(asked.name, where, selector, labels),
        prometheus_rule(asked.name, where, asked.plan, pods, labels, more),
    ]
