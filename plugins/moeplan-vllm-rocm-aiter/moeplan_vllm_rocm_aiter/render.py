"""Kimi-K3 on MI355X as files: an InferaDeployment, its namespace, probes, monitoring, and the operator's guide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moeplan_infera.rendering import MODELS, infera_deployment, namespace, server_service, worker_service
from moeplan_infera.rendering_probes import node_job, storage_job
from moeplan_vllm.monitoring import handoff_rule, pod_monitor, prometheus_rule

from moeplan.errors import InputRefusedError, Issue, escape
from moeplan.manifests.write import dump_documents
from moeplan.model.plan import Plan
from moeplan.model.rendering import RenderedFile, Rendering
from moeplan_vllm_rocm_aiter.checking import check
from moeplan_vllm_rocm_aiter.combos import combos
from moeplan_vllm_rocm_aiter.render_ground import Ground, read_ground
from moeplan_vllm_rocm_aiter.render_guide import write_steps

__all__ = ["render"]

_LEAST_HANDED_OVER = 98
"""Percent. Source: the recipe's page, section 3, and its validation table: 98.9 to 99.9 % where the hand-off works."""


def render(plan: Plan, site: Mapping[str, Any]) -> Rendering:
    """Return the files that deploy a plan on a site, in the order in which they are applied, and the guide.

    Args:
        plan: the plan.
        site: the site as JSON values; it names the profile.

    Raises:
        InputRefusedError: a value of plan or site is missing or cannot be rendered, each named by its key; or an error
            of the plugin's own check stands, which the site does not acknowledge.
    """
    ground = read_ground(plan, site)
    refused = tuple(_refused(plan, site, ground.profile))
    if refused:
        raise InputRefusedError(*refused)
    files = (
        ("10-namespace.yaml", [namespace(ground.namespace)]),
        ("20-probe-storage.yaml", _storage_jobs(plan, ground)),
        ("21-probe-node.yaml", _node_jobs(ground)),
        ("30-deployment.yaml", [_deployment(ground)]),
        ("40-monitoring.yaml", _monitoring(plan, ground)),
    )
    made = (RenderedFile(name, "manifest", dump_documents(values)) for name, values in files)
    return Rendering(tuple(made), write_steps(plan, ground))


def _refused(plan: Plan, site: Mapping[str, Any], profile: str) -> Iterator[Issue]:
    accepted = {one["id"] for one in site.get("acknowledged", ())}
    for finding in check(plan, site):
        if finding.severity == "error" and accepted.isdisjoint((finding.id, profile)):
            step = f"{finding.remedy} Or acknowledge {finding.id} in the site with the reason."
            told = escape(f"{finding.message}: {finding.consequence}", 600)
            yield Issue(f"{finding.file}: {finding.path}", finding.id, told, next=step)


def _labels(ground: Ground, component: str) -> dict[str, str]:
    return {"app.kubernetes.io/component": component, "app.kubernetes.io/instance": ground.name}


def _deployment(ground: Ground) -> dict[str, Any]:
    data = combos()
    tokens = _tokens(ground, ground.server_port)
    services = {
        "server": server_service(
            ground.server,
            _filled(data["server"]["arguments"], tokens),
            ground.server_port,
            data["server"]["resources"],
            _pod_labels(ground, "server"),
        )
    }
    services |= {service: _worker(ground, service) for service in ground.workers}
    return infera_deployment(ground.name, ground.namespace, _labels(ground, "engine"), services)


def _worker(ground: Ground, service: str) -> dict[str, Any]:
    data, worker = combos(), ground.combination["workers"][service]
    arguments: dict[str, Any] = {}
    variables: dict[str, str] = {}
    for setting in worker["settings"]:
        arguments |= data["settings"][setting]["arguments"]
        variables |= data["settings"][setting]["environment"]
    if service in ground.gid_index:
        variables["MC_GID_INDEX"] = str(ground.gid_index[service])
    tokens = _tokens(ground, ground.engine_port)
    return worker_service(
        ground.workers[service],
        role=worker["role"],
        arguments=_filled(arguments, tokens),
        variables=_filled(variables, tokens),
        port=ground.engine_port,
        resources=data["worker"]["resources"],
        startup=ground.startup,
        shared_memory=ground.combination["sharedMemory"],
        labels=_pod_labels(ground, service),
    )


def _pod_labels(ground: Ground, service: str) -> dict[str, str]:
    """Return labels of pods; the operator adds its own, and its ``managed-by`` wins."""
    return _labels(ground, service) | {
        "app.kubernetes.io/name": combos()["model"]["id"],
        "app.kubernetes.io/part-of": "moeplan",
    }


def _tokens(ground: Ground, port: int) -> dict[str, str]:
    return {
        "@port": str(port),
        "@target": f"{MODELS}/{ground.target}",
        "@draft": f"{MODELS}/{ground.draft}",
        "@served": ground.served_name,
        "@ready": str(ground.ready_timeout),
    }


def _filled(value: Any, tokens: Mapping[str, str]) -> Any:
    """Return values with each text that is a token replaced by what it stands for."""
    if isinstance(value, Mapping):
        return {key: _filled(item, tokens) for key, item in value.items()}
    return tokens.get(value, value) if isinstance(value, str) else value


def _storage_jobs(plan: Plan, ground: Ground) -> list[dict[str, Any]]:
    return [
        storage_job(
            f"{ground.name}-storage-{service}",
            ground.namespace,
            pod,
            target=ground.target,
            draft=ground.draft,
            shards=combos()["model"]["shards"],
            tensor_bytes=plan.residency.tensor_bytes or 0,
            labels=_labels(ground, f"storage-probe-{service}"),
        )
        for service, pod in ground.workers.items()
    ]


def _node_jobs(ground: Ground) -> list[dict[str, Any]]:
    return [
        node_job(
            f"{ground.name}-node-{service}",
            ground.namespace,
            pod,
            accelerators=ground.accelerators,
            driver=ground.driver[service],
            labels=_labels(ground, f"node-probe-{service}"),
        )
        for service, pod in ground.workers.items()
    ]


def _monitoring(plan: Plan, ground: Ground) -> list[dict[str, Any]]:
    services = sorted(ground.workers)
    selector = {
        "matchLabels": {"infera.amd.com/deployment": ground.name},
        "matchExpressions": [{"key": "infera.amd.com/service", "operator": "In", "values": services}],
    }
    labels = _labels(ground, "monitoring")
    more = [handoff_rule(ground.namespace, f"{ground.name}-decode-.*", _LEAST_HANDED_OVER)] if ground.is_pair else []
    pods = f"{ground.name}-({'|'.join(services)})-.*"
    return [
        pod_monitor(ground.name, ground.namespace, selector, labels),
        prometheus_rule(ground.name, ground.namespace, plan, pods, labels, more),
    ]
