"""From host to host: is RDMA proven in both directions, is it RDMA at all, and does it reach what the link carries.

The tool has no absolute limit for bandwidth between hosts. The two limits below are moeplan's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import permutations

import attrs

from moeplan.errors import escape
from moeplan.model.preflight import Comparison, ComparisonValue
from moeplan_infera.preflight.fleet import FleetFinding
from moeplan_infera.preflight.link_sections import Link, Transfer, links_of, transfers_of
from moeplan_infera.preflight.numbers import median
from moeplan_infera.preflight.tool_file import HostReport

__all__ = ["compare_directions"]

LEAST_RDMA_TO_TCP = 3
"""RDMA that is not three times as fast as TCP between the same hosts is taken for TCP."""
LEAST_SHARE_OF_LINK = Decimal("0.5")
"""A transfer from GPU memory below half of what the raw link carries is slow."""

Pair = tuple[str, str]


@attrs.frozen
class _Direction:
    """What was measured from one host to another, and in whose file."""

    links: tuple[Link, ...]
    transfers: tuple[Transfer, ...]
    report: HostReport | None


def compare_directions(
    reports: Sequence[HostReport],
) -> Iterator[tuple[Comparison, tuple[FleetFinding, ...]]]:
    """Yield the comparisons between hosts; a single host that names no other is compared with nothing."""
    directions = _directions(reports)
    pairs = sorted(directions)
    yield _reachability(reports, pairs, directions)
    yield _rdma_against_tcp(pairs, directions)
    yield _transfer_against_link(pairs, directions)


def _directions(reports: Sequence[HostReport]) -> dict[Pair, _Direction]:
    links: dict[Pair, list[Link]] = {}
    transfers: dict[Pair, list[Transfer]] = {}
    owner: dict[Pair, HostReport] = {}
    for report in reports:
        for link in links_of(report.sections.get("netperf", ())):
            links.setdefault((link.server, link.client), []).append(link)
            owner.setdefault((link.server, link.client), report)
        for section in ("mooncake", "mori"):
            for transfer in transfers_of(report.sections.get(section, ())):
                transfers.setdefault((transfer.source, transfer.target), []).append(transfer)
                owner.setdefault((transfer.source, transfer.target), report)
    hosts = sorted({report.host for report in reports} | {host for pair in owner for host in pair})
    return {
        pair: _Direction(tuple(links.get(pair, ())), tuple(transfers.get(pair, ())), owner.get(pair))
        for pair in permutations(hosts, 2)
    }


def _subject(pair: Pair) -> str:
    return escape(f"{pair[0]} -> {pair[1]}", 390)


def _reachability(
    reports: Sequence[HostReport], pairs: Sequence[Pair], directions: dict[Pair, _Direction]
) -> tuple[Comparison, tuple[FleetFinding, ...]]:
    """Judge every direction: proven by KV transfers, by links alone, failed, or not shown by these files."""
    states = {pair: _state(directions[pair]) for pair in pairs}
    values = tuple(ComparisonValue(_subject(pair), states[pair]) for pair in pairs)
    findings = []
    for pair, state in states.items():
        if state not in ("not shown", "links only"):
            continue
        report = directions[pair].report or reports[0]
        if state == "links only":
            told = "no KV transfer out of GPU memory was measured"
        else:
            told = f"no measurement in these files; the file of {pair[1]} would hold it"
        findings.append(
            FleetFinding(
                rule="R-PD-008",
                file=report.file,
                path="$.sections",
                message=f"RDMA from {_subject(pair)} is not proven: {told}",
                severity="warning",
            )
        )
    outcome = "not_judged" if not pairs or set(states.values()) == {"not shown"} else "ok"
    if "failed" in states.values():
        outcome = "failed"
    elif outcome == "ok" and findings:
        outcome = "not_judged"
    return Comparison("rdma-reachability", "RDMA between hosts", outcome, values), tuple(findings)


def _state(direction: _Direction) -> str:
    pinned = [transfer for transfer in direction.transfers if transfer.pinned]
    if any(transfer.gb_s is None or transfer.verified is False for transfer in pinned):
        return "failed"
    if any(link.gb_s is None for link in direction.links):
        return "failed"
    if any("gpu" in transfer.label and transfer.proven for transfer in pinned):
        return "proven"
    if pinned or direction.links:
        return "links only"
    return "not shown"


def _rdma_against_tcp(
    pairs: Sequence[Pair], directions: dict[Pair, _Direction]
) -> tuple[Comparison, tuple[FleetFinding, ...]]:
    """Judge that the best RDMA transfer of a direction is really faster than TCP."""
    values, findings = [], []
    for pair in pairs:
        direction = directions[pair]
        rdma = [t for t in direction.transfers if t.pinned and t.gb_s is not None]
        tcp = [t for t in direction.transfers if t.label == "tcp" and t.gb_s is not None]
        if not rdma or not tcp or direction.report is None:
            continue
        best = max(rdma, key=lambda t: t.gb_s or 0)
        plain = max(t.gb_s or 0 for t in tcp)
        values.append(ComparisonValue(_subject(pair), f"RDMA {best.gb_s} GB/s, TCP {plain} GB/s"))
        if (best.gb_s or 0) < plain * LEAST_RDMA_TO_TCP:
            findings.append(
                FleetFinding(
                    rule="PRE-RDMA-LIKE-TCP",
                    file=direction.report.file,
                    path=f"{best.finding.path}.details.GB/s",
                    message=f"{_subject(pair)}: the best RDMA transfer moves {best.gb_s} GB/s, TCP {plain} GB/s: "
                    "less than three times as much",
                )
            )
    outcome = "not_judged" if not values else "failed" if findings else "ok"
    return Comparison("rdma-against-tcp", "RDMA beside TCP", outcome, tuple(values)), tuple(findings)


def _transfer_against_link(
    pairs: Sequence[Pair], directions: dict[Pair, _Direction]
) -> tuple[Comparison, tuple[FleetFinding, ...]]:
    """Judge each transfer from GPU memory against the median of the direction's links."""
    values, findings = [], []
    for pair in pairs:
        direction = directions[pair]
        rates = [link.gb_s for link in direction.links if link.gb_s is not None]
        moved = [t for t in direction.transfers if "gpu" in t.label and t.gb_s is not None]
        if not rates or not moved or direction.report is None:
            continue
        middle = median(rates)
        slowest = min(moved, key=lambda t: t.gb_s or 0)
        values.append(ComparisonValue(_subject(pair), f"slowest {slowest.gb_s} GB/s, link {middle} GB/s"))
        for transfer in moved:
            if (transfer.gb_s or 0) < middle * LEAST_SHARE_OF_LINK:
                findings.append(
                    FleetFinding(
                        rule="PRE-TRANSFER-SLOW",
                        file=direction.report.file,
                        path=f"{transfer.finding.path}.details.GB/s",
                        message=f"{transfer.finding.message} moves {transfer.gb_s} GB/s; the link carries {middle}",
                    )
                )
    outcome = "not_judged" if not values else "failed" if findings else "ok"
    return Comparison("transfer-against-link", "KV transfer beside the raw link", outcome, tuple(values)), tuple(
        findings
    )
