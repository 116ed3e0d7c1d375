"""The handed cases and the recipes' own manifests: what is right gives nothing, what is wrong its id and no other."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from moeplan_vllm_rocm_aiter.linting import lint
from recipe_manifests import FACTS, SHARED, SITE, Recipe, faults, handed, lint_documents, repaired, told

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


def _as_script(recipe: Recipe) -> list[dict[str, Any]]:
    documents = recipe.documents()
    main = documents[-1]["spec"]["services"]["worker"]["extraPodSpec"]["containers"][0]
    main["command"], main["args"] = ["sh", "-c"], ["exec " + shlex.join(main["command"])]
    return documents


def _with_args(recipe: Recipe) -> list[dict[str, Any]]:
    documents = recipe.documents()
    main = documents[-1]["spec"]["services"]["worker"]["extraPodSpec"]["containers"][0]
    words = main["command"]
    main["command"], main["args"] = words[:4], words[4:]
    return documents


def _joined(recipe: Recipe) -> list[dict[str, Any]]:
    flags = recipe.flags("worker")
    for name in [name for name, value in flags.items() if isinstance(value, str)]:
        flags[f"{name.replace('-', '_').replace('__', '--', 1)}={flags.pop(name)}"] = True
    return recipe.documents()


@pytest.mark.parametrize("form", [_as_script, _with_args, _joined])
def test_other_forms_of_the_same_command(form: Callable[[Recipe], list[dict[str, Any]]]) -> None:
    recipe = repaired("opt/aggregated-dspark")
    assert faults(lint_documents(form(recipe), None, SITE)) == set()
    recipe = repaired("opt/aggregated-dspark")
    recipe.flags("worker")["--gpu-memory-utilization"] = "0.95"
    assert faults(lint_documents(form(recipe), None, SITE)) == {"R-ARG-002"}


def test_one_file_each_or_a_list_as_kubectl_gets_it() -> None:
    recipe = repaired("stock/aggregated-kvd")
    listed = {"apiVersion": "v1", "kind": "List", "items": recipe.documents()}
    assert faults(lint_documents([listed])) == set()
    recipe.others[0]["spec"]["resources"]["requests"]["storage"] = "64Gi"
    listed = {"apiVersion": "v1", "kind": "List", "items": recipe.documents()}
    assert faults(lint_documents([listed])) == {"R-RES-008"}


def _script(text: str, **site: Any) -> dict[str, str]:
    found = lint(LintRequest((ManifestSource("-", text, None),), None), site)
    return {one.id: one.severity for one in found}


@pytest.mark.parametrize(
    ("text", "site", "fact", "severity"),
    [
        # public reports: REP-028, REP-086, REP-084, REP-123, REP-114
        ("VLLM_ROCM_USE_AITER=1 vllm serve DeepSeek-R1-MXFP4 --tensor-parallel-size 4", "mi355x", "R-CHO-010", "info"),
        ("vllm serve /m/Kimi-K2.7-Code --tensor-parallel-size 8", "mi308x", "R-CHO-010", "error"),
        (
            "vllm serve zai-org/GLM-5.3-Flash-FP8 --tensor-parallel-size 8 --max-num-batched-tokens 16384",
            *("mi350x", "R-LOG-010", "warning"),
        ),
        ("vllm serve m --gpu-memory-utilization 0.90", "mi355x", "R-RES-005", "info"),
        ("docker run --device /dev/kfd vllm/vllm-openai-rocm:v0.27.1 bash serve.sh", "mi355x", "R-IMG-008", "warning"),
        ("VLLM_ROCM_USE_AITER_FP4BMM=1 vllm serve amd/Llama-3.3-70B", "mi300x", "R-CHO-009", "error"),
    ],
)
def test_launch_scripts(text: str, site: str, fact: str, severity: str) -> None:
    assert _script(text, hardware=site)[fact] == severity


@pytest.mark.parametrize(
    ("text", "site"),
    [
        ("VLLM_ROCM_USE_AITER=1 vllm serve deepseek-ai/DeepSeek-R1 --tensor-parallel-size 8", "mi300x"),
        ("vllm serve moonshotai/Kimi-K2.7-Code --tensor-parallel-size 4", "mi355x"),
        ("vllm serve zai-org/GLM-5.3-Flash-FP8 --tensor-parallel-size 8 --max-num-batched-tokens 8192", "mi350x"),
    ],
)
def test_launch_scripts_that_are_right(text: str, site: str) -> None:
    own = {fact: severity for fact, severity in _script(text, hardware=site).items() if fact.startswith("R-")}
    assert "error" not in own.values()
    assert "warning" not in own.values() or own.get("R-CHO-009") == "warning"
