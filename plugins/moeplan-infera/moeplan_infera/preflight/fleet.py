"""Hosts side by side: what the tool compares only in its HTML page, and what it does not compare at all.

Source: ``infera/tools/preflight/cli.py`` at 5890f7f, ``_CONSISTENCY`` and ``_flag_version_mismatch``: a value that
differs from the fleet's majority, or every value where none has a majority, is a warning.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from moeplan.errors import escape
from moeplan.model.preflight import Comparison, ComparisonValue
from moeplan_infera.preflight.tool_file import HostReport, as_object

__all__ = ["FleetFinding", "Reader", "compare_hosts", "detail", "gid_index", "odd_ones"]

MOST_SECONDS_APART = 300
"""How far apart the files of one run may be: rank 0 waits so long for them. Source: ``cli.py`` ``_wait_for_json``."""


@attrs.frozen(kw_only=True)
class FleetFinding:
    """What a comparison found on one host, or on a pair of hosts."""

    rule: str
    file: str
    path: str
    message: str
    severity: str | None = None


@attrs.frozen
class _Told:
    """One host's value of one thing, and where it stands."""

    report: HostReport
    value: str
    path: str


Reader = Callable[[HostReport], "tuple[str, str] | None"]
"""Returns a host's value as text and its place; None where the file does not tell."""


def compare_hosts(reports: Sequence[HostReport]) -> Iterator[tuple[Comparison, tuple[FleetFinding, ...]]]:
    """Yield each comparison with its findings; a single host is compared with nothing."""
    for name, title, rule, read in _COMPARED:
        told = [_Told(report, *value) for report in reports if (value := read(report)) is not None]
        yield _compared(name, title, rule, reports, told)
    yield from _devices(reports)
    yield _times(reports)


def odd_ones(values: Mapping[str, str]) -> set[str]:
    """Return whose value is out of line: not of the fleet's majority, or anybody's where all are equally frequent."""
    counts = Counter(values.values())
    if len(counts) <= 1:
        return set()
    most = max(counts.values())
    tied = len(set(counts.values())) == 1
    return {subject for subject, value in values.items() if tied or counts[value] < most}


def _compared(
    name: str, title: str, rule: str, reports: Sequence[HostReport], told: Sequence[_Told]
) -> tuple[Comparison, tuple[FleetFinding, ...]]:
    values = {one.report.host: one.value for one in told}
    odd = odd_ones(values)
    shown = tuple(ComparisonValue(report.host, escape(values.get(report.host, ""), 390) or None) for report in reports)
    outcome = "not_judged" if len(values) < 2 else "differs" if odd else "same"
    counts = ", ".join(f"{escape(value, 60)} on {count}" for value, count in sorted(Counter(values.values()).items()))
    findings = tuple(
        FleetFinding(
            rule=rule,
            file=one.report.file,
            path=one.path,
            message=f"{title} of {one.report.host} is {escape(one.value, 100)}; among the hosts: {counts}",
        )
        for one in told
        if one.report.host in odd
    )
    return Comparison(name, title, outcome, shown), findings


def detail(section: str, key: str) -> Reader:
    """Return what reads the first value under ``key`` of a section's findings."""

    def read(report: HostReport) -> tuple[str, str] | None:
        for finding in report.sections.get(section, ()):
            value = finding.details.get(key)
            if value not in (None, "", []):
                return _shown(value), f"{finding.path}.details.{key}"
        return None

    return read


def _shown(value: Any) -> str:
    return ", ".join(str(item) for item in value) if type(value) is list else str(value)


def _memory(report: HostReport) -> tuple[str, str] | None:
    cards = [one for one in report.sections.get("gpu", ()) if one.message.endswith(" present")]
    values = sorted({str(one.details["vram_gib"]) for one in cards if one.details.get("vram_gib") is not None})
    return (", ".join(values) + " GiB", "$.sections.gpu") if values else None


def _image(report: HostReport) -> tuple[str, str] | None:
    return (report.image, "$.image") if report.image is not None else None


def gid_index(report: HostReport) -> tuple[str, str] | None:
    """Return the GID index that the Mooncake transfers were pinned to."""
    for finding in report.sections.get("mooncake", ()):
        match = re.fullmatch(r"MC_GID_INDEX=(\d{1,3})", str(finding.details.get("env")))
        if match:
            return match[1], f"{finding.path}.details.env"
    return None


def _p2pdma(report: HostReport) -> tuple[str, str] | None:
    for finding in report.sections.get("firmware", ()):
        if finding.message == "kernel CONFIG_PCI_P2PDMA" and finding.details.get("value") not in (None, "unknown"):
            return str(finding.details["value"]), f"{finding.path}.details.value"
    return None


