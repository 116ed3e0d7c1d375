"""Hosts side by side: majority, rails, times, both directions, RDMA beside TCP and beside the link, the site."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from moeplan_infera.preflight.fleet import odd_ones
from preflight_hosts import found, host, imported

from moeplan.model.preflight import Comparison, Imported


def pair() -> tuple[dict[str, Any], dict[str, Any]]:
    return copy.deepcopy(host("node-a", "node-b", 1)), copy.deepcopy(host("node-b", "node-a", 2))


def comparison(result: Imported, name: str) -> Comparison:
    return next(one for one in result.comparisons if one.id == name)


def test_two_healthy_hosts_agree_and_reach_each_other() -> None:
    result = imported(*pair())
    assert found(result) == []
    outcomes = {one.id: one.outcome for one in result.comparisons}
    assert set(outcomes.values()) == {"same", "ok"}
    reached = comparison(result, "rdma-reachability")
    assert [(one.subject, one.value) for one in reached.values] == [
        ("node-a -> node-b", "proven"),
        ("node-b -> node-a", "proven"),
    ]


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        ({"a": "1", "b": "1"}, set()),
        ({"a": "1", "b": "2"}, {"a", "b"}),
        ({"a": "1", "b": "1", "c": "2"}, {"c"}),
        ({"a": "1", "b": "1", "c": "2", "d": "2"}, {"a", "b", "c", "d"}),
        ({"a": "1", "b": "1", "c": "2", "d": "2", "e": "3"}, {"e"}),
        ({"a": "1"}, set()),
    ],
)
def test_majority_is_the_tools(values: dict[str, str], odd: set[str]) -> None:
    """Worked out by hand from cli.py, _flag_version_mismatch: tied counts flag all, else those below the greatest."""
    assert odd_ones(values) == odd


@pytest.mark.parametrize(
    ("section", "number", "changed", "name", "rule", "severity"),
    [
        ("firmware", 0, {"mec": 176}, "mec-firmware", "PRE-FLEET-VERSION", "warning"),
        ("gpu", 0, {"driver": "6.17.0"}, "gpu-driver", "PRE-FLEET-VERSION", "warning"),
        ("gpu", 0, {"gfx": "gfx942"}, "gpu-gfx", "PRE-FLEET-GPU", "warning"),
        ("gpu", 0, {"gpu_count": 3}, "gpu-count", "PRE-FLEET-GPU", "warning"),
        ("network", 0, {"rdma_devices": ["ionic_0"]}, "rdma-devices", "PRE-FLEET-RDMA", "warning"),
        ("mooncake", 0, {"env": "MC_GID_INDEX=3"}, "gid-index", "PRE-FLEET-RDMA", "warning"),
    ],
)
def test_a_value_that_differs_is_told_of_both_hosts(
    section: str, number: int, changed: dict[str, Any], name: str, rule: str, severity: str
) -> None:
    first, second = pair()
    second["sections"][section][number]["details"].update(changed)
    result = imported(first, second)
    assert found(result) == [(severity, rule)] * 2
    assert {one.file for one in result.findings if one.id == rule} == {"0.json", "1.json"}
    assert comparison(result, name).outcome == "differs"


def test_of_three_hosts_the_odd_one_is_told() -> None:
    made = [copy.deepcopy(host(name, "x")) for name in ("a", "b", "c")]
    made[2]["sections"]["firmware"][0]["details"]["mec"] = 176
    odd = [one for one in imported(*made).findings if one.id == "PRE-FLEET-VERSION"]
    assert [one.file for one in odd] == ["2.json"]
    assert "MEC firmware of c is 176; among the hosts: 176 on 1, 182 on 2" in odd[0].message


@pytest.mark.parametrize(
    ("key", "value", "rule", "severity"),
    [
        ("mtu", "1024", "PRE-FLEET-MTU", "warning"),
        ("gid_v2", "fe80:0000:0000:0000:0000:0000:0000:0002", "PRE-FLEET-GID", "warning"),
        ("gid_v2", "0000:0000:0000:0000:0000:ffff:c000:0202", "PRE-FLEET-GID", "warning"),
        ("gid_v2", "fd00:0000:0000:001a:0000:0000:0000:0002", "PRE-FLEET-RAIL", "info"),
    ],
)
def test_devices_of_one_name_are_compared(key: str, value: str, rule: str, severity: str) -> None:
    first, second = pair()
    second["sections"]["fabric"][0]["details"]["devices"]["ionic_0"][key] = value
    result = imported(first, second)
    assert found(result) == [(severity, rule)] * 2
    assert all("ionic_0" in one.message for one in result.findings if one.id == rule)


@pytest.mark.parametrize(("written", "rules"), [("2026-08-20 09:19:05", []), ("2026-08-20 09:19:06", ["node-a"])])
def test_a_file_of_an_earlier_run_is_told(written: str, rules: list[str]) -> None:
    first, second = pair()
    second["generated"] = written  # 300 s later, and 301 s
    old = [one for one in imported(first, second).findings if one.id == "PRE-FLEET-TIME"]
    assert [one.message.split()[3] for one in old] == rules


def test_another_image_is_told_and_unknown_is_no_image() -> None:
    first, second = pair()
    second["image"] = "other@sha256:" + "2" * 64
    assert found(imported(first, second)) == [("warning", "PRE-FLEET-IMAGE")] * 2
    second["image"] = "unknown"
    assert comparison(imported(first, second), "image").outcome == "not_judged"


def test_a_direction_that_no_file_shows_is_not_proven() -> None:
    first, _ = pair()
    result = imported(first)
    assert found(result) == [("warning", "R-PD-008")]
    assert comparison(result, "rdma-reachability").outcome == "not_judged"
    assert "node-a -> node-b" in result.findings[-1].message


def test_links_alone_prove_no_transfer() -> None:
    first, second = pair()
    for made in (first, second):
        del made["sections"]["mooncake"], made["sections"]["mori"]
    result = imported(first, second)
    assert found(result) == [("warning", "R-PD-008")] * 2
    assert {one.value for one in comparison(result, "rdma-reachability").values} == {"links only"}


def test_a_transfer_that_fails_in_one_direction_fails_the_comparison() -> None:
    first, second = pair()
    row = second["sections"]["mooncake"][3]
    row["level"], row["details"] = "fail", {"reason": "unreachable"}
    result = imported(first, second)
    assert found(result) == [("error", "R-PD-008")]
    reached = comparison(result, "rdma-reachability")
    assert reached.outcome == "failed"
    assert {one.subject: one.value for one in reached.values} == {
        "node-a -> node-b": "failed",
        "node-b -> node-a": "proven",
    }


@pytest.mark.parametrize(("tcp", "findings"), [(15.3, []), (15.4, [("error", "PRE-RDMA-LIKE-TCP")])])
def test_rdma_that_is_not_three_times_tcp_is_an_error(tcp: float, findings: list[tuple[str, str]]) -> None:
    first, second = pair()
    first["sections"]["mooncake"][2]["details"]["GB/s"] = tcp  # the best RDMA row moves 46.0: 3 * 15.3 = 45.9
    assert found(imported(first, second)) == findings


@pytest.mark.parametrize(("rate", "findings"), [(24.0, []), (23.9, [("warning", "PRE-TRANSFER-SLOW")])])
def test_a_transfer_from_gpu_memory_below_half_of_the_link_is_told(
    rate: float, findings: list[tuple[str, str]]
) -> None:
    first, second = pair()
    first["sections"]["mooncake"][3]["details"]["GB/s"] = rate  # the links carry 48.0
    assert found(imported(first, second)) == findings


SITE: dict[str, Any] = {
    "hardware": "mi355x",
    "acceleratorsPerNode": 4,
    "driver": "6.16.6",
    "nodes": [{"name": "node-a", "rdmaDevices": ["ionic_0", "ionic_1"], "gidIndex": 1}, {"name": "node-b"}],
}


def test_a_site_that_says_the_same_changes_nothing() -> None:
    assert found(imported(*pair(), site=SITE)) == []
    assert found(imported(*pair(), site={"nodes": 2, "network": {"gidIndex": 1}})) == []


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({"hardware": "mi300x"}, 2),
        ({"acceleratorsPerNode": 8}, 2),
        ({"driver": "6.14.0"}, 2),
        ({"nodes": 3}, 1),
        ({"nodes": ["node-a", "node-c"]}, 1),
        ({"nodes": [{"name": "node-a", "driver": "7.0"}, {"name": "node-b"}]}, 1),
        ({"nodes": [{"name": "node-a", "gidIndex": 3}, {"name": "node-b"}]}, 1),
        ({"nodes": [{"name": "node-a", "rdmaDevices": ["ionic_7"]}, {"name": "node-b"}]}, 1),
    ],
)
def test_a_host_that_is_not_what_the_site_says_is_told(changed: dict[str, Any], count: int) -> None:
    assert found(imported(*pair(), site=SITE | changed)) == [("warning", "PRE-SITE")] * count
