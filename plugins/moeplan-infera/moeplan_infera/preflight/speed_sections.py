"""Compute, memory bandwidth, links between the GPUs of one node, and topology, judged from their raw values.

Source: ``infera/tools/preflight`` at 5890f7f: ``gpu/perf.py``, ``gpu/topology.py``; thresholds as named there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from moeplan.errors import escape
from moeplan_infera.preflight.judgement import Judgement, failed_steps, passed, skipped
from moeplan_infera.preflight.numbers import median
from moeplan_infera.preflight.tool_file import HostReport, Malformed, Number, ToolFinding, as_number

__all__ = ["judge_compute", "judge_hbm", "judge_p2p", "judge_topology", "matrix", "per_gpu"]

SLOW_SHARE = Decimal("0.9")
"""Below this share of the node's median a GPU or link is slow. Source: ``gpu/perf.py`` ``_SLOW_FRAC``."""
LEAST_VALUES = 3
"""From how many values on a median says something. Source: ``gpu/perf.py`` ``_outliers``."""
MI355X = "gfx950"
MI355X_TFLOPS = Decimal("1300.0")
"""bf16 GEMM of 8192, TFLOPS of one GPU. Source: ``gpu/perf.py`` ``_MI355X_GEMM_MIN_TFLOPS``."""
MI355X_LINK_GB_S = Decimal("50.0")
"""One xGMI link, GB/s. Source: ``gpu/perf.py`` ``_MI355X_P2P_MIN_GBPS``."""


def per_gpu(findings: tuple[ToolFinding, ...], ending: str, key: str) -> dict[int, tuple[ToolFinding, Number]]:
    """Return GPU number → finding and value, of the findings ``gpu<N> <ending>``."""
    found = {}
    for finding in findings:
        match = re.fullmatch(rf"gpu(\d{{1,4}}) {re.escape(ending)}", finding.message)
        value = finding.number(key) if match else None
        if match and value is not None:
            found[int(match[1])] = (finding, value)
    return found


def matrix(finding: ToolFinding) -> list[list[Any]]:
    """Return the square matrix of a finding.

    Raises:
        Malformed: no square matrix.
    """
    rows = finding.listed("matrix")
    if not all(type(row) is list and len(row) == len(rows) for row in rows):
        raise Malformed(f"{finding.path}.details.matrix", "not a square matrix", "as many columns as rows")
    return rows


def _is_mi355x(report: HostReport) -> bool:
    """Return whether every GPU of the host is an MI355X, by the inventory of the same file."""
    for finding in report.sections.get("gpu", ()):
        if finding.message == "GPU inventory":
            return finding.details.get("gfx") == MI355X
    return False


