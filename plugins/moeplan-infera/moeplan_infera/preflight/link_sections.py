"""What crosses nodes: fabric, link bandwidth, and KV transfers by Mooncake and Mori, judged from their raw values.

Source: ``infera/tools/preflight/network`` at 5890f7f: ``fabric.py``, ``netperf.py``, ``mooncakeperf.py``,
``moriperf.py``; thresholds as named there. A Mooncake transfer whose data was not verified counts as failed, as later
revisions of the tool have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import escape
from moeplan_infera.preflight.judgement import Judgement, passed, skipped
from moeplan_infera.preflight.numbers import median
from moeplan_infera.preflight.tool_file import HostReport, Malformed, Number, ToolFinding, as_number, as_object

__all__ = [
    "Link",
    "Transfer",
    "judge_fabric",
    "judge_mooncake",
    "judge_mori",
    "judge_netperf",
    "links_of",
    "transfers_of",
]

SLOW_SHARE = Decimal("0.5")
"""Below this share of the client's median a link is slow. Source: ``netperf.py`` ``_SLOW_FRAC``."""
LEAST_LINKS = 4
"""From how many links on a median says something. Source: ``netperf.py`` ``_slow_link_findings``."""
_ROW = re.compile(r"(\S{1,200}) -> (\S{1,200}) (rdma|rdma-default|tcp|rdma-gpu\d{1,4}|rdma/cpu|rdma/gpu\d{1,4})")
_ERRNO = re.compile(r"register errno (\d{1,3})\b")
_PIN_ERRNOS = ("12", "14")
"""ENOMEM and EFAULT, the two that registration is known to fail with. Source: ``netperf.py`` ``_parse_rdma_errno``."""


@attrs.frozen
class Link:
    """One link of the matrix: the client's NIC to the server's, GB/s; None where there was no result."""

    server: str
    server_nic: int
    client: str
    client_nic: int
    gb_s: Number | None
    path: str

    @property
    def name(self) -> str:
        """The link in the tool's words."""
        return f"{self.server} nic{self.server_nic} -> {self.client} nic{self.client_nic}"


@attrs.frozen
class Transfer:
    """One transfer between two hosts: from where, to where, by which variant; ``gb_s`` is None where it failed."""

    source: str
    target: str
    label: str
    gb_s: Number | None
    verified: bool | None
    reason: str | None
    finding: ToolFinding

    @property
    def pinned(self) -> bool:
        """Whether it is RDMA as a deployment uses it: with the GID named, or Mori's."""
        return self.label not in ("tcp", "rdma-default")

    @property
    def proven(self) -> bool:
        """Whether data arrived and was compared."""
        return self.gb_s is not None and self.verified is True


def links_of(findings: tuple[ToolFinding, ...]) -> Iterator[Link]:
    """Yield every link of a ``netperf`` section."""
    for finding in findings:
        for number, test in enumerate(finding.listed("tests")):
            at = f"{finding.path}.details.tests[{number}]"
            values = as_object(test, at)
            names = [_name(values.get(key), f"{at}.{key}") for key in ("server", "client")]
            nics = [_nic(values.get(key), f"{at}.{key}") for key in ("s_nic", "c_nic")]
            rate = as_number(values.get("gb_s"), f"{at}.gb_s")
            yield Link(names[0], nics[0], names[1], nics[1], rate, at)


def transfers_of(findings: tuple[ToolFinding, ...]) -> Iterator[Transfer]:
    """Yield every transfer of a ``mooncake`` or ``mori`` section."""
    for finding in findings:
        match = _ROW.fullmatch(finding.message)
        if match is None:
            continue
        verified = finding.details.get("verified")
        if verified is not None and type(verified) is not bool:
            raise Malformed(f"{finding.path}.details.verified", "value of the wrong type", "true or false", verified)
        rate = finding.number("GB/s")
        yield Transfer(match[1], match[2], match[3], rate, verified, finding.text("reason"), finding)


def _name(value: Any, path: str) -> str:
    if type(value) is not str or not 1 <= len(value) <= 200 or not value.isprintable():
        raise Malformed(path, "value refused", "a host's name", value)
    return value


def _nic(value: Any, path: str) -> int:
    if type(value) is not int or not 0 <= value < 1000:
        raise Malformed(path, "value refused", "the number of a NIC", value)
    return value


