"""What the site says of its nodes beside what the hosts show: number of nodes and GPUs, driver, accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moeplan.errors import escape
from moeplan_infera.preflight.fleet import FleetFinding
from moeplan_infera.preflight.tool_file import HostReport, ToolFinding

__all__ = ["compare_with_site"]

_ARCHITECTURES = {"mi355x": "gfx950", "mi350x": "gfx950", "mi300x": "gfx942", "mi325x": "gfx942"}
"""Source: AMD ROCm documentation, accelerator specifications (LLVM target)."""


def compare_with_site(reports: Sequence[HostReport], site: Mapping[str, Any]) -> Iterator[FleetFinding]:
    """Yield where hosts are not what the site says; a key that the site lacks is not compared."""
    names = _names(site.get("nodes"))
    count = len(names) if names else site.get("nodes")
    if type(count) is int and count != len(reports):
        message = f"the site has {count} node(s); files of {len(reports)} host(s) were given"
        yield FleetFinding(rule="PRE-SITE", file=reports[0].file, path="$.host", message=message)
    for report in reports:
        if names and report.host not in names:
            told = f"{report.host} is none of the site's nodes: {escape(', '.join(sorted(names)), 300)}"
            yield FleetFinding(rule="PRE-SITE", file=report.file, path="$.host", message=told)
        for finding in report.sections.get("gpu", ()):
            if finding.message == "GPU inventory":
                yield from _inventory(report, finding, site)


def _names(nodes: Any) -> set[str]:
    """Return the names of a list of nodes, each a name or an object with a ``name``."""
    if not isinstance(nodes, list | tuple):
        return set()
    named = (node.get("name") if isinstance(node, Mapping) else node for node in nodes)
    return {name for name in named if isinstance(name, str)}


def _inventory(report: HostReport, finding: ToolFinding, site: Mapping[str, Any]) -> Iterator[FleetFinding]:
    hardware = site.get("hardware")
    wanted = {
        "gpu_count": site.get("acceleratorsPerNode"),
        "driver": site.get("driver"),
        "gfx": _ARCHITECTURES.get(hardware.lower()) if isinstance(hardware, str) else None,
    }
    for key, expected in wanted.items():
        got = finding.details.get(key)
        if isinstance(expected, int | str) and not isinstance(expected, bool) and got is not None:
            if str(got) == str(expected):
                continue
            message = f"{report.host}: {key} is {escape(str(got), 60)}, the site says {escape(str(expected), 60)}"
            yield FleetFinding(rule="PRE-SITE", file=report.file, path=f"{finding.path}.details.{key}", message=message)