_COMPARED: tuple[tuple[str, str, str, Reader], ...] = (
    ("mec-firmware", "MEC firmware", "PRE-FLEET-VERSION", detail("firmware", "mec")),
    ("gpu-driver", "GPU driver", "PRE-FLEET-VERSION", detail("gpu", "driver")),
    ("gpu-gfx", "GPU architecture", "PRE-FLEET-GPU", detail("gpu", "gfx")),
    ("gpu-count", "number of GPUs", "PRE-FLEET-GPU", detail("gpu", "gpu_count")),
    ("gpu-memory", "GPU memory", "PRE-FLEET-GPU", _memory),
    ("image", "image the preflight ran in", "PRE-FLEET-IMAGE", _image),
    ("kernel-p2pdma", "kernel CONFIG_PCI_P2PDMA", "PRE-FLEET-VERSION", _p2pdma),
    ("rdma-devices", "RDMA devices", "PRE-FLEET-RDMA", detail("network", "rdma_devices")),
    ("gid-index", "GID index that transfers were pinned to", "PRE-FLEET-RDMA", gid_index),
)


def _fabric(report: HostReport) -> dict[str, tuple[dict[str, Any], str]]:
    found = {}
    for finding in report.sections.get("fabric", ()):
        for name, entry in finding.mapping("devices").items():
            path = f"{finding.path}.details.devices.{name}"
            found[name] = (as_object(entry, path), path)
    return found


def _devices(reports: Sequence[HostReport]) -> Iterator[tuple[Comparison, tuple[FleetFinding, ...]]]:
    """Compare MTU, kind of GID and rail of each RDMA device with the device of the same name on the others."""
    fabrics = {report.host: _fabric(report) for report in reports}
    for name, title, rule, read in (
        ("mtu", "MTU", "PRE-FLEET-MTU", _mtu),
        ("gid-kind", "kind of GID", "PRE-FLEET-GID", _gid_kind),
        ("rail", "network of the rail", "PRE-FLEET-RAIL", _rail),
    ):
        for device in sorted({device for fabric in fabrics.values() for device in fabric}):
            told = []
            for report in reports:
                entry, path = fabrics[report.host].get(device, ({}, ""))
                value = read(entry)
                if value is not None:
                    told.append(_Told(report, value, path))
            yield _compared(f"{name}.{_plain(device)}", f"{title} of {escape(device, 60)}", rule, reports, told)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]", "-", name.lower())[:100]


def _mtu(entry: Mapping[str, Any]) -> str | None:
    value = entry.get("mtu")
    return None if value in (None, "") else str(value)


def _gid_kind(entry: Mapping[str, Any]) -> str | None:
    address = _address(entry)
    if address is None:
        return None
    if address.is_link_local:
        return "link-local"
    return "IPv4-mapped" if address.ipv4_mapped is not None else "global IPv6"


def _rail(entry: Mapping[str, Any]) -> str | None:
    """Return the /64 of a global GID; two hosts' devices of one rail share it on a rail-separated fabric."""
    address = _address(entry)
    if address is None or address.is_link_local or address.ipv4_mapped is not None:
        return None
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


def _address(entry: Mapping[str, Any]) -> ipaddress.IPv6Address | None:
    try:
        return ipaddress.IPv6Address(str(entry.get("gid_v2")))
    except ValueError:
        return None


def _times(reports: Sequence[HostReport]) -> tuple[Comparison, tuple[FleetFinding, ...]]:
    """Compare when the files were written: a file of an earlier run joins a report silently."""
    title = "when the file was written (local time)"
    values = tuple(ComparisonValue(report.host, report.generated) for report in reports)
    times = {report.host: _seconds(report) for report in reports}
    known = [time for time in times.values() if time is not None]
    if len(known) < 2:
        return Comparison("generated", title, "not_judged", values), ()
    latest = max(known)
    old = [(report, latest - time) for report in reports if (time := times[report.host]) is not None]
    findings = tuple(
        FleetFinding(
            rule="PRE-FLEET-TIME",
            file=report.file,
            path="$.generated",
            message=f"the file of {report.host} is {apart} s older than the newest one: of an earlier run, or the "
            "clocks or time zones differ",
        )
        for report, apart in old
        if apart > MOST_SECONDS_APART
    )
    return Comparison("generated", title, "differs" if findings else "same", values), findings


def _seconds(report: HostReport) -> int | None:
    try:
        written = datetime.strptime(report.generated, "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    return (written - datetime(1970, 1, 1)).days * 86_400 + (written - datetime(1970, 1, 1)).seconds
