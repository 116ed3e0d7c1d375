"""Hosts' files made by hand, two GPUs and NICs each where the tool has eight; every figure can be checked on paper."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from moeplan_infera.preflight import hooks

from moeplan.model.preflight import Imported, ImportFile, ImportRequest

__all__ = ["found", "host", "imported", "read", "text", "tool_finding"]

_GPUS = 4


def tool_finding(level: str, message: str, **details: Any) -> dict[str, Any]:
    """Return a finding as the tool writes it."""
    return {"level": level, "message": message, "details": details}


def host(name: str = "node-a", peer: str = "node-b", number: int = 1) -> dict[str, Any]:
    """Return a healthy host's file, whose every measurement towards ``peer`` was made by this host."""
    info = tool_finding
    return {
        "host": name,
        "image": "engine@sha256:" + "1" * 64,
        "generated": "2026-08-20 09:14:05",
        "sections": {
            "host": [
                info("info", "Host CPU/memory", mem_total_gib=2.0, mem_avail_gib=1.5),
                info("info", "memlock ulimit unlimited", soft="unlimited", hard=-1),
            ],
            "gpu": [
                info("info", "GPU inventory", gpu_count=_GPUS, model="GPU", gfx="gfx950", driver="6.16.6"),
                *(
                    info("info", f"card{i} present", card=f"card{i}", gfx="gfx950", temp_c="40.0", vram_gib=288.0)
                    for i in range(_GPUS)
                ),
            ],
            "network": [
                info("info", "NIC inventory", nics=["eno0"], rdma_devices=["ionic_0", "ionic_1"], ipv4={}),
                info(
                    "info",
                    "RDMA device map",
                    devices={f"ionic_{i}": {"netdev": f"en{i}", "state": "ACTIVE"} for i in range(2)},
                ),
            ],
            "firmware": [
                info("info", "MEC firmware", mec=182),
                info("info", "GPU-direct (ais-check) engaged", rc=0, p2pdma="Kernel P2PDMA support : True", out=""),
                info("info", "kernel CONFIG_PCI_P2PDMA", value="y"),
            ],
            "storage": [
                info("info", "1 local NVMe device(s)", devices=[{"name": "nvme0n1", "size_gb": 3840.8}]),
                info(
                    "info", "NVMe\u2194DRAM throughput: write 11.2 GB/s, read 20.9 GB/s", target="/mnt/nvme", dev="md0"
                ),
            ],
            "compute": [info("info", f"gpu{i} GEMM (bf16)", tflops=1400.0) for i in range(_GPUS)],
            "hbm": [info("info", f"gpu{i} HBM copy", gb_s=4400.0) for i in range(_GPUS)],
            "p2p": [info("info", "P2P bandwidth matrix", matrix=_matrix(60.0), unit="GB/s")],
            "topology": [
                info("info", "GPU link topology", matrix=_matrix("XGMI"), unit="link"),
                info("info", "GPU<->NUMA mapping", numa={"0": 0, "1": 0, "2": 1, "3": 1}, per_node={"0": 2, "1": 2}),
            ],
            "fabric": [
                info(
                    "info",
                    "RDMA fabric",
                    devices={
                        f"ionic_{i}": {
                            "netdev": f"en{i}",
                            "gid_v2": f"fd00:0000:0000:00{i}a:0000:0000:0000:00{number:02d}",
                            "subnets": [f"fd00:0:0:{i}a::/64"],
                            "mtu": "4096",
                        }
                        for i in range(2)
                    },
                )
            ],
            "netperf": [
                info(
                    "info",
                    "netperf: 4/4 links ok (as client)",
                    tests=[
                        {"server": peer, "s_nic": s, "client": name, "c_nic": c, "gb_s": 48.0}
                        for s in range(2)
                        for c in range(2)
                    ],
                )
            ],
            "mooncake": [
                _moved(f"{peer} -> {name} rdma", 21.0, "MC_GID_INDEX=1"),
                info("warn", f"{peer} -> {name} rdma-default", reason="auto-selected GID is link-local, not routable"),
                _moved(f"{peer} -> {name} tcp", 1.5, "MC_FORCE_TCP=1"),
                _moved(f"{peer} -> {name} rdma-gpu0", 46.0, "MC_GID_INDEX=1"),
            ],
            "mori": [info("info", f"{peer} -> {name} rdma/cpu", **{"GB/s": 40.0}, verified=True)],
        },
    }


def _moved(message: str, rate: float, env: str) -> dict[str, Any]:
    return tool_finding("info", message, **{"GB/s": rate}, moved_GiB=1.0, env=env, verified=True)


def _matrix(value: Any) -> list[list[Any]]:
    return [[None if i == j else value for j in range(_GPUS)] for i in range(_GPUS)]


def text(made: Mapping[str, Any]) -> str:
    """Return a host's file."""
    return json.dumps(made, ensure_ascii=False, indent=1)


def read(*texts: str, site: Mapping[str, Any] | None = None) -> Imported:
    """Return what is read in files called ``0.json``, ``1.json`` …"""
    files = tuple(ImportFile(f"{number}.json", one) for number, one in enumerate(texts))
    return hooks.import_files(ImportRequest(hooks.FORMAT, files), site or {})


def imported(*made: Mapping[str, Any], site: Mapping[str, Any] | None = None) -> Imported:
    """Return what is read in the files of these hosts."""
    return read(*(text(copy.deepcopy(dict(one))) for one in made), site=site)


def found(result: Imported) -> list[tuple[str, str]]:
    """Return severity and id of each finding but those that every healthy pair of hosts has."""
    return sorted((one.severity, one.id) for one in result.findings if one.id != "PRE-GID-UNNAMED")
