"""What differs from node to node: sizes, addresses and ranks on the command line, and the variables of its network.

Source: vLLM 0.27.1 ``vllm serve --help`` and documentation, "Data Parallel Deployment" and "Parallelism and Scaling":
one replica over several nodes is ``--nnodes`` with the executor ``mp``; data-parallel ranks of other nodes are
``--headless`` with a start rank, or have a front end of their own with ``--data-parallel-hybrid-lb``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moeplan_vllm_cuda.rendering.ground import Ground
from moeplan_vllm_cuda.rendering.sizes import Sizes

__all__ = ["network_environment", "rank_arguments", "serves_http", "size_arguments"]


def size_arguments(sizes: Sizes) -> dict[str, Any]:
    """Return the engine's sizes, which are the same on each node."""
    layout = sizes.layout
    made: dict[str, Any] = {"--tensor-parallel-size": str(layout.tensor)}
    if layout.pipeline > 1:
        made["--pipeline-parallel-size"] = str(layout.pipeline)
    if layout.data > 1:
        made["--data-parallel-size"] = str(layout.data)
    if layout.expert:
        made["--enable-expert-parallel"] = True
    return made


def serves_http(sizes: Sizes, balance: str | None, *, leader: bool) -> bool:
    """Return whether a node of the engine answers HTTP: the leader does, others only with a front end of their own."""
    return leader or (sizes.layout.data > 1 and balance == "hybrid")


def rank_arguments(
    sizes: Sizes, balance: str | None, ports: Mapping[str, int], *, leader: bool, master: str, rank: str, start: str
) -> dict[str, Any]:
    """Return what one of several nodes is told; nothing where the engine has one node.

    Args:
        sizes: of the engine.
        balance: ``hybrid`` where each node has its own front end.
        ports: ``master`` and ``rpc``.
        leader: whether the node is the first.
        master: address of the leader.
        rank: the node's number, counted from 0.
        start: its first data-parallel rank.
    """
    if sizes.nodes == 1:
        return {}
    if sizes.layout.data == 1:
        made: dict[str, Any] = {
            "--distributed-executor-backend": "mp",
            "--nnodes": str(sizes.nodes),
            "--node-rank": rank,
            "--master-addr": master,
            "--master-port": str(ports["master"]),
        }
    else:
        made = {
            "--data-parallel-size-local": str(sizes.local_data),
            "--data-parallel-address": master,
            "--data-parallel-rpc-port": str(ports["rpc"]),
        }
        if not leader:
            made["--data-parallel-start-rank"] = start
        if balance == "hybrid":
            made["--data-parallel-hybrid-lb"] = True
    if not serves_http(sizes, balance, leader=leader):
        made["--headless"] = True
    return made


def network_environment(ground: Ground, interface: str | None, address: str, *, paired: bool) -> dict[str, str]:
    """Return the variables of the network between nodes; none where nothing goes from one node to another.

    Args:
        ground: the site's values.
        interface: by which the node reaches the others.
        address: the node's own, as the others reach it.
        paired: whether KV is handed over.
    """
    if not ground.spans_nodes or interface is None:
        return {}
    made = {"VLLM_HOST_IP": address, "GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    if ground.rdma:
        made["NCCL_IB_HCA"] = ",".join(f"={name}" if index == 0 else name for index, name in enumerate(ground.rdma))
    if ground.gid_index is not None:
        made["NCCL_IB_GID_INDEX"] = str(ground.gid_index)
    if paired:
        made["VLLM_NIXL_SIDE_CHANNEL_HOST"] = address
        made["VLLM_NIXL_SIDE_CHANNEL_PORT"] = str(ground.ports["sideChannel"])
        made["UCX_NET_DEVICES"] = ground.ucx_devices or ",".join(f"{name}:1" for name in ground.rdma)
        if ground.gid_index is not None:
            made["UCX_IB_GID_INDEX"] = str(ground.gid_index)
    return made
