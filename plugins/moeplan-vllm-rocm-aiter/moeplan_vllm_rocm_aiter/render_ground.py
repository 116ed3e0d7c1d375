"""What a plan and a site say of the ground to render on; whatever does not fit is refused by its key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from moeplan_infera.rendering import PodGround

from moeplan.errors import InputRefusedError, Issue, escape
from moeplan.model.plan import Plan
from moeplan_vllm_rocm_aiter.combos import combo, combos, not_rendered

__all__ = ["LIBIONIC", "Ground", "read_ground"]

LIBIONIC = "/usr/lib/x86_64-linux-gnu/libionic.so.1"
"""Source: Infera's disaggregated recipes, volume ``host-libionic``."""
_LABEL_LENGTH = 63
_SERVING = frozenset(("serve", "any"))


@attrs.frozen(kw_only=True)
class Ground:
    """The profile's combination on the site: pods by service, names, ports, how long a start may take in seconds.

    ``gid_index`` is by worker service; a service that is not in it leaves the choice to Infera.
    """

    profile: str
    combination: Mapping[str, Any]
    namespace: str
    target: str
    draft: str | None
    served_name: str
    server: PodGround
    workers: Mapping[str, PodGround]
    gid_index: Mapping[str, int]
    server_port: int
    engine_port: int
    startup: Mapping[str, int]
    ready_timeout: int
    driver: Mapping[str, str | None]

    @property
    def name(self) -> str:
        """Name of the InferaDeployment."""
        return str(self.combination["deployment"])

    @property
    def is_pair(self) -> bool:
        """Whether prefill and decode are two services that hand the KV cache over."""
        return "decode" in self.workers

    @property
    def startup_seconds(self) -> int:
        """Seconds until the kubelet ends an engine that has not become ready."""
        return self.startup["periodSeconds"] * self.startup["failureThreshold"]

    @property
    def accelerators(self) -> int:
        """Accelerators of each worker."""
        return int(combos()["worker"]["resources"]["amd.com/gpu"])


def read_ground(plan: Plan, site: Mapping[str, Any]) -> Ground:
    """Return the ground.

    Args:
        plan: the plan.
        site: the site as JSON values.

    Raises:
        InputRefusedError: each value of plan or site that is missing or cannot be rendered.
    """
    profile = str(site.get("profile", ""))
    chosen = combo(profile)
    if chosen is None:
        why = not_rendered().get(profile, "it is none of this plugin's profiles")
        wanted = f"one of {', '.join(combos()['profiles'])}"
        raise InputRefusedError(Issue("$.profile", "profile_not_rendered", why, wanted, escape(profile, 129)))
    issues = [*_plan_faults(plan, chosen), *_site_faults(site, chosen)]
    nodes = _nodes(site, chosen, issues)
    if issues:
        raise InputRefusedError(*issues)
    return _ground(profile, chosen, site, nodes)


def _ground(profile: str, chosen: Mapping[str, Any], site: Mapping[str, Any], nodes: Mapping[str, Any]) -> Ground:
    names, ports = site.get("modelNames", {}), site.get("ports", {})
    drafted = any("draft" in worker["settings"] for worker in chosen["workers"].values())
    pods = {service: _pod(site, chosen, node, len(nodes) > 1) for service, node in nodes.items()}
    first = next(iter(pods.values()))
    images = site.get("images", {})
    return Ground(
        profile=profile,
        combination=chosen,
        namespace=site["namespace"],
        target=names.get("target", combos()["model"]["target"]),
        draft=names.get("draft", combos()["model"]["draft"]) if drafted else None,
        served_name=site.get("servedModelName", combos()["model"]["servedName"]),
        server=attrs.evolve(first, rdma_library=None, image=images.get("server", first.image)),
        workers=pods,
        gid_index={key: gid for key, node in nodes.items() if (gid := _gid(site, node)) is not None and len(nodes) > 1},
        server_port=ports.get("server", combos()["server"]["port"]),
        engine_port=ports.get("engine", combos()["worker"]["port"]),
        startup=_startup(site),
        ready_timeout=max(combos()["worker"]["readyTimeoutSeconds"], _patience(site)),
        driver={key: node.get("driver", site.get("driver")) for key, node in nodes.items()},
    )


def _pod(site: Mapping[str, Any], chosen: Mapping[str, Any], node: Mapping[str, Any], pair: bool) -> PodGround:
    images = site.get("images", {})
    return PodGround(
        node=node["name"],
        model_directory=node["modelDirectory"],
        image=images.get("engine", combos()["images"][chosen["image"]]),
        overlay=images.get("overlay", combos()["images"]["overlay"]),
        tolerations=tuple(site.get("tolerations", ())),
        pull_secrets=tuple(site.get("imagePullSecrets", ())),
        runtime_class=site.get("kubernetes", {}).get("runtimeClass"),
        rdma_library=site.get("network", {}).get("rdmaLibrary", LIBIONIC) if pair else None,
    )


