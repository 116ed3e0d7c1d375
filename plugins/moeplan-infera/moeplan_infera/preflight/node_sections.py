"""Host, GPU inventory, network, firmware and storage, judged from their raw values.

Source: ``infera/tools/preflight`` at 5890f7f: ``host/info.py``, ``gpu/info.py``, ``network/info.py``,
``firmware/info.py``, ``storage/info.py``, ``storage/perf.py``; thresholds as named there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from moeplan.errors import escape
from moeplan_infera.preflight.judgement import Judgement, failed_steps, passed, skipped
from moeplan_infera.preflight.numbers import median, parse_decimal, version_of
from moeplan_infera.preflight.tool_file import HostReport, Malformed, ToolFinding, as_object

__all__ = ["judge_firmware", "judge_gpu", "judge_host", "judge_network", "judge_storage"]

TEMPERATURE_MARGIN_C = 15
"""A card this far above the median of its node is an outlier. Source: ``gpu/info.py`` ``_TEMP_OUTLIER_C``."""
LEAST_CARDS = 3
"""From how many cards on a median says something. Source: ``gpu/info.py``, ``gpu/perf.py``."""
LEAST_DRIVER = (6, 16, 6)
"""amdgpu from which GPU-direct reads work. Source: Infera ``manual/features/kv_cache_offload.md``."""
_UNLIMITED = ("unlimited", -1)
_P2PDMA = re.compile(r"Kernel\s+P2PDMA\s+support\s*:\s*True")


def judge_host(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge the memlock limit."""
    for finding in findings:
        if not finding.message.startswith("memlock ulimit"):
            continue
        soft = finding.details.get("soft")
        if type(soft) not in (str, int) and soft is not None:
            raise Malformed(f"{finding.path}.details.soft", "value of the wrong type", "bytes or 'unlimited'", soft)
        if soft in _UNLIMITED:
            yield passed(finding)
            continue
        yield Judgement(
            says="memlock ulimit not unlimited (RDMA registration may fail)",
            level="warn",
            path=f"{finding.path}.details.soft",
            rule="PRE-MEMLOCK",
            message=f"memory that may be locked is limited to {escape(str(soft), 40)} bytes",
        )


