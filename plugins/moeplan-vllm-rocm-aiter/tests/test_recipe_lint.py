"""The handed cases and the recipes' own manifests: what is right gives nothing, what is wrong its id and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from moeplan_vllm_rocm_aiter.linting import lint
from recipe_manifests import FACTS, SHARED, Recipe, faults, handed, lint_documents, repaired, told

from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.rendering import LintRequest, ManifestSource

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FACTS.exists(), reason="the shared facts and cases do not lie beside the repository"),
]
_CASES = SHARED / "cases" / "lint"


def _cases() -> list[Any]:
    if not _CASES.exists():
        return []
    listed = json.loads((_CASES / "index.json").read_bytes())["cases"]
    return [case for case in listed if case["runtime"] == "vllm-rocm-aiter"]


@pytest.mark.parametrize("named", [True, False], ids=["profile", "recognised"])
@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["id"]))
def test_handed_cases(case: Any, named: bool) -> None:
    data = (_CASES / case["file"]).read_bytes()
    numbers = tuple(range(len(load_manifests(data).documents)))
    source = ManifestSource(case["file"], data.decode(), numbers)
    inputs = case["inputs"]
    site = {
        "hardware": inputs["gpu"],
        "acceleratorsPerNode": inputs["gpus_per_node"],
        "modelStorage": inputs["model_storage"],
        "expectedReadySeconds": inputs["expected_ready_s"],
    }
    found = lint(LintRequest((source,), case["combo"] if named else None), site)
    assert set(case["expect"]) <= told(found)
    assert faults(found) <= {*case["expect"], *case["also_ok"]}


def _combos() -> list[str]:
    return list(handed()["combos"]) if FACTS.exists() else []


@pytest.mark.parametrize("combo", _combos())
def test_a_recipe_without_its_known_defects_gives_nothing(combo: str) -> None:
    for profile in (None, combo):
        assert faults(repaired(combo).lint(profile)) == set()


@pytest.mark.parametrize("combo", _combos())
def test_a_recipe_is_recognised(combo: str) -> None:
    recipe = repaired(combo)
    for name in recipe.engines:
        recipe.env(name).pop("INFERA_ENGINE_READY_TIMEOUT")
    assert faults(recipe.lint()) == {"R-TIME-001"}  # a fact of the recipes alone


@pytest.mark.parametrize(
    ("combo", "expected"),
    [
        ("opt/aggregated", set()),
        ("opt/aggregated-dspark", set()),
        ("opt/disaggregated", set()),
        ("opt/disaggregated-dspark", set()),
        ("stock/aggregated", {"R-TIME-001", "R-PRB-001", "R-ENV-023"}),
        ("stock/aggregated-kvd", {"R-TIME-001", "R-PRB-001", "R-ENV-023", "R-ARG-029", "R-RES-010"}),
        ("stock/disaggregated", {"R-PRB-001", "R-ENV-023", "R-PD-004", "R-PD-006"}),
        (
            "stock/disaggregated-kvd",
            {
                *("R-TIME-001", "R-PRB-001", "R-ENV-023", "R-ARG-029", "R-RES-010", "R-PD-001", "R-PD-003", "R-PD-004"),
                *("R-PD-005", "R-ARG-015", "R-ARG-016", "R-ARG-018"),
            },
        ),
        ("stock/disaggregated-sglang", {"R-ARG-026"}),
    ],
)
def test_the_known_defects_of_shipped_manifests(combo: str, expected: set[str]) -> None:
    assert faults(Recipe(combo).lint()) == expected


def test_two_deployments_are_judged_one_by_one() -> None:
    first, second = repaired("opt/disaggregated"), repaired("stock/aggregated")
    second.services["server"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-node-c"}
    second.services["worker"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-node-c"}
    both = [*first.documents(), *second.documents()]
    assert faults(lint_documents(both)) == set()
    second.services["worker"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-node-b"}
    assert faults(lint_documents([*first.documents(), *second.documents()])) == {"R-RES-004"}


def test_another_model_is_not_held_against_the_recipes() -> None:
    recipe = repaired("stock/aggregated")
    recipe.flags("worker")["--model"] = "/models/GLM-5.3-Flash"
    recipe.flags("server")["--router-tokenizer-path"] = "/models/GLM-5.3-Flash"
    recipe.flags("worker").pop("--kv-cache-dtype")
    recipe.env("worker").pop("INFERA_ENGINE_READY_TIMEOUT")
    assert faults(recipe.lint()) == set()
