"""``check`` and ``plan --site`` with plugins: the report, what the core compares, criteria that enter a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.auditing.rebuild import _core_of
from moeplan.catalogue.registries import load_registry
from moeplan.cli.main import main
from moeplan.errors import InputError, PluginError
from moeplan.model.compatibility import CompatibilityReport
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Plan, Scenario
from moeplan.planning.builder import plan as make_plan
from moeplan.wire.documents import dump_document, identify, load_document
from moeplan.workflows.check import check
from moeplan.workflows.plan_on_site import plan_on_site
from tests.hooks.plugins import add_plugin, hook

CHECKS = hook("moeplan_check(plan, site)", "return (finding(file='site', line=None),) if site.get('driver') else ()")
PLACES = """
from moeplan.model.placement import *

def figure(value, certainty="calculated"):
    return Figure(value, certainty, "so it is", SOURCE)

@hookimpl
def moeplan_placement(plan, site):
    f = figure(1000)
    return Placement((RolePlacement(role="serve", ranks=8, weight_bytes=f, draft_bytes=figure(None, "unknown"),
        device_bytes=f, budget_bytes=f, kv_bytes_per_token=f, kv_tokens=f, concurrent_requests=figure(3)),))
"""
OFFERS = hook("moeplan_criteria(plan, site)", "return (offer('alpha.quick_start'),)")
DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def wide() -> Plan:
    return make_plan(load_registry(), Scenario("kimi-k3", "h200", 16))


def ids(report: CompatibilityReport) -> list[tuple[str, str | None]]:
    return [(finding.id, finding.file) for finding in report.findings]


def test_report_has_the_plugins_findings_and_placement(installed: Path, wide: Plan) -> None:
    add_plugin(installed, "alpha", CHECKS + PLACES, vendor="nvidia")
    add_plugin(installed, "beta", CHECKS, vendor="amd", distribution="beta-dist")
    report = check(wide, {"driver": "580"})
    assert report.plugin.name == "alpha", "the vendor of the plan's accelerators decides"
    assert ids(report) == [("T-1", "site")]
    assert report.findings[0].plugin == "alpha"
    assert report.placement is not None
    assert report.placement.roles[0].concurrent_requests.value == 3
    assert report.plan == identify(wide)
    assert load_document(dump_document(report), CompatibilityReport) == report
    assert check(wide, {"runtime": "beta"}).plugin.name == "beta"


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        ({"hardware": "h200", "acceleratorsPerNode": 8, "nodes": 2}, []),
        ({"hardware": "mi355x"}, [("SITE-HARDWARE", "site")]),
        ({"acceleratorsPerNode": 4, "nodes": 8}, [("SITE-PER-NODE", "site")]),
        ({"nodes": [{"name": "a"}]}, [("SITE-NODES", "site")]),
    ],
)
def test_the_core_compares_plan_and_site(
    installed: Path, wide: Plan, site: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    add_plugin(installed, "alpha", CHECKS, vendor="nvidia")
    assert ids(check(wide, site)) == expected


def test_a_plan_for_another_profile_is_an_error(installed: Path) -> None:
    add_plugin(installed, "alpha", CHECKS, vendor="nvidia", profiles=("one", "two"))
    spec = DeploymentSpec("one", Parallelism(None, None, None, None), None, None, (RoleSpec("serve", None),))
    planned = make_plan(load_registry(), Scenario("kimi-k3", "h200", 16, deployment=spec))
    assert ids(check(planned, {"profile": "two"})) == [("SITE-PROFILE", "site")]
    assert ids(check(planned, {"profile": "one"})) == []


def test_a_blocked_plan_is_an_error(installed: Path, plan: Plan) -> None:
    add_plugin(installed, "alpha", CHECKS, vendor="nvidia")
    assert ids(check(plan)) == [("PLAN-BLOCKED", "plan")]


def test_what_the_site_acknowledges_stands_apart(installed: Path, wide: Plan) -> None:
    add_plugin(installed, "alpha", CHECKS, vendor="nvidia")
    report = check(wide, {"driver": "1", "acknowledged": [{"id": "T-1", "reason": "known"}]})
    assert report.findings == ()
    assert [finding.id for finding in report.acknowledged] == ["T-1"]
    assert (report.summary.error, report.summary.acknowledged) == (0, 1)


def test_a_plugin_that_cannot_judge_is_no_pass(
    installed: Path, wide: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_plugin(installed, "alpha", vendor="nvidia")
    (tmp_path / "plan.json").write_bytes(dump_document(wide))
    assert main(["check", str(tmp_path / "plan.json"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["judged"] == "no"
    assert main(["check", str(tmp_path / "plan.json"), "--runtime", "gamma"]) == 2


def test_command_prints_what_programs_read(
    installed: Path, wide: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_plugin(installed, "alpha", CHECKS + PLACES, vendor="nvidia")
    (tmp_path / "plan.json").write_bytes(dump_document(wide))
    (tmp_path / "site.yaml").write_text("runtime: alpha\nprofile: one\ndriver: 580\n")
    arguments = ["check", str(tmp_path / "plan.json"), "--site", str(tmp_path / "site.yaml")]
    out = tmp_path / "report.json"
    assert main([*arguments, "--json", "-o", str(out)]) == 1
    printed = capsys.readouterr().out
    assert printed.encode() == out.read_bytes()
    assert json.loads(printed)["summary"] == {"error": 1, "warning": 0, "info": 0, "acknowledged": 0}
    assert main(arguments) == 1
    text = capsys.readouterr().out
    assert "profile    one: measured: it ran" in text
    assert "unknown" in text
    assert "1 error, 0 warning, 0 info" in text


def test_manifests_are_judged_along_with_it(installed: Path, wide: Plan) -> None:
    lints = hook("moeplan_lint(request, site)", "return (finding(file=request.sources[0].name, line=2, column=1),)")
    add_plugin(installed, "alpha", CHECKS + lints, vendor="nvidia")
    report = check(wide, manifests={"run.sh": b"a\nb\n"})
    assert [(finding.id, finding.file, finding.line) for finding in report.findings] == [("T-1", "run.sh", 2)]


def test_criteria_enter_the_plan_as_data_and_the_audit_takes_them_out(installed: Path) -> None:
    add_plugin(installed, "alpha", OFFERS, version="1.2")
    registry = load_registry()
    site = {"runtime": "alpha", "profile": "one", "images": {"engine": f"example/engine@{DIGEST}"}}
    made = plan_on_site(registry, Scenario("kimi-k3", "h200", 16), site)
    (added,) = [one for gate in made.validation_gates for one in gate.criteria if one.contributed_by != "moeplan"]
    assert (added.id, added.contributed_by, added.on_missing) == ("alpha.quick_start", "alpha@1.2", "inconclusive")
    assert made.deployment.profile == "one"
    assert [(r.role, r.runtime and r.runtime.digest) for r in made.deployment.roles] == [("serve", DIGEST)]
    without = [attrs.evolve(g, criteria=tuple(c for c in g.criteria if c is not added)) for g in made.validation_gates]
    plain = make_plan(registry, Scenario("kimi-k3", "h200", 16, deployment=made.deployment))
    assert tuple(without) == plain.validation_gates
    assert _core_of(made) == attrs.evolve(plain, reproducibility=made.reproducibility)


def test_prefill_and_decode_come_from_the_nodes(installed: Path) -> None:
    add_plugin(installed, "alpha", OFFERS)
    nodes = [{"name": "a", "roles": ["prefill"]}, {"name": "b", "roles": ["decode"]}]
    made = plan_on_site(load_registry(), Scenario("kimi-k3", "h200", 16), {"runtime": "alpha", "nodes": nodes})
    assert [role.role for role in made.deployment.roles] == ["prefill", "decode"]


def test_what_cannot_be_planned_is_named(installed: Path) -> None:
    raises = hook("moeplan_criteria(plan, site)", "raise ValueError('no')")
    add_plugin(installed, "alpha", raises)
    scenario = Scenario("kimi-k3", "h200", 16)
    with pytest.raises(PluginError, match="no"):
        plan_on_site(load_registry(), scenario, {"runtime": "alpha"})
    with pytest.raises(InputError, match="the site names no runtime"):
        plan_on_site(load_registry(), scenario, {})
    given = plan_on_site.__globals__["site_deployment"](None, {"profile": "one"})
    with pytest.raises(InputError, match="different profiles"):
        plan_on_site(load_registry(), attrs.evolve(scenario, deployment=given), {"runtime": "alpha", "profile": "two"})


def test_plan_command_with_a_site(installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_plugin(installed, "alpha", OFFERS)
    (tmp_path / "site.yaml").write_text("runtime: alpha\nprofile: one\n")
    words = ["plan", "kimi-k3", "h200", "--devices", "16", "--site", str(tmp_path / "site.yaml"), "--json"]
    assert main(words) == 0
    assert "alpha.quick_start" in capsys.readouterr().out
    assert main([*words, "--schema-version", "1.0.0"]) == 2
    assert main([*words, "--draft", DIGEST, "--role", f"prefill={DIGEST}", "--role", "decode"]) == 0
    deployment = json.loads(capsys.readouterr().out.splitlines()[-1])["deployment"]
    assert (deployment["draftCheckpointRoot"], [r["role"] for r in deployment["roles"]]) == (
        DIGEST,
        ["prefill", "decode"],
    )
    for wrong in (["--role", "a=b"], ["--role", "a", "--role", "a"], ["--role", "a", "--runtime-image", DIGEST]):
        assert main([*words, *wrong]) == 2
