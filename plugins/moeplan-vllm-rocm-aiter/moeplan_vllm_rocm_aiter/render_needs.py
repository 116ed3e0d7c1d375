"""What a combination needs of a site beyond what every profile needs; what the recipes pin is the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moeplan.model.plugin import SiteNeed
from moeplan_vllm_rocm_aiter.combos import combo, combos
from moeplan_vllm_rocm_aiter.render_ground import LIBIONIC

__all__ = ["needs_of"]


def needs_of(profile: str) -> tuple[SiteNeed, ...]:
    """Return a profile's needs; none for one that is not rendered."""
    chosen = combo(profile)
    if chosen is None:
        return ()
    roles = ("prefill", "decode") if "decode" in chosen["workers"] else ("serve",)
    return (*_pinned(chosen), *_of_nodes(roles), *(_of_pairs(roles) if len(roles) > 1 else ()))


def _pinned(chosen: Mapping[str, Any]) -> tuple[SiteNeed, ...]:
    model, images = combos()["model"], combos()["images"]
    needs = [
        _need("namespace", "Kubernetes namespace", "the recipes use this one; the guide makes it", "infera"),
        _need("hardware", "The accelerator: the kernels are for gfx950 alone", "moeplan hardware", model["hardware"]),
        _need("acceleratorsPerNode", "GPUs of one node", "amd-smi list", str(model["acceleratorsPerNode"])),
        _need("images.engine", "The engine's image by digest", "the recipe pins it", images[chosen["image"]]),
        _need("images.overlay", "Infera's overlay image by digest", "the recipe pins it", images["overlay"]),
        _need("modelNames.target", "The checkpoint's directory below each modelDirectory", "ls it", model["target"]),
        _need("servedModelName", "The name that clients give in requests", "choose one", model["servedName"]),
    ]
    needs.append(
        SiteNeed(
            key="driver",
            title="Version of the driver that is loaded, which may not be the one that is installed",
            how="cat /sys/module/amdgpu/version, on each node",
            example="6.14.5",
        )
    )
    if any("draft" in worker["settings"] for worker in chosen["workers"].values()):
        needs.append(_need("modelNames.draft", "The draft's directory beside it", "ls it", model["draft"]))
    return tuple(needs)


def _need(key: str, title: str, how: str, default: str) -> SiteNeed:
    return SiteNeed(key=key, title=title, how=how, default=default, required=key == "namespace")


def _of_nodes(roles: tuple[str, ...]) -> tuple[SiteNeed, ...]:
    """Return what has no default: facts R-PH-001, R-PH-002 and R-WT-003 tell what a guess leads to."""
    return (
        SiteNeed(
            key="nodes[].name",
            title="The node's label kubernetes.io/hostname; of a pair, two different nodes",
            how="kubectl get nodes --label-columns=kubernetes.io/hostname",
            example="node-a",
            roles=roles,
        ),
        SiteNeed(
            key="nodes[].modelDirectory",
            title="Directory on this node's own NVMe that holds the checkpoints' directories; nodes need not agree",
            how="mount the directory itself in a pod on the node and run df -PT on it; a parent may lie elsewhere",
            example="/mnt/local-nvme/models",
            roles=roles,
        ),
    )


def _of_pairs(roles: tuple[str, ...]) -> tuple[SiteNeed, ...]:
    return (
        SiteNeed(
            key="nodes[].gidIndex",
            title="Index of the routable RoCE v2 GID, never 0; left out, Infera takes 1, which is right on ionic",
            how="show_gids on the node",
            example="1",
            roles=roles,
            required=False,
        ),
        SiteNeed(
            key="network.rdmaLibrary",
            title="The host's RDMA provider library, mounted into the pods: it has to fit the host's driver (R-PD-005)",
            how="ls it on both nodes",
            default=LIBIONIC,
            required=False,
        ),
    )
