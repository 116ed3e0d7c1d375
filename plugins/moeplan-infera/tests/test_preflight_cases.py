"""The handed cases: what the tool itself says of them is the second source for the levels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from preflight_hosts import read

CASES = Path(__file__).resolve().parents[4] / "shared" / "cases"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CASES.exists(), reason="the handed cases do not lie beside the repository"),
]

LEVELS = {"info": "ok", "warn": "warning", "fail": "error"}


def case(name: str) -> str:
    return (CASES / f"preflight_example_{name}.json").read_text("utf-8")


@pytest.mark.parametrize("name", ["ok", "bad"])
def test_every_section_gets_the_level_that_the_tool_gave_it(name: str) -> None:
    (host,) = read(case(name)).hosts
    sections = json.loads(case(name))["sections"]
    wanted = {key: max((LEVELS[one["level"]] for one in findings), key=["ok", "warning", "error"].index)
              for key, findings in sections.items()}  # fmt: skip
    assert {section.name: section.found for section in host.sections} == wanted
    assert {section.name: section.claimed for section in host.sections} == wanted


@pytest.mark.parametrize("name", ["ok", "bad"])
def test_nothing_the_tool_says_is_left_unexplained_and_nothing_is_added_to_it(name: str) -> None:
    ids = {finding.id for finding in read(case(name)).findings}
    assert not ids & {"PRE-LEVEL-DIFFERS", "PRE-REPORTED", "PRE-UNKNOWN-PROBE"}


def test_the_good_host_has_no_error_and_lacks_only_the_other_direction() -> None:
    result = read(case("ok"))
    assert [(one.severity, one.id) for one in result.findings] == [("info", "PRE-GID-UNNAMED"), ("warning", "R-PD-008")]
    (reached,) = [one for one in result.comparisons if one.id == "rdma-reachability"]
    assert {(one.subject, one.value) for one in reached.values} == {
        ("node-a -> node-b", "not shown"),
        ("node-b -> node-a", "proven"),
    }


def test_the_bad_host_has_each_of_its_faults_at_its_place() -> None:
    places = {(one.severity, one.id, one.path) for one in read(case("bad")).findings}
    assert places == {
        ("warning", "PRE-MEMLOCK", "$.sections.host[2].details.soft"),
        ("warning", "PRE-RDMA-PORT", "$.sections.network[1].details.devices"),
        ("warning", "PRE-NO-NVME", "$.sections.storage[0]"),
        ("error", "PRE-STORAGE-TARGET", "$.sections.storage[1]"),
        ("warning", "PRE-GPU-SLOW", "$.sections.compute[5].details.tflops"),
        ("warning", "PRE-GPU-FLOOR", "$.sections.compute[5].details.tflops"),
        ("error", "R-PD-008", "$.sections.netperf[0].details.tests[3]"),
        ("error", "R-LOG-007", "$.sections.mooncake[3]"),
        ("info", "PRE-GID-UNNAMED", "$.sections.mooncake[1]"),
        ("warning", "R-PD-008", "$.sections"),
    }


def test_rows_are_the_raw_values_in_whole_units() -> None:
    rows = {(row.probe, row.item, row.metric): row for row in read(case("bad")).rows}
    # 2 of memory and memlock, 1 + 16 of GPUs, 1 firmware, 8 ports, 8 MTU, 8 GEMM, 8 HBM, 56 pairs, 64 links, 2 failed
    # and 3 verified transfers of Mooncake with two rows each, 1 of Mori with two: counted in the file by hand.
    assert len(read(case("bad")).rows) == 3 + 17 + 1 + 8 + 8 + 8 + 8 + 56 + 64 + 2 + 3 * 2 + 2
    gemm = rows["compute", "gpu5", "gemm"]
    assert (gemm.value, gemm.unit, gemm.state) == (1_180_200_000_000_000, "flop_per_second", "measured")
    assert rows["gpu", "card0", "memory"].value == 288 * 1024**3
    assert rows["gpu", "card7", "temperature"].value == 51_000
    lost = rows["netperf", "node-b nic3 -> node-a nic3", "bandwidth"]
    assert (lost.value, lost.state) == (0, "failed")
    assert rows["mooncake", "node-b -> node-a rdma-gpu1", "bandwidth"].value == 46_700_000_000
    assert rows["network", "ionic_3", "port_active"].value == 0
    assert rows["host", "host", "memlock_unlimited"].value == 0
