"""Files that are not what the tool writes are refused by name; the contract of the library's hooks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from moeplan_infera.facts import infera_facts
from moeplan_infera.preflight import hooks
from moeplan_infera.preflight.rules import SHARED_IDS, preflight_facts, statement
from preflight_hosts import host, imported, read, text

from moeplan.errors import InputError, Issue
from moeplan.model.preflight import ImportFile, ImportRequest


def refusal(*texts: str) -> Issue:
    with pytest.raises(InputError) as caught:
        read(*texts)
    return caught.value.issues[0]


def made(change: Callable[[dict[str, Any]], object]) -> str:
    value: dict[str, Any] = json.loads(text(host()))
    change(value)
    return text(value)


@pytest.mark.parametrize(
    ("content", "path", "code"),
    [
        ("", "0.json: $", "invalid_json"),
        ("{", "0.json: $", "invalid_json"),
        ('{"host": NaN}', "0.json: $", "invalid_json"),
        ("[" * 100_000, "0.json: $", "invalid_json"),
        ('{"host": "a", "host": "b"}', "0.json: $", "duplicate_key"),
        ("[]", "0.json: $", "not_infera_preflight"),
        ('{"rank": 0, "host": "a", "mgmt_ip": "192.0.2.1"}', "0.json: $", "not_infera_preflight"),
    ],
)
def test_text_that_is_no_hosts_file(content: str, path: str, code: str) -> None:
    issue = refusal(content)
    assert (issue.path, issue.code) == (path, code)
    assert issue.next is not None
    assert "<host>.json" in issue.next


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda v: v.update(host=""), "$.host"),
        (lambda v: v.update(host="a\x1b[31m"), "$.host"),
        (lambda v: v.update(generated="2026-08-20T09:14:05Z"), "$.generated"),
        (lambda v: v.update(sections=[]), "$.sections"),
        (lambda v: v["sections"].update({"GPU!": []}), "$.sections"),
        (lambda v: v["sections"].update(gpu={}), "$.sections.gpu"),
        (lambda v: v["sections"]["gpu"][0].update(level="error"), "$.sections.gpu[0].level"),
        (lambda v: v["sections"]["gpu"][0].update(message=None), "$.sections.gpu[0].message"),
        (lambda v: v["sections"]["gpu"][0].update(details=[]), "$.sections.gpu[0].details"),
        (lambda v: v["sections"]["gpu"][0].pop("details"), "$.sections.gpu[0]"),
        (lambda v: v["sections"]["gpu"][0].update(extra=1), "$.sections.gpu[0]"),
        (lambda v: v["sections"]["gpu"][0]["details"].update(gpu_count="8"), "$.sections.gpu[0].details.gpu_count"),
        (lambda v: v["sections"]["compute"][1]["details"].update(tflops=True), "$.sections.compute[1].details.tflops"),
        (lambda v: v["sections"]["hbm"][1]["details"].update(gb_s=10**40), "$.sections.hbm[1].details.gb_s"),
        (lambda v: v["sections"]["p2p"][0]["details"].update(matrix=[[1], [2, 3]]), "$.sections.p2p[0].details.matrix"),
        (lambda v: v["sections"]["netperf"][0]["details"]["tests"][1].update(s_nic=-1),
         "$.sections.netperf[0].details.tests[1].s_nic"),
        (lambda v: v["sections"]["mooncake"][0]["details"].update(verified="yes"),
         "$.sections.mooncake[0].details.verified"),
        (lambda v: v["sections"]["fabric"][0]["details"].update(devices={"ionic_0": 7}),
         "$.sections.fabric[0].details.devices"),
    ],
)  # fmt: skip
def test_a_value_that_the_tool_does_not_write_is_named(change: Callable[[dict[str, Any]], object], path: str) -> None:
    issue = refusal(made(change))
    assert issue.path.startswith(f"0.json: {path}")
    assert issue.code == "not_infera_preflight"
    assert str(issue).isprintable()


def test_every_bad_file_is_named_and_none_is_read() -> None:
    with pytest.raises(InputError) as caught:
        read(text(host()), "{", "[]")
    assert [issue.path for issue in caught.value.issues] == ["1.json: $", "2.json: $"]


def test_two_files_of_one_host_are_refused() -> None:
    issue = refusal(text(host()), text(host()))
    assert (issue.path, issue.code, issue.got) == ("1.json: $.host", "host_repeated", "also 0.json")


def test_hostile_text_is_escaped() -> None:
    changed = made(lambda v: v["sections"]["gpu"].append({"level": "fail", "message": "\x1b[2J\u202e", "details": {}}))
    (finding,) = [one for one in read(changed).findings if one.id == "PRE-REPORTED"]
    assert finding.message.isprintable()
    assert "\\x1b[2J" in finding.message


def test_another_format_is_refused() -> None:
    with pytest.raises(InputError, match="not a format of this plugin"):
        hooks.import_files(ImportRequest("other", (ImportFile("a", "{}"),)), {})


def test_hosts_and_findings_do_not_depend_on_the_order_of_files() -> None:
    first, second = host("node-a", "node-b", 1), host("node-b", "node-a", 2)
    one, other = imported(first, second), imported(second, first)
    assert [item.host for item in one.hosts] == [item.host for item in other.hosts] == ["node-a", "node-b"]
    assert [(row.host, row.item, row.value) for row in one.rows] == [
        (row.host, row.item, row.value) for row in other.rows
    ]
    assert one.comparisons == other.comparisons


def test_every_id_that_is_reported_is_declared_with_sources() -> None:
    declared = {rule.id for rule in hooks.rules()}
    assert all(name.startswith("PRE-") for name in declared)
    assert {rule.origin for rule in hooks.rules()} == {hooks.importers()[0].origin} == {"moeplan-infera"}
    assert not declared & {fact.id for fact in infera_facts().facts}
    assert all(fact.kind == "preflight" for fact in preflight_facts().facts)
    assert {statement(one).id for one in SHARED_IDS} == set(SHARED_IDS)


def test_checks_of_the_operator_have_what_a_guide_needs() -> None:
    checks = hooks.checks(["opt/aggregated", "opt/disaggregated"])
    assert [check.id for check in checks][:2] == ["operator", "free-accelerators"]
    assert len({check.id for check in checks}) == len(checks)
    for check in checks:
        assert check.commands
        assert set(check.profiles) <= {"opt/aggregated", "opt/disaggregated"}
        assert all(attrs.astuple(source)[0] for source in check.sources)


def test_checks_of_other_profiles_are_left_out() -> None:
    names = {check.id for check in hooks.checks(["opt/aggregated"])}
    assert "preflight-node" in names
    assert not names & {"preflight-fleet", "registration-mode", "gpu-direct"}
    assert {"preflight-fleet", "registration-mode"} <= {check.id for check in hooks.checks(["stock/disaggregated"])}


def test_every_id_is_on_the_page_with_its_severity_and_title() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "preflight.md"
    told = re.findall(r"^\| `(PRE-[A-Z-]+)` \| (\w+) \| (.*) \|$", page.read_text("utf-8"), re.MULTILINE)
    assert told == [(fact.id, fact.severity, fact.title) for fact in preflight_facts().facts]