def judge_compute(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge each GPU's GEMM rate against the node's median and, on MI355X, against the floor."""
    yield from failed_steps(findings)
    yield from _skips(findings)
    rates = per_gpu(findings, "GEMM (bf16)", "tflops")
    yield from _outliers(rates, "compute outlier", "PRE-GPU-SLOW", "tflops", "TFLOPS")
    if _is_mi355x(report):
        for gpu, (finding, rate) in sorted(rates.items()):
            if rate < MI355X_TFLOPS:
                yield Judgement(
                    says=f"gpu{gpu} below MI355X bf16 GEMM floor",
                    level="warn",
                    path=f"{finding.path}.details.tflops",
                    rule="PRE-GPU-FLOOR",
                    message=f"gpu{gpu} reaches {rate} TFLOPS; an MI355X reaches {MI355X_TFLOPS}",
                )


def judge_hbm(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge each GPU's memory bandwidth against the node's median."""
    yield from failed_steps(findings)
    yield from _skips(findings)
    rates = per_gpu(findings, "HBM copy", "gb_s")
    yield from _outliers(rates, "bandwidth outlier", "PRE-GPU-SLOW", "gb_s", "GB/s")


def _outliers(
    rates: dict[int, tuple[ToolFinding, Number]], says: str, rule: str, key: str, unit: str
) -> Iterator[Judgement]:
    yield from (passed(finding) for finding, _ in rates.values())
    if len(rates) < LEAST_VALUES:
        return
    middle = median([rate for _, rate in rates.values()])
    for gpu, (finding, rate) in sorted(rates.items()):
        if rate < middle * SLOW_SHARE:
            yield Judgement(
                says=f"gpu{gpu} {says}",
                level="warn",
                path=f"{finding.path}.details.{key}",
                rule=rule,
                message=f"gpu{gpu} reaches {rate} {unit}; the median of the node is {middle}",
            )


def judge_p2p(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge the bandwidth of every ordered pair of GPUs."""
    yield from _skips(findings)
    for finding in findings:
        if finding.message != "P2P bandwidth matrix":
            continue
        yield passed(finding)
        links = {
            (i, j): as_number(value, f"{finding.path}.details.matrix[{i}][{j}]")
            for i, row in enumerate(matrix(finding))
            for j, value in enumerate(row)
            if i != j
        }
        known = {pair: value for pair, value in links.items() if value is not None}
        middle = median(known.values()) if len(known) >= LEAST_VALUES else None
        floor = MI355X_LINK_GB_S if _is_mi355x(report) else None
        for (i, j), value in sorted(links.items()):
            yield from _link(f"gpu{i}->{j}", f"{finding.path}.details.matrix[{i}][{j}]", value, middle, floor)


def _link(
    name: str, path: str, value: Number | None, middle: Decimal | None, floor: Decimal | None
) -> Iterator[Judgement]:
    if value is None:
        message = f"{name}: no bandwidth was measured"
        yield Judgement(says=f"{name} P2P failed", level="warn", path=path, rule="PRE-MEASURE-FAILED", message=message)
        return
    if middle is not None and value < middle * SLOW_SHARE:
        message = f"{name} moves {value} GB/s; the median of the node is {middle}"
        yield Judgement(says=f"{name} link slow", level="warn", path=path, rule="PRE-GPU-LINK", message=message)
    if floor is not None and value < floor:
        message = f"{name} moves {value} GB/s; an xGMI link of MI355X moves {floor}"
        yield Judgement(
            says=f"{name} below MI355X xGMI floor", level="warn", path=path, rule="PRE-GPU-LINK", message=message
        )


def judge_topology(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge the kind of each link and the spread of GPUs over NUMA nodes."""
    yield from _skips(findings)
    for finding in findings:
        if finding.message == "GPU link topology":
            yield passed(finding)
            yield from _links(finding)
        elif finding.message == "GPU link topology unavailable":
            message = "rocm-smi does not tell how the GPUs are linked"
            yield Judgement(
                says=finding.message, level="warn", path=finding.path, rule="PRE-GPU-TOPOLOGY", message=message
            )
        elif finding.message == "GPU<->NUMA mapping":
            yield passed(finding)
            counts = Counter(str(node) for node in finding.mapping("numa").values())
            if len(set(counts.values())) > 1:
                shown = ", ".join(f"{count} on node {escape(node, 20)}" for node, count in sorted(counts.items()))
                yield Judgement(
                    says="GPU<->NUMA distribution imbalanced",
                    level="warn",
                    path=f"{finding.path}.details.numa",
                    rule="PRE-GPU-TOPOLOGY",
                    message=f"GPUs are spread unevenly over NUMA nodes: {shown}",
                )


def _links(finding: ToolFinding) -> Iterator[Judgement]:
    for i, row in enumerate(matrix(finding)):
        for j, kind in enumerate(row):
            if j > i and kind is not None and str(kind).upper() != "XGMI":
                yield Judgement(
                    says=f"gpu{i}-gpu{j} link not xGMI",
                    level="warn",
                    path=f"{finding.path}.details.matrix[{i}][{j}]",
                    rule="PRE-GPU-TOPOLOGY",
                    message=f"gpu{i} and gpu{j} are linked by {escape(str(kind), 40)}, not by xGMI",
                )


def _skips(findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    yield from (skipped(finding) for finding in findings if "skipped" in finding.message)