def judge_gpu(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge the number of GPUs, equal memory, temperatures and the driver."""
    for finding in findings:
        if finding.message in ("GPU inventory", "rocm-smi not found; counted render nodes"):
            yield from _inventory(finding)
    cards = [finding for finding in findings if finding.message.endswith(" present")]
    memories = {Decimal(value) for card in cards if (value := card.number("vram_gib"))}
    if len(memories) > 1:
        shown = ", ".join(f"{value}" for value in sorted(memories))
        yield Judgement(
            says="GPU VRAM differs across cards",
            level="warn",
            path="$.sections.gpu",
            rule="PRE-GPU-MEMORY",
            message=f"GPUs of one node report different memory: {shown} GiB",
        )
    yield from _temperatures(cards)


def _inventory(finding: ToolFinding) -> Iterator[Judgement]:
    count = finding.number("gpu_count")
    if not count:
        message = "no GPU is visible"
        yield Judgement(
            says=finding.message,
            level="warn",
            path=f"{finding.path}.details.gpu_count",
            rule="PRE-GPU-COUNT",
            message=message,
        )
        return
    yield passed(finding)
    driver = finding.text("driver")
    version = version_of(driver) if driver else None
    if version is not None and version < LEAST_DRIVER:
        wanted = ".".join(map(str, LEAST_DRIVER))
        yield Judgement(
            says="driver",
            level="own",
            path=f"{finding.path}.details.driver",
            rule="R-CHO-006",
            message=f"amdgpu {escape(str(driver), 40)} is older than {wanted}: no GPU-direct reads for the KV cache",
        )


def _temperatures(cards: list[ToolFinding]) -> Iterator[Judgement]:
    read = [(card, parse_decimal(str(card.details.get("temp_c")))) for card in cards]
    known = [(card, temperature) for card, temperature in read if temperature is not None]
    if len(known) < LEAST_CARDS:
        return
    middle = median([temperature for _, temperature in known])
    for card, temperature in known:
        if temperature >= middle + TEMPERATURE_MARGIN_C:
            name = card.message.removesuffix(" present")
            yield Judgement(
                says=f"{name} temperature outlier",
                level="warn",
                path=f"{card.path}.details.temp_c",
                rule="PRE-GPU-HOT",
                message=f"{escape(name, 60)} is at {temperature} °C, the median of the node is {middle} °C",
            )


def judge_network(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge that there are RDMA devices and that the first port of each is up."""
    for finding in findings:
        if finding.message == "NIC inventory":
            if finding.listed("rdma_devices"):
                yield passed(finding)
            else:
                yield _no_rdma(finding.path)
        if finding.message == "RDMA device map":
            down = []
            for name, entry in finding.mapping("devices").items():
                state = as_object(entry, f"{finding.path}.details.devices").get("state")
                if str(state).upper() != "ACTIVE":
                    down.append(f"{name} ({state})")
            if down:
                yield Judgement(
                    says="some RDMA ports not ACTIVE",
                    level="warn",
                    path=f"{finding.path}.details.devices",
                    rule="PRE-RDMA-PORT",
                    message=f"RDMA ports that are not up: {escape(', '.join(down), 400)}",
                )
            else:
                yield passed(finding)


def _no_rdma(path: str) -> Judgement:
    return Judgement(
        says="no RDMA devices found",
        level="warn",
        path=path,
        rule="PRE-NO-RDMA",
        message="the host shows no RDMA device",
    )


def judge_firmware(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge whether GPU-direct is engaged; the firmware's version has no limit of its own."""
    for finding in findings:
        if finding.message == "MEC firmware":
            yield passed(finding)
        elif finding.message.startswith("ais-check not found"):
            message = "ais-check is not installed: whether GPU-direct is engaged is not known"
            yield Judgement(says=finding.message, level="warn", path=finding.path, rule="R-CHO-006", message=message)
        elif finding.message.startswith("GPU-direct"):
            told = f"{finding.text('out') or ''}\n{finding.text('p2pdma') or ''}"
            if _P2PDMA.search(told):
                yield passed(finding)
                continue
            yield Judgement(
                says="GPU-direct NOT engaged (silent CPU-bounce)",
                level="warn",
                path=f"{finding.path}.details.p2pdma",
                rule="R-CHO-006",
                message="ais-check does not show kernel P2PDMA support: reads of the KV cache go through the CPU",
            )
        elif finding.message == "kernel CONFIG_PCI_P2PDMA" and finding.text("value") not in ("y", "unknown"):
            yield Judgement(
                says="kernel",
                level="own",
                path=f"{finding.path}.details.value",
                rule="R-CHO-006",
                message=f"the kernel is built with CONFIG_PCI_P2PDMA={escape(str(finding.text('value')), 20)}, not y",
            )


_NOT_LOCAL = (
    "no local NVMe storage for KV cache",
    "KV storage target is not local NVMe (KV cache would be slow)",
)


def judge_storage(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge that there is local NVMe and that the KV cache's directory lies on it."""
    yield from failed_steps(findings)
    for finding in findings:
        message = finding.message
        if message.endswith("local NVMe device(s)") and finding.listed("devices"):
            yield passed(finding)
        elif message.endswith("local NVMe device(s)") or message == "no local NVMe detected":
            yield Judgement(
                says="no local NVMe detected",
                level="warn",
                path=finding.path,
                rule="PRE-NO-NVME",
                message="the host shows no local NVMe drive",
            )
        elif message == "cannot enumerate block devices (lsblk unavailable)":
            told = "lsblk is missing: the drives are not known"
            yield Judgement(says=message, level="warn", path=finding.path, rule="PRE-NO-NVME", message=told)
        elif message in _NOT_LOCAL:
            yield _not_local(finding, message)
        elif "throughput:" in message:
            yield passed(finding) if finding.text("dev") else _not_local(finding, _NOT_LOCAL[1])
        elif "skipped" in message:
            yield skipped(finding, wanted="STORAGE_GB=0" not in message)


def _not_local(finding: ToolFinding, says: str) -> Judgement:
    target = finding.text("target")
    where = f"{escape(target, 200)} does not lie on local NVMe" if target else "no directory on local NVMe was found"
    return Judgement(
        says=says, level="fail", path=finding.path, rule="PRE-STORAGE-TARGET", message=f"KV cache storage: {where}"
    )