def judge_fabric(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge that a NIC has an address that other nodes can reach."""
    for finding in findings:
        if finding.message == "no RDMA devices found":
            message = "the host shows no RDMA device"
            yield Judgement(says=finding.message, level="warn", path=finding.path, rule="PRE-NO-RDMA", message=message)
        if finding.message != "RDMA fabric":
            continue
        yield passed(finding)
        devices = finding.mapping("devices")
        entries = [as_object(entry, f"{finding.path}.details.devices") for entry in devices.values()]
        if not any(entry.get("subnets") for entry in entries):
            yield Judgement(
                says="no RDMA NIC has a routable address (only link-local)",
                level="warn",
                path=f"{finding.path}.details.devices",
                rule="PRE-NO-ROUTE",
                message="no RDMA NIC of the host has an address beyond its own link",
            )


def judge_netperf(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge that every link has a result and none is far below the others."""
    for finding in findings:
        if finding.message == "netperf skipped (no ib_write_bw or RDMA device)":
            message = "link bandwidth was not measured: perftest (ib_write_bw) or an RDMA device is missing"
            yield Judgement(says=finding.message, level="skipped", path=finding.path, rule="R-PD-011", message=message)
        elif finding.message in ("netperf skipped (single node)", "netperf: no client role for this node"):
            yield skipped(finding, wanted=False)
        elif finding.message == "netperf: not all nodes exchanged RDMA info":
            yield skipped(finding)
        elif "tests" in finding.details:
            yield from _links(finding)


def _links(finding: ToolFinding) -> Iterator[Judgement]:
    links = list(links_of((finding,)))
    lost = [link for link in links if link.gb_s is None]
    says = f"netperf: {len(links) - len(lost)}/{len(links)} links ok (as client)"
    if lost:
        own = sum(link.server_nic == link.client_nic for link in lost)
        shown = "; ".join(link.name for link in lost[:4]) + ("; …" if len(lost) > 4 else "")
        yield Judgement(
            says=says,
            level="fail",
            path=lost[0].path,
            rule="R-PD-008",
            message=f"{len(lost)} of {len(links)} RDMA links gave no result, {own} of them between NICs of one number: "
            + shown,
        )
    elif links:
        yield Judgement(says=says, level="info", path=finding.path)
    known = [link for link in links if link.gb_s is not None]
    middle = median([link.gb_s for link in known if link.gb_s is not None]) if len(known) >= LEAST_LINKS else None
    for link in known if middle else ():
        if link.gb_s is not None and middle is not None and link.gb_s < middle * SLOW_SHARE:
            yield Judgement(
                says=f"netperf link slow: {link.name}",
                level="warn",
                path=f"{link.path}.gb_s",
                rule="PRE-LINK-SLOW",
                message=f"{link.name} moves {link.gb_s} GB/s; the median of the client is {middle}",
            )


def judge_mooncake(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge each Mooncake transfer."""
    yield from _skips(findings, "mooncake")
    for transfer in transfers_of(findings):
        if transfer.proven:
            yield passed(transfer.finding)
        elif transfer.label == "rdma-default" and transfer.gb_s is None:
            yield Judgement(
                says=transfer.finding.message,
                level="warn",
                path=transfer.finding.path,
                rule="PRE-GID-UNNAMED",
                message=f"{transfer.finding.message}: fails while MC_GID_INDEX is not set, which is to be expected",
            )
        else:
            yield _transfer_failed(transfer)


def judge_mori(report: HostReport, findings: tuple[ToolFinding, ...]) -> Iterator[Judgement]:
    """Judge each Mori transfer; one that was not compared is no failure of the tool's, and no proof."""
    yield from _skips(findings, "mori")
    for transfer in transfers_of(findings):
        if transfer.gb_s is None or transfer.verified is False:
            yield _transfer_failed(transfer)
            continue
        yield passed(transfer.finding)
        if transfer.verified is None:
            message = f"{transfer.finding.message}: the data that arrived was not compared"
            yield Judgement(
                says="unverified", level="own", path=transfer.finding.path, rule="PRE-UNVERIFIED", message=message
            )


def _transfer_failed(transfer: Transfer) -> Judgement:
    reason = transfer.reason or ("not verified" if transfer.gb_s is not None else "unreachable")
    errno = _ERRNO.search(reason)
    if errno is not None and errno[1] in _PIN_ERRNOS:
        rule = "R-LOG-007"
    elif transfer.gb_s is not None:
        rule = "PRE-DATA-MISMATCH" if transfer.verified is False else "PRE-UNVERIFIED"
    else:
        rule = "R-PD-008" if transfer.pinned else "PRE-TCP-FAILED"
    return Judgement(
        says=transfer.finding.message,
        level="fail",
        path=transfer.finding.path,
        rule=rule,
        message=f"{transfer.finding.message}: {escape(reason, 400)}",
        severity="error",
    )


def _skips(findings: tuple[ToolFinding, ...], section: str) -> Iterator[Judgement]:
    for finding in findings:
        if finding.message.startswith(f"{section} skipped"):
            yield skipped(finding, wanted="single node" not in finding.message)
        elif finding.message == f"{section}: no initiator role for this node":
            yield skipped(finding, wanted=False)
