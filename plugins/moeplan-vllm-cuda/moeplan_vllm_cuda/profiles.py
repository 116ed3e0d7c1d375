"""The plugin's profiles with their statuses, and what each needs of a site."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from moeplan.model.plugin import FactSource, Profile, ProfileAim, SiteNeed
from moeplan_vllm_cuda.data import read_data
from moeplan_vllm_cuda.recipes import recipe_source

__all__ = ["cuda_profiles", "known_status"]

_NAMESPACE = SiteNeed(
    key="namespace",
    title="The Kubernetes namespace to deploy to",
    how="kubectl get namespaces",
    example="serving",
)
_IMAGE = SiteNeed(
    key="images.engine",
    title="The engine's image by digest",
    how="docker buildx imagetools inspect vllm/vllm-openai:TAG",
    example="vllm/vllm-openai@sha256:" + "0" * 64,
)
_NAME = SiteNeed(
    key="servedModelName",
    title="The name that clients give in requests",
    how="choose one",
    example="deepseek-v3.1",
)
_INTERFACE = SiteNeed(
    key="network.interface",
    title="The interface by which the nodes reach each other; one name (facts C-NET-001 and C-NET-002)",
    how="ip route get ADDRESS-OF-ANOTHER-NODE, on each node",
    example="ens1",
)


def _address(*roles: str) -> SiteNeed:
    return SiteNeed(
        key="nodes[].address",
        title="The node's address on network.interface",
        how="ip -4 address show dev INTERFACE",
        example="192.0.2.10",
        roles=roles,
    )


_READY = SiteNeed(
    key="expectedReadySeconds",
    title="How long a start takes on these disks; timeouts and probes get a margin beyond it",
    how="measure one, or divide the checkpoint's bytes by what the disk reads in a second",
    example="900",
    required=False,
)
_DRAFT = SiteNeed(
    key="modelNames.draft",
    title="Name of the draft's directory below each modelDirectory, where the plan has a draft",
    how="ls the modelDirectory",
    example="Kimi-K3-speculator.dspark",
    required=False,
)
_GID = SiteNeed(
    key="network.gidIndex",
    title="Index of the RoCE v2 GID, the same on every port",
    how="moeplan site probe, or show_gids, on each node",
    example="3",
    required=False,
)
_RESOURCE = SiteNeed(
    key="network.rdmaResource",
    title="The resource by which a device plugin gives pods the RDMA devices; without it containers are privileged",
    how="kubectl describe node NODE, under Allocatable",
    example="rdma/ib",
    required=False,
)
_ROUTER = SiteNeed(
    key="images.router",
    title="The image of vllm-router by digest; it sends requests to prefill and then to decode",
    how="docker buildx imagetools inspect IMAGE:TAG",
    example="registry.example/vllm-router@sha256:" + "0" * 64,
)


def _rdma(*, required: bool) -> SiteNeed:
    return SiteNeed(
        key="network.rdmaDevices",
        title="The RDMA devices that traffic between nodes goes over, the same on each",
        how="moeplan site probe, on each node",
        example="[mlx5_0, mlx5_1]",
        required=required,
    )


_ONE = (_NAMESPACE, _IMAGE, _NAME, _READY, _DRAFT)
_NEEDS: Mapping[str, tuple[SiteNeed, ...]] = {
    "one": _ONE,
    "several": (*_ONE, _INTERFACE, _address("leader"), _address("worker"), _GID, _RESOURCE, _rdma(required=False)),
    "pair": (
        *_ONE,
        _INTERFACE,
        _address("prefill"),
        _address("decode"),
        _GID,
        _RESOURCE,
        _rdma(required=True),
        _ROUTER,
    ),
}


@cache
def cuda_profiles() -> tuple[Profile, ...]:
    """Return the profiles; none was measured by this project, and each says so."""
    data = read_data("profiles.json")
    return tuple(_profile(row, data["aims"][row["nodes"]]) for row in data["profiles"])


def _profile(row: Mapping[str, Any], aims: Mapping[str, tuple[str, str]]) -> Profile:
    sources = (FactSource(recipe_source(), f"strategies/{row['id']}.yaml and models/*"),)
    return Profile(
        id=row["id"],
        title=row["title"],
        status="recipe_only",
        statement=row["statement"],
        sources=sources,
        site_needs=_NEEDS[row["nodes"]],
        nodes=1 if row["nodes"] == "one" else 2,
        aims=tuple(
            ProfileAim(aim=aim, suits=suits, statement=statement, sources=sources)
            for aim, (suits, statement) in aims.items()
        ),
    )


def known_status(profile: str, family: str | None, gpu: str | None) -> Mapping[str, Any] | None:
    """Return what is known of a profile for a model's family on a GPU, or None; keys as in ``profiles.json``."""
    for row in read_data("profiles.json")["known"]:
        if row["profile"] == profile and row["family"] == family and (not row["gpus"] or gpu in row["gpus"]):
            return dict(row)
    return None
