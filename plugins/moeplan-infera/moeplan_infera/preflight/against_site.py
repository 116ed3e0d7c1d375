"""What the site says of its nodes beside what the hosts show: which nodes, GPUs, driver, RDMA devices, GID index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moeplan.errors import escape
from moeplan_infera.preflight.fleet import FleetFinding, Reader, detail, gid_index
from moeplan_infera.preflight.tool_file import HostReport

__all__ = ["compare_with_site"]

_ARCHITECTURES = {"mi355x": "gfx950", "mi350x": "gfx950", "mi325x": "gfx942", "mi300x": "gfx942"}
"""Source: AMD ROCm documentation, "Accelerator and GPU hardware specifications", LLVM target name."""
_READERS: tuple[tuple[str, Reader], ...] = (
    ("number of GPUs", detail("gpu", "gpu_count")),
    ("driver", detail("gpu", "driver")),
    ("GPU architecture", detail("gpu", "gfx")),
    ("GID index", gid_index),
)


def compare_with_site(reports: Sequence[HostReport], site: Mapping[str, Any]) -> Iterator[FleetFinding]:
    """Yield where hosts are not what the site says; a key that the site lacks is not compared."""
    nodes = _nodes(site.get("nodes"))
    count = len(nodes) if nodes else site.get("nodes")
    if type(count) is int and count != len(reports):
        message = f"the site has {count} node(s); files of {len(reports)} host(s) were given"
        yield FleetFinding(rule="PRE-SITE", file=reports[0].file, path="$.host", message=message)
    for report in reports:
        if nodes and report.host not in nodes:
            told = f"{report.host} is none of the site's nodes: {escape(', '.join(sorted(nodes)), 300)}"
            yield FleetFinding(rule="PRE-SITE", file=report.file, path="$.host", message=told)
        yield from _host(report, site, nodes.get(report.host, {}))


def _nodes(nodes: Any) -> dict[str, Mapping[str, Any]]:
    """Return the nodes of a list by name; an item is a name or an object with one."""
    if not isinstance(nodes, list | tuple):
        return {}
    found = [node if isinstance(node, Mapping) else {"name": node} for node in nodes]
    return {node["name"]: node for node in found if isinstance(node.get("name"), str)}


def _host(report: HostReport, site: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[FleetFinding]:
    hardware, network = site.get("hardware"), site.get("network")
    shared = network if isinstance(network, Mapping) else {}
    wanted = {
        "number of GPUs": node.get("accelerators", site.get("acceleratorsPerNode")),
        "driver": node.get("driver", site.get("driver")),
        "GPU architecture": _ARCHITECTURES.get(hardware.lower()) if isinstance(hardware, str) else None,
        "GID index": node.get("gidIndex", shared.get("gidIndex")),
    }
    for title, read in _READERS:
        told, expected = read(report), wanted[title]
        if told is None or expected is None or told[0] == str(expected):
            continue
        message = f"{title} of {report.host} is {escape(told[0], 60)}, the site says {escape(str(expected), 60)}"
        yield FleetFinding(rule="PRE-SITE", file=report.file, path=told[1], message=message)
    yield from _missing_devices(report, node.get("rdmaDevices", shared.get("rdmaDevices")))


def _missing_devices(report: HostReport, named: Any) -> Iterator[FleetFinding]:
    if not isinstance(named, list | tuple):
        return
    for finding in report.sections.get("network", ()):
        if finding.message == "NIC inventory":
            missing = sorted({str(name) for name in named} - {str(name) for name in finding.listed("rdma_devices")})
            if missing:
                message = f"{report.host} lacks RDMA devices that the site names: {escape(', '.join(missing), 300)}"
                path = f"{finding.path}.details.rdma_devices"
                yield FleetFinding(rule="PRE-SITE", file=report.file, path=path, message=message)
