"""docs/kimi-k3-mi355x.md: every row names something that exists, of the kind the row says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Scenario
from moeplan.planning.builder import plan
from tests.unit.docs.pages import sections, table_rows

plugin = pytest.importorskip("moeplan_vllm_rocm_aiter.plugin")

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "kimi-k3-mi355x.md"
GOLDEN = ROOT / "plugins" / "moeplan-vllm-rocm-aiter" / "tests" / "golden"
ROWS = [
    (section, *row)
    for section, text in sections(PAGE, 2).items()
    for row in table_rows(text)
    if row[0] != "the recipe asks"
]


def criteria() -> set[str]:
    roles = (RoleSpec("prefill", None), RoleSpec("decode", None))
    spec = DeploymentSpec("opt/disaggregated-dspark", Parallelism(8, 1, 1, 1), None, "sha256:" + "a" * 64, roles)
    made = plan(load_registry(), Scenario("kimi-k3", "mi355x", 16, deployment=spec))
    return {one.id for one in plugin.moeplan_criteria(made, {})}


def test_each_part_of_the_recipe_is_there() -> None:
    assert [title[0] for title in list(sections(PAGE, 2))[1:]] == ["1", "2", "3", "4", "5"]
    assert len(ROWS) > 60


@pytest.mark.parametrize(("section", "asked", "held", "named"), ROWS)
def test_row(section: str, asked: str, held: str, named: str) -> None:
    ids = re.findall(r"`([^`]+)`", named)
    info = plugin.moeplan_runtime()
    profiles = {profile.id: profile for profile in info.profiles}
    assert ids
    if held == "check":
        assert set(ids) <= {rule.id for rule in info.rules}
    elif held == "status":
        assert set(ids) <= set(profiles)
    elif held == "probe":
        assert set(ids) <= {check.id for check in plugin.moeplan_preflight()}
    elif held == "criterion":
        assert set(ids) <= criteria()
    elif held == "aim":
        profile, aim = ids
        assert aim in {known.aim for known in profiles[profile].aims if known.suits == "yes"}
    else:
        assert held == "rendered"
        profile, text = ids
        files = (GOLDEN / profile.replace("/", "-")).iterdir()
        assert any(text in file.read_text("utf-8") for file in files), text