def _patience(site: Mapping[str, Any]) -> int:
    """Return how long a start may take in seconds: a quarter more than the site expects."""
    return -(-int(site.get("expectedReadySeconds", 0)) * 5 // 4)


def _startup(site: Mapping[str, Any]) -> Mapping[str, int]:
    startup: dict[str, int] = dict(combos()["worker"]["startup"])
    tries = -(-_patience(site) // startup["periodSeconds"])
    return startup | {"failureThreshold": max(startup["failureThreshold"], tries)}


def _gid(site: Mapping[str, Any], node: Mapping[str, Any]) -> int | None:
    found = node.get("gidIndex", site.get("network", {}).get("gidIndex"))
    return None if found is None else int(found)


def _plan_faults(plan: Plan, chosen: Mapping[str, Any]) -> Iterator[Issue]:
    model = combos()["model"]
    accelerators = model["acceleratorsPerNode"] * len(chosen["workers"])
    sizes = plan.deployment.parallelism
    wanted = (
        ("artifact.modelId", plan.artifact.model_id, model["id"]),
        ("target.hardwareId", plan.target.hardware_id, model["hardware"]),
        ("target.requestedAccelerators", plan.target.requested_accelerators, accelerators),
        ("deployment.parallelism.tensorParallelSize", sizes.tensor_parallel_size, model["acceleratorsPerNode"]),
        ("deployment.parallelism.pipelineParallelSize", sizes.pipeline_parallel_size, 1),
        ("deployment.parallelism.dataParallelSize", sizes.data_parallel_size, 1),
        ("deployment.parallelism.expertParallelSize", sizes.expert_parallel_size, 1),
    )
    for key, got, expected in wanted:
        if got is not None and got != expected:
            told = "the plan asks for what this profile is not"
            yield Issue(
                f"plan: $.{key}", "other_plan", told, str(expected), escape(str(got), 80), "plan for this profile"
            )


def _site_faults(site: Mapping[str, Any], chosen: Mapping[str, Any]) -> Iterator[Issue]:
    if "namespace" not in site:
        yield Issue("$.namespace", "site_value_missing", "not given: the namespace", "infera")
    if "serviceAccount" in site.get("kubernetes", {}):
        told = "the operator binds an account of its own, without which no worker registers"
        yield Issue("$.kubernetes.serviceAccount", "refused_value", told, "no such key")
    ports = site.get("ports", {})
    for key in sorted(set(ports) - {"server", "engine"}):
        yield Issue(f"$.ports.{escape(key, 64)}", "refused_value", "a port of no role here", "server or engine")
    hardware, model = site.get("hardware"), combos()["model"]
    if hardware is not None and hardware != model["hardware"]:
        yield Issue("$.hardware", "refused_value", "other hardware", model["hardware"], escape(str(hardware), 80))
    per_node = site.get("acceleratorsPerNode", model["acceleratorsPerNode"])
    if per_node != model["acceleratorsPerNode"]:
        expected = str(model["acceleratorsPerNode"])
        yield Issue("$.acceleratorsPerNode", "refused_value", "another number", expected, str(per_node))


def _nodes(site: Mapping[str, Any], chosen: Mapping[str, Any], issues: list[Issue]) -> dict[str, Mapping[str, Any]]:
    """Return the node of each worker service, adding what is wrong to ``issues``."""
    given = site.get("nodes")
    if not isinstance(given, Sequence) or not given:
        issues.append(Issue("$.nodes", "site_value_missing", "not given: the nodes by name", "a list of nodes"))
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    for service in chosen["workers"]:
        roles = _SERVING if service == "worker" else frozenset((service, "any"))
        fits = [
            (at, node) for at, node in enumerate(given) if _may(node, roles, service) and node not in found.values()
        ]
        if len(fits) != 1:
            word = "serve" if service == "worker" else service
            told = f"{len(fits)} nodes may be {word}; give one of them this role"
            issues.append(Issue("$.nodes", "no_one_node", told, f"one node with role {word}"))
            continue
        at, found[service] = fits[0]
        issues += _node_faults(f"$.nodes[{at}]", found[service], site, len(chosen["workers"]) > 1)
    return found


def _may(node: Mapping[str, Any], roles: frozenset[str], service: str) -> bool:
    own = node.get("roles", ())
    return bool(roles.intersection(own)) or (not own and service == "worker")


def _node_faults(path: str, node: Mapping[str, Any], site: Mapping[str, Any], pair: bool) -> Iterator[Issue]:
    if "modelDirectory" not in node:
        told = "not given: the directory on this node's own disk that holds the models"
        step = "look on the node itself; 'moeplan site probe' says what a directory lies on"
        yield Issue(f"{path}.modelDirectory", "site_value_missing", told, "/mnt/local-nvme/models", None, step)
    if len(node["name"]) > _LABEL_LENGTH:
        told = "longer than a label's value may be; pods are pinned by kubernetes.io/hostname"
        yield Issue(f"{path}.name", "refused_value", told, f"at most {_LABEL_LENGTH} characters", node["name"])
    if pair and _gid(site, node) == 0:
        key = f"{path}.gidIndex" if "gidIndex" in node else "$.network.gidIndex"
        told = "GID index 0 is link-local: transfers between nodes time out"
        yield Issue(
            key, "refused_value", told, "the index of the routable RoCE v2 GID", "0", "see show_gids on the node"
        )
