"""The raw values of a host as rows of the core's preflight table: exact integers, each in a named unit."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.errors import escape
from moeplan.model.preflight import ImportedClaim, ImportedRow
from moeplan_infera.preflight.link_sections import links_of, transfers_of
from moeplan_infera.preflight.numbers import GIBIBYTE, parse_decimal, scaled
from moeplan_infera.preflight.speed_sections import matrix, per_gpu
from moeplan_infera.preflight.tool_file import LEVELS, HostReport, Number, as_number, as_object

__all__ = ["claims_of", "rows_of"]

_GIGA = 10**9
_TERA = 10**12


def rows_of(report: HostReport) -> Iterator[ImportedRow]:
    """Yield the rows of one host, in the order of its file.

    Raises:
        Malformed: a value of another type than the tool writes.
    """
    yield from _host_rows(report)
    yield from _gpu_rows(report)
    yield from _network_rows(report)
    for section, ending, key, unit, factor in (
        ("compute", "GEMM (bf16)", "tflops", "flop_per_second", _TERA),
        ("hbm", "HBM copy", "gb_s", "bytes_per_second", _GIGA),
    ):
        metric = "gemm" if section == "compute" else "copy_bandwidth"
        for gpu, (finding, value) in sorted(per_gpu(report.sections.get(section, ()), ending, key).items()):
            yield _row(report, section, f"gpu{gpu}", metric, unit, value, factor, f"{finding.path}.details.{key}")
    yield from _link_rows(report)


def claims_of(report: HostReport) -> Iterator[ImportedClaim]:
    """Yield how many findings of each level the tool reports in each section."""
    for section, findings in report.sections.items():
        for level in LEVELS:
            count = sum(finding.level == level for finding in findings)
            if count:
                yield ImportedClaim(f"{report.host[:24]}.{section}.{level}", str(count))


def _row(
    report: HostReport,
    probe: str,
    item: str,
    metric: str,
    unit: str,
    value: Number | None,
    factor: int = 1,
    path: str = "$",
) -> ImportedRow:
    exact = 0 if value is None else scaled(value, factor, path)
    state = "failed" if value is None else "measured"
    return ImportedRow(
        host=report.host, probe=probe, item=escape(item, 390) or "?", metric=metric, unit=unit, value=exact, state=state
    )


def _host_rows(report: HostReport) -> Iterator[ImportedRow]:
    for finding in report.sections.get("host", ()):
        if finding.message == "Host CPU/memory":
            for key in ("mem_total_gib", "mem_avail_gib"):
                value = finding.number(key)
                if value is not None:
                    metric, path = key.removesuffix("_gib"), f"{finding.path}.details.{key}"
                    yield _row(report, "host", "host", metric, "bytes", value, GIBIBYTE, path)
        if finding.message.startswith("memlock"):
            unlimited = finding.details.get("soft") in ("unlimited", -1)
            yield _row(report, "host", "host", "memlock_unlimited", "boolean", int(unlimited))


def _gpu_rows(report: HostReport) -> Iterator[ImportedRow]:
    for finding in report.sections.get("gpu", ()):
        count = finding.number("gpu_count")
        if count is not None:
            yield _row(report, "gpu", "host", "gpu_count", "count", count)
        if finding.message.endswith(" present"):
            item = finding.message.removesuffix(" present")
            temperature = parse_decimal(str(finding.details.get("temp_c")))
            if temperature is not None:
                yield _row(report, "gpu", item, "temperature", "millidegrees_celsius", temperature, 1000)
            memory = finding.number("vram_gib")
            if memory is not None:
                path = f"{finding.path}.details.vram_gib"
                yield _row(report, "gpu", item, "memory", "bytes", memory, GIBIBYTE, path)
    for finding in report.sections.get("firmware", ()):
        version = finding.number("mec")
        if version is not None:
            yield _row(report, "firmware", "host", "mec_firmware", "version_number", version)


def _network_rows(report: HostReport) -> Iterator[ImportedRow]:
    for finding in report.sections.get("network", ()):
        for name, entry in finding.mapping("devices").items():
            state = as_object(entry, f"{finding.path}.details.devices").get("state")
            up = int(str(state).upper() == "ACTIVE")
            yield _row(report, "network", name, "port_active", "boolean", up)
    for finding in report.sections.get("fabric", ()):
        for name, entry in finding.mapping("devices").items():
            mtu = parse_decimal(str(as_object(entry, f"{finding.path}.details.devices").get("mtu")))
            if mtu is not None:
                yield _row(report, "fabric", name, "mtu", "bytes", mtu)


def _link_rows(report: HostReport) -> Iterator[ImportedRow]:
    for finding in report.sections.get("p2p", ()):
        if finding.message == "P2P bandwidth matrix":
            for i, row in enumerate(matrix(finding)):
                for j, cell in enumerate(row):
                    if i != j:
                        path = f"{finding.path}.details.matrix[{i}][{j}]"
                        value = as_number(cell, path)
                        item = f"gpu{i}->{j}"
                        yield _row(report, "p2p", item, "bandwidth", "bytes_per_second", value, _GIGA, path)
    for link in links_of(report.sections.get("netperf", ())):
        yield _row(report, "netperf", link.name, "bandwidth", "bytes_per_second", link.gb_s, _GIGA, link.path)
    for section in ("mooncake", "mori"):
        for transfer in transfers_of(report.sections.get(section, ())):
            item, path = transfer.finding.message, f"{transfer.finding.path}.details"
            yield _row(report, section, item, "bandwidth", "bytes_per_second", transfer.gb_s, _GIGA, path)
            if transfer.gb_s is not None:
                yield _row(report, section, item, "verified", "boolean", int(transfer.verified is True))
