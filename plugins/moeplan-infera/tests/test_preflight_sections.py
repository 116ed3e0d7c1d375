"""Each section's rules: one value changed and the tool silent, then with the tool's own words beside it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from preflight_hosts import found, host, imported, tool_finding

Sections = dict[str, list[dict[str, Any]]]
Change = Callable[[Sections], None]


def details(section: str, number: int, **changed: Any) -> Change:
    """Return what changes details of one finding."""

    def change(sections: Sections) -> None:
        sections[section][number]["details"].update(changed)

    return change


def replaced(section: str, number: int, made: dict[str, Any]) -> Change:
    """Return what puts another finding in the place of one."""

    def change(sections: Sections) -> None:
        sections[section][number] = made

    return change


def cell(section: str, i: int, j: int, value: Any) -> Change:
    """Return what changes one cell of the section's matrix."""

    def change(sections: Sections) -> None:
        sections[section][0]["details"]["matrix"][i][j] = value

    return change


def test(number: int, **changed: Any) -> Change:
    """Return what changes one link."""

    def change(sections: Sections) -> None:
        sections["netperf"][0]["details"]["tests"][number].update(changed)

    return change


test.__test__ = False  # type: ignore[attr-defined]

WARN, FAIL = "warn", "fail"
# change; id and severity of the finding; the tool's level and words for it (cli.py, gpu/*.py, network/*.py of 5890f7f)
BROKEN: list[tuple[Change, str, str, str, str]] = [
    (details("host", 1, soft=8388608), "PRE-MEMLOCK", "warning", WARN,
     "memlock ulimit not unlimited (RDMA registration may fail)"),
    (details("gpu", 2, vram_gib=252.0), "PRE-GPU-MEMORY", "warning", WARN, "GPU VRAM differs across cards"),
    (details("gpu", 2, temp_c="55.0"), "PRE-GPU-HOT", "warning", WARN, "card1 temperature outlier"),
    (details("network", 1, devices={"ionic_0": {"netdev": "?", "state": "DOWN"}}), "PRE-RDMA-PORT", "warning", WARN,
     "some RDMA ports not ACTIVE"),
    (details("network", 0, rdma_devices=[]), "PRE-NO-RDMA", "warning", WARN, "no RDMA devices found"),
    (details("firmware", 1, p2pdma="Kernel P2PDMA support : False"), "R-CHO-006", "warning", WARN,
     "GPU-direct NOT engaged (silent CPU-bounce)"),
    (details("storage", 0, devices=[]), "PRE-NO-NVME", "warning", WARN, "no local NVMe detected"),
    (details("storage", 1, dev=None), "PRE-STORAGE-TARGET", "error", FAIL,
     "KV storage target is not local NVMe (KV cache would be slow)"),
    (details("hbm", 3, gb_s=3959.9), "PRE-GPU-SLOW", "warning", WARN, "gpu3 bandwidth outlier"),
    (cell("p2p", 1, 2, 53.9), "PRE-GPU-LINK", "warning", WARN, "gpu1->2 link slow"),
    (cell("p2p", 1, 2, None), "PRE-MEASURE-FAILED", "warning", WARN, "gpu1->2 P2P failed"),
    (cell("topology", 0, 2, "PCIE"), "PRE-GPU-TOPOLOGY", "warning", WARN, "gpu0-gpu2 link not xGMI"),
    (details("topology", 1, numa={"0": 0, "1": 0, "2": 0, "3": 1}), "PRE-GPU-TOPOLOGY", "warning", WARN,
     "GPU<->NUMA distribution imbalanced"),
    (test(1, gb_s=23.9), "PRE-LINK-SLOW", "warning", WARN, "netperf link slow: node-b nic0 -> node-a nic1"),
    (test(1, gb_s=None), "R-PD-008", "error", FAIL, "netperf: 3/4 links ok (as client)"),
]  # fmt: skip


IN_PLACE = ("PRE-MEMLOCK", "R-CHO-006", "PRE-NO-NVME", "PRE-STORAGE-TARGET")
"""Rules whose values the tool writes into the very finding that tells the level."""

WORDS_ALONE = ("PRE-NO-NVME", "PRE-STORAGE-TARGET")
"""Rules of which the tool writes words and no values, so that nothing can differ from them."""


def place(made: dict[str, Any]) -> tuple[str, int]:
    """Return section and number of the finding that is not the healthy host's."""
    healthy = host()["sections"]
    return next(
        (name, number)
        for name, findings in made["sections"].items()
        for number, finding in enumerate(findings)
        if finding != healthy[name][number]
    )


