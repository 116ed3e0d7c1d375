"""What the site says of the places to deploy to, read once; everything that lacks is named together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from moeplan.errors import InputRefusedError, Issue, escape
from moeplan_vllm_cuda.data import read_data
from moeplan_vllm_cuda.rendering.sizes import Sizes

__all__ = ["Ground", "Host", "read_ground"]

_MOST_NODES = 32
"""Each has two Jobs, which one command of the guide waits for."""
_ROLES_OF = {"serve": ("serve", "leader", "worker"), "prefill": ("prefill",), "decode": ("decode",)}


@attrs.frozen
class Host:
    """One node that an engine's ranks stand on; ``index`` counts from 0 within its role, the leader first."""

    name: str
    index: int
    model_directory: str
    address: str | None
    interface: str | None


@attrs.frozen(kw_only=True)
class Ground:
    """The site's values that are rendered, each there.

    ``rdma`` are RDMA devices of the hosts, the same on each; empty where the site names none. ``rdma_resource`` is what
    a device plugin gives them by; None: they are mounted from the host. ``router`` is the image of a pair's router.
    """

    namespace: str
    served: str
    target: str
    draft: str | None
    images: Mapping[str, str]
    router: str | None
    hosts: Mapping[str, tuple[Host, ...]]
    ports: Mapping[str, int]
    rdma: tuple[str, ...]
    rdma_resource: str | None
    gid_index: int | None
    ucx_devices: str | None
    tolerations: tuple[Mapping[str, Any], ...]
    pull_secrets: tuple[str, ...]
    runtime_class: str | None
    service_account: str | None
    ready_seconds: int | None
    driver: str | None
    engine_version: str | None
    acknowledged: frozenset[str]

    @property
    def spans_nodes(self) -> bool:
        """Return whether anything goes from one node to another."""
        return sum(len(hosts) for hosts in self.hosts.values()) > 1

    def every_host(self) -> tuple[tuple[str, Host], ...]:
        """Return each host with its role."""
        return tuple((role, host) for role, hosts in self.hosts.items() for host in hosts)


def read_ground(site: Mapping[str, Any], roles: Sequence[str], sizes: Sizes, *, draft: bool) -> Ground:
    """Return the site's values for the roles of a profile.

    Args:
        site: the site as JSON values.
        roles: the profile's.
        sizes: of each role's engine.
        draft: whether a draft checkpoint is served.

    Raises:
        InputRefusedError: for every value that is missing, by its key.
    """
    pair, several = len(roles) > 1, sizes.nodes > 1 or len(roles) > 1
    issues = list(_missing(site, roles, pair=pair, draft=draft))
    wanted = sizes.nodes * len(roles)
    if wanted > _MOST_NODES:
        told, step = f"{wanted} nodes for one deployment", "deploy several smaller ones"
        raise InputRefusedError(Issue("$.nodes", "too_many_nodes", told, f"at most {_MOST_NODES}", next=step))
    hosts, more = _hosts(site, roles, sizes.nodes, several=several)
    issues += more
    if issues:
        raise InputRefusedError(*issues, source="site")
    network, kubernetes = _part(site, "network"), _part(site, "kubernetes")
    images = _part(site, "images")
    return Ground(
        namespace=site["namespace"],
        served=site["servedModelName"],
        target=site["modelNames"]["target"],
        draft=site["modelNames"]["draft"] if draft else None,
        images={role: images.get(role) or images["engine"] for role in roles},
        router=images["router"] if pair else None,
        hosts=hosts,
        ports={**read_data("rendering/profiles.json")["ports"], **_part(site, "ports")},
        rdma=_rdma(site),
        rdma_resource=network.get("rdmaResource"),
        gid_index=network.get("gidIndex"),
        ucx_devices=network.get("ucxNetDevices"),
        tolerations=tuple(site.get("tolerations", ())),
        pull_secrets=tuple(site.get("imagePullSecrets", ())),
        runtime_class=kubernetes.get("runtimeClass"),
        service_account=kubernetes.get("serviceAccount"),
        ready_seconds=site.get("expectedReadySeconds"),
        driver=site.get("driver"),
        engine_version=site.get("engineVersion"),
        acknowledged=frozenset(one["id"] for one in site.get("acknowledged", ())),
    )


