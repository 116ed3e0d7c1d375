"""``profiles --plan``: what fits and suits comes first, and nothing is said that no plugin says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.cli.main import main
from moeplan.model.plan import Scenario
from moeplan.planning.builder import plan as make_plan
from moeplan.wire.documents import dump_document
from tests.hooks.plugins import add_plugin

PROFILES = """
TOKENS = "tokens_per_accelerator"

def aim(name, suits, statement="it is so"):
    return ProfileAim(aim=name, suits=suits, statement=statement, sources=SOURCE)

def profile(id, status="measured", *aims, **more):
    return Profile(id, "t", status, "s", SOURCE, aims=aims, **more)

@hookimpl
def moeplan_runtime():
    return RuntimeInfo(engine="vllm", vendor={vendor!r}, plugin={plugin!r}, version={version!r}, rules=(), profiles=(
        profile("one", "measured", aim(TOKENS, "yes"), aim("headroom", "no"), nodes=1, accelerators=8),
        profile("pair", "recipe_only", aim(TOKENS, "no"), aim("headroom", "open"), nodes=2, accelerators=16),
        profile("broken", "reported_failing", aim("headroom", "yes")),
        profile("other", "measured", aim("headroom", "yes"), models=("glm-5-2",)),
        profile("quiet"),
    ))
"""


CHECKS = """
@hookimpl
def moeplan_check(plan, site):
    wrong = {"pair": "plan", "one": "site"}.get(plan.deployment.profile)
    return (finding(file=wrong),) if wrong else ()
"""


def chosen(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, list[tuple[str, str, str, bool]]]:
    code = main(["profiles", "--plan", str(path), "--json", *more])
    read = json.loads(capsys.readouterr().out)["choices"]
    return code, [(one["aim"], one["profile"], one["suits"], one["fits"]) for one in read]


def test_order_and_obstacles(installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_plugin(installed, "amd", info=PROFILES, vendor="amd")
    add_plugin(installed, "nvidia", info=PROFILES, vendor="nvidia", distribution="nv-dist")
    path = tmp_path / "plan.json"
    path.write_bytes(dump_document(make_plan(load_registry(), Scenario("kimi-k3", "mi355x", 16))))
    code, rows = chosen(path, capsys)
    assert rows == [
        ("tokens_per_accelerator", "one", "yes", True),
        ("tokens_per_accelerator", "pair", "no", True),
        ("headroom", "pair", "open", True),
        ("headroom", "one", "no", True),
        ("headroom", "other", "yes", False),
        ("headroom", "broken", "yes", False),
    ]
    assert code == 0
    code, rows = chosen(path, capsys, "--aim", "headroom")
    assert ({row[0] for row in rows}, code) == ({"headroom"}, 3), "nothing that fits is known to suit it"
    path.write_bytes(dump_document(make_plan(load_registry(), Scenario("kimi-k3", "mi355x", 8))))
    _, rows = chosen(path, capsys)
    assert ("headroom", "pair", "open", False) in rows
    assert main(["profiles", "--plan", str(path)]) == 0
    text = capsys.readouterr().out
    assert "it runs on 16 accelerators, the plan has 8" in text
    assert "it is for glm-5-2, the plan for kimi-k3" in text


def test_what_the_plugin_finds_wrong_in_the_plan_is_an_obstacle(
    installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_plugin(
        installed, "amd", CHECKS, info=PROFILES.replace("rules=()", "rules=(FindingRule('T-1', 'o'),)"), vendor="amd"
    )
    path = tmp_path / "plan.json"
    path.write_bytes(dump_document(make_plan(load_registry(), Scenario("kimi-k3", "mi355x", 16))))
    _, rows = chosen(path, capsys, "--aim", "tokens_per_accelerator")
    assert rows == [("tokens_per_accelerator", "one", "yes", True), ("tokens_per_accelerator", "pair", "no", False)]
    assert main(["profiles", "--plan", str(path)]) == 0
    assert "T-1: m" in capsys.readouterr().out


def test_nothing_known_is_no_choice(installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(dump_document(make_plan(load_registry(), Scenario("kimi-k3", "h200", 16))))
    add_plugin(installed, "amd", info=PROFILES, vendor="amd")
    assert chosen(path, capsys) == (3, [])
    assert main(["profiles", "--aim", "headroom"]) == 2