def changed(change: Change) -> dict[str, Any]:
    made = copy.deepcopy(host())
    change(made["sections"])
    return made


def of_one(made: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the findings on one host, without that the other direction is not shown."""
    return [one for one in found(imported(made)) if one != ("warning", "R-PD-008")]


def test_a_healthy_host_has_none() -> None:
    assert of_one(host()) == []


@pytest.mark.parametrize(("change", "rule", "severity", "level", "words"), BROKEN, ids=lambda value: str(value)[:40])
def test_a_value_that_the_tool_keeps_silent_about_is_found_and_said(
    change: Change, rule: str, severity: str, level: str, words: str
) -> None:
    assert of_one(changed(change)) == sorted([(severity, rule), (severity, "PRE-LEVEL-DIFFERS")])


@pytest.mark.parametrize(("change", "rule", "severity", "level", "words"), BROKEN, ids=lambda value: str(value)[:40])
def test_with_the_tools_own_words_it_is_found_once(
    change: Change, rule: str, severity: str, level: str, words: str
) -> None:
    made = changed(change)
    section, number = place(made)
    if rule in IN_PLACE:
        made["sections"][section][number] |= {"level": level, "message": words}
    else:
        made["sections"][section].append(tool_finding(level, words))
    assert of_one(made) == [(severity, rule)]


@pytest.mark.parametrize(
    ("change", "rule", "severity", "level", "words"),
    [row for row in BROKEN if row[1] not in WORDS_ALONE],
    ids=lambda value: str(value)[:40],
)
def test_what_the_tool_says_and_its_values_do_not_show_is_reported(
    change: Change, rule: str, severity: str, level: str, words: str
) -> None:
    made = copy.deepcopy(host())
    section, number = place(changed(change))
    if rule in IN_PLACE:
        made["sections"][section][number] |= {"level": level, "message": words}
    else:
        made["sections"][section].append(tool_finding(level, words))
    assert of_one(made) == [(severity, "PRE-REPORTED")]


@pytest.mark.parametrize(
    "change",
    [
        details("gpu", 2, temp_c="54.9"),  # 14.9 above the median of 40.0
        details("hbm", 3, gb_s=3960.0),  # 0.9 of the median of 4400.0, exactly
        cell("p2p", 1, 2, 54.0),  # 0.9 of 60.0
        test(1, gb_s=24.0),  # half of 48.0
        details("host", 1, soft=-1),
    ],
)
def test_a_value_at_its_limit_is_in_order(change: Change) -> None:
    assert of_one(changed(change)) == []


def test_floors_hold_for_mi355x_alone() -> None:
    made = copy.deepcopy(host())
    for finding in made["sections"]["compute"]:
        finding["details"]["tflops"] = 1299.9
    for i, row in enumerate(made["sections"]["p2p"][0]["details"]["matrix"]):
        row[:] = [None if i == j else 49.9 for j in range(len(row))]
    ids = [one for _, one in of_one(made)]
    assert ids.count("PRE-GPU-FLOOR") == 4
    assert ids.count("PRE-GPU-LINK") == 12
    made["sections"]["gpu"][0]["details"]["gfx"] = "gfx942"
    assert of_one(made) == []


def test_two_cards_have_no_median() -> None:
    made = changed(details("gpu", 2, temp_c="99.0"))
    del made["sections"]["gpu"][3:]
    assert of_one(made) == []


def test_an_old_driver_and_a_kernel_without_p2pdma_are_named() -> None:
    assert of_one(changed(details("gpu", 0, driver="6.12.12"))) == [("warning", "R-CHO-006")]
    assert of_one(changed(details("gpu", 0, driver="6.20"))) == []
    assert of_one(changed(details("firmware", 2, value="n"))) == [("warning", "R-CHO-006")]
    assert of_one(changed(details("firmware", 2, value="unknown"))) == []


@pytest.mark.parametrize(
    ("section", "says", "level", "wanted"),
    [
        ("compute", "GPU compute check skipped (torch unavailable: No module named 'torch')", "info", "warning"),
        ("hbm", "HBM bandwidth check skipped (no visible GPU)", "info", "warning"),
        ("topology", "rocm-smi not found; topology check skipped", "info", "warning"),
        ("storage", "storage throughput test skipped (STORAGE_GB=0)", "info", "info"),
        ("netperf", "netperf skipped (single node)", "info", "info"),
        ("netperf", "netperf: not all nodes exchanged RDMA info", "warn", "warning"),
        ("mooncake", "mooncake skipped (single node)", "info", "info"),
        ("mooncake", "mooncake skipped (python bindings not importable)", "warn", "warning"),
        ("mori", "mori: no initiator role for this node", "info", "info"),
    ],
)
def test_what_was_skipped_is_not_judged_and_said(section: str, says: str, level: str, wanted: str) -> None:
    made = copy.deepcopy(host())
    made["sections"][section] = [tool_finding(level, says)]
    assert (wanted, "PRE-SKIPPED") in of_one(made)
    (one,) = imported(made).hosts
    assert {part.name: part.found for part in one.sections}[section] == "not_judged"


def test_netperf_without_perftest_is_the_fact_and_no_warning() -> None:
    made = copy.deepcopy(host())
    made["sections"]["netperf"] = [tool_finding("warn", "netperf skipped (no ib_write_bw or RDMA device)")]
    assert of_one(made) == [("info", "R-PD-011")]


def test_a_crashed_probe_is_an_error() -> None:
    made = copy.deepcopy(host())
    made["sections"]["p2p"] = [tool_finding("fail", "p2p probe crashed", error="boom")]
    assert of_one(made) == [("error", "PRE-CRASHED")]


def test_an_unknown_probe_is_shown_as_such_and_its_level_is_kept() -> None:
    made = copy.deepcopy(host())
    made["sections"]["quantum"] = [tool_finding("info", "all well"), tool_finding("fail", "qubit lost", qubit=3)]
    assert of_one(made) == [("error", "PRE-REPORTED"), ("info", "PRE-UNKNOWN-PROBE")]
    (one,) = imported(made).hosts
    assert [(part.claimed, part.found) for part in one.sections if part.name == "quantum"] == [("error", "not_judged")]


ROW = "node-b -> node-a rdma-gpu0"


@pytest.mark.parametrize(
    ("level", "row", "rule"),
    [
        ("fail", {"reason": "register_failed: register errno 14 (EFAULT: Bad address)"}, "R-LOG-007"),
        ("fail", {"reason": "worker_crashed (SIGSEGV): register errno 12 (ENOMEM: no memory)"}, "R-LOG-007"),
        ("fail", {"reason": "register_failed: register errno 22 (EINVAL: Invalid argument)"}, "R-PD-008"),
        ("fail", {"reason": "unreachable"}, "R-PD-008"),
        ("fail", {"GB/s": 46.0, "verified": False, "reason": "data mismatch after transfer"}, "PRE-DATA-MISMATCH"),
        ("fail", {"GB/s": 46.0, "verified": None, "reason": "transfer completed without data verification"},
         "PRE-UNVERIFIED"),
    ],
)  # fmt: skip
def test_a_mooncake_row_that_is_not_proven_is_an_error(level: str, row: dict[str, Any], rule: str) -> None:
    assert of_one(changed(replaced("mooncake", 3, tool_finding(level, ROW, **row)))) == [("error", rule)]
    silent = of_one(changed(replaced("mooncake", 3, tool_finding("info", ROW, **row))))
    assert silent == sorted([("error", rule), ("error", "PRE-LEVEL-DIFFERS")])


def test_tcp_that_fails_is_an_error_and_the_default_row_is_expected_to() -> None:
    tcp = tool_finding("fail", "node-b -> node-a tcp", reason="unreachable")
    assert of_one(changed(replaced("mooncake", 2, tcp))) == [("error", "PRE-TCP-FAILED")]
    moved = tool_finding("info", "node-b -> node-a rdma-default", **{"GB/s": 20.0}, verified=True)
    assert imported(changed(replaced("mooncake", 1, moved))).findings[-1].id == "R-PD-008"


def test_a_mori_row_that_was_not_compared_is_no_proof() -> None:
    row = tool_finding("info", "node-b -> node-a rdma/gpu0", **{"GB/s": 40.0}, verified=None)
    assert of_one(changed(replaced("mori", 0, row))) == [("warning", "PRE-UNVERIFIED")]
    row = tool_finding("fail", "node-b -> node-a rdma/gpu0", **{"GB/s": 40.0}, verified=False, reason="data mismatch")
    assert of_one(changed(replaced("mori", 0, row))) == [("error", "PRE-DATA-MISMATCH")]