def _part(site: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = site.get(key)
    return value if isinstance(value, Mapping) else {}


def _rdma(site: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the devices that the site names for its network, or else those that every node has."""
    named = _part(site, "network").get("rdmaDevices")
    if named:
        return tuple(named)
    nodes = site.get("nodes")
    lists = [node.get("rdmaDevices", ()) for node in nodes] if isinstance(nodes, list | tuple) else []
    return tuple(name for name in (lists[0] if lists else ()) if all(name in one for one in lists))


def _missing(site: Mapping[str, Any], roles: Sequence[str], *, pair: bool, draft: bool) -> Iterator[Issue]:
    images = _part(site, "images")
    named = ("engine",) if any(not images.get(role) for role in roles) else ()
    wanted = [("namespace", site.get("namespace"), "the namespace to deploy to")]
    wanted += [("servedModelName", site.get("servedModelName"), "the name that clients give in requests")]
    wanted += [("modelNames.target", _part(site, "modelNames").get("target"), "the checkpoint's directory")]
    wanted += [(f"images.{role}", images.get(role), "the engine's image by digest") for role in named]
    if draft:
        wanted += [("modelNames.draft", _part(site, "modelNames").get("draft"), "the draft's directory")]
    if pair:
        wanted += [("images.router", images.get("router"), "the image of vllm-router by digest")]
        wanted += [("network.rdmaDevices", _rdma(site), "the RDMA devices that KV goes over, the same on each node")]
    for key, value, title in wanted:
        if not value:
            yield Issue(f"$.{key}", "site_value_missing", f"not given: {title}", next=f"write {key}")


def _hosts(
    site: Mapping[str, Any], roles: Sequence[str], count: int, *, several: bool
) -> tuple[dict[str, tuple[Host, ...]], list[Issue]]:
    nodes = site.get("nodes")
    if not isinstance(nodes, list | tuple) or not nodes:
        return {}, [Issue("$.nodes", "site_value_missing", "the nodes are not named", "a list of nodes")]
    found: dict[str, tuple[Host, ...]] = {}
    issues: list[Issue] = []
    taken: set[int] = set()
    for role in roles:
        chosen = _chosen(nodes, _ROLES_OF[role], taken)[:count]
        taken.update(chosen)
        if len(chosen) < count:
            told = f"{len(chosen)} node(s) for {role}"
            issues.append(Issue("$.nodes", "nodes_missing", told, f"{count} with role {' or '.join(_ROLES_OF[role])}"))
        for place in chosen:
            issues += _node_faults(nodes[place], place, _interface(site, nodes[place]), several=several)
        found[role] = tuple(_host(site, nodes[place], index) for index, place in enumerate(chosen))
        issues += _unlike(nodes, chosen[1:])
    return found, issues


def _chosen(nodes: Sequence[Any], roles: Sequence[str], taken: set[int]) -> list[int]:
    """Return the places of nodes that play one of the roles, leaders first, then those that name it, then any."""
    ranked = []
    for place, node in enumerate(nodes):
        own = tuple(node.get("roles") or ("any",))
        if place not in taken and ("any" in own or set(own) & set(roles)):
            ranked.append((0 if "leader" in own else 1 if set(own) & set(roles) else 2, place))
    return [place for _rank, place in sorted(ranked)]


def _interface(site: Mapping[str, Any], node: Mapping[str, Any]) -> str | None:
    own: str | None = node.get("networkInterface") or _part(site, "network").get("interface")
    return own


def _host(site: Mapping[str, Any], node: Mapping[str, Any], index: int) -> Host:
    directory = node.get("modelDirectory") or ""
    return Host(node["name"], index, directory, node.get("address"), _interface(site, node))


def _node_faults(node: Mapping[str, Any], place: int, interface: str | None, *, several: bool) -> Iterator[Issue]:
    where = f"$.nodes[{place}]"
    if not node.get("modelDirectory"):
        yield Issue(f"{where}.modelDirectory", "site_value_missing", "not given: the directory of the checkpoints")
    if not several:
        return
    if not node.get("address"):
        yield Issue(f"{where}.address", "site_value_missing", "not given: the address that other nodes reach it by")
    if not interface:
        told = "not given: the interface by which the nodes reach each other"
        yield Issue("$.network.interface", "site_value_missing", told, "one name, such as ens1")
    elif not interface.replace(".", "").replace("-", "").replace("_", "").isalnum():
        told = "an interface that Gloo does not understand"
        yield Issue("$.network.interface", "not_one_interface", told, "one name", escape(interface, 60))


def _unlike(nodes: Sequence[Any], workers: Sequence[int]) -> Iterator[Issue]:
    """Yield workers whose model directory differs: a LeaderWorkerSet has one template for all of them."""
    for place in workers[1:]:
        first, own = nodes[workers[0]].get("modelDirectory"), nodes[place].get("modelDirectory")
        if own != first:
            told = "a worker with another model directory than the first worker's; they share one template"
            yield Issue(f"$.nodes[{place}].modelDirectory", "unlike_workers", told, str(first), escape(str(own), 200))
