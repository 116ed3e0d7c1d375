"""Kinds of manifests beside the recipes' own: what people write, what the operator makes, what a cluster gives back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from moeplan_vllm.facts import vllm_facts
from moeplan_vllm_rocm_aiter.covering import COVERED, told_once
from moeplan_vllm_rocm_aiter.facts import recipe_facts
from recipe_manifests import FACTS, SITE, Recipe, faults, lint_documents, repaired

from moeplan.model.plugin import PluginFinding

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FACTS.exists(), reason="the shared facts do not lie beside the repository"),
]
_PAIR, _ONE, _DRAFT = "opt/disaggregated", "opt/aggregated", "opt/aggregated-dspark"
Documents = list[dict[str, Any]]


def _by_operator(recipe: Recipe) -> Documents:
    """Return the Deployments that the operator makes of an InferaDeployment."""
    *others, deployment = recipe.documents()
    name = deployment["metadata"]["name"]
    made = []
    for service, value in copy.deepcopy(deployment["spec"]["services"]).items():
        labels = {"infera.amd.com/deployment": name, "infera.amd.com/service": service}
        template = {"metadata": {"labels": labels}, "spec": value["extraPodSpec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": f"{name}-{service}", "namespace": "infera", "labels": labels}
        made.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    return [*others, *made]


def _without_infera(recipe: Recipe) -> Documents:
    """Return Deployments that run ``vllm serve`` itself with a recipe's image, environment and mounts."""
    made = _by_operator(recipe)
    kept = []
    for document in made:
        pod = document["spec"]["template"]["spec"]
        main = pod["containers"][0]
        if "infera.engine.vllm" not in main["command"]:
            continue
        words = main["command"][main["command"].index("infera.engine.vllm") + 1 :]
        for flag in ("--request-transport", "--kv-event-transport"):
            at = words.index(flag)
            del words[at : at + 2]
        main["command"] = ["vllm", "serve", *words]
        document["spec"]["template"]["metadata"]["labels"] = {"app": document["metadata"]["name"]}
        pod["initContainers"] = []
        kept.append(document)
    return kept


def _faults(documents: Documents, profile: str | None = None) -> set[str]:
    return faults(lint_documents(documents, profile, SITE))


@pytest.mark.parametrize("combo", [_ONE, _DRAFT, _PAIR, "opt/disaggregated-dspark", "stock/aggregated-kvd"])
def test_what_the_operator_makes_is_judged_as_what_it_was_made_of(combo: str) -> None:
    for profile in (None, combo):
        assert _faults(_by_operator(repaired(combo)), profile) == set()


def _move(service: str, node: str) -> Callable[[Recipe], None]:
    def change(recipe: Recipe) -> None:
        recipe.services[service]["nodeSelector"] = {"kubernetes.io/hostname": node}

    return change


def _set(service: str, flag: str, value: str) -> Callable[[Recipe], None]:
    return lambda recipe: recipe.flags(service).update({flag: value})


@pytest.mark.parametrize(
    ("combo", "change", "expected"),
    [
        (_ONE, _move("server", "gpu-node-c"), {"R-PH-007"}),
        (_PAIR, _move("decode", "gpu-node-a"), {"R-PH-004"}),
        (_PAIR, _move("server", "gpu-node-b"), {"R-PH-006"}),
        (_ONE, _set("worker", "--request-transport", "nats"), {"R-ARG-014"}),
        (_ONE, _set("server", "--router-tokenizer-path", "/models/GLM"), {"R-OPR-016"}),
    ],
)
def test_rules_of_a_deployment_hold_for_what_it_was_made_into(
    combo: str, change: Callable[[Recipe], None], expected: set[str]
) -> None:
    recipe = repaired(combo)
    change(recipe)
    assert _faults(_by_operator(recipe), combo) == expected


def test_deployments_of_two_names_are_not_one() -> None:
    first, second = repaired(_ONE), repaired(_DRAFT)
    for service in second.services:
        _move(service, "gpu-node-b")(second)
    assert _faults([*_by_operator(first), *_by_operator(second)]) <= {"R-RES-004"}


def _no_host_network(recipe: Recipe) -> None:
    recipe.services["decode"].pop("hostNetwork")


def _unprivileged(recipe: Recipe) -> None:
    recipe.container("decode").pop("securityContext")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda recipe: None, set()),
        (_no_host_network, {"R-PD-001"}),
        (_unprivileged, {"R-PD-003"}),
        (_set("prefill", "--data-parallel-address", "127.0.0.1"), {"R-ARG-018"}),
    ],
)
def test_vllm_itself_with_the_optimized_image(change: Callable[[Recipe], None], expected: set[str]) -> None:
    recipe = repaired(_PAIR)
    change(recipe)
    assert _faults(_without_infera(recipe)) == expected


def test_one_cause_is_told_once() -> None:
    recipe = repaired(_ONE)
    for half in ("requests", "limits"):
        recipe.container("worker")["resources"][half]["amd.com/gpu"] = 4
    assert _faults(_without_infera(recipe)) == {"R-ARG-004"}, "C-DIV-004 says the same"


def test_what_covers_and_is_covered_exists() -> None:
    own, others = ({fact.id for fact in facts.facts} for facts in (recipe_facts(), vllm_facts()))
    assert {fact for covering in COVERED.values() for fact in covering} <= own
    assert set(COVERED) & others >= {"C-DIV-001", "C-DIV-004", "C-PD-014", "C-SPC-004"}
    assert not set(COVERED) & own


def test_only_what_is_told_as_a_fault_covers() -> None:
    (told, *_) = Recipe("stock/aggregated").lint()

    def finding(fact: str, severity: str) -> PluginFinding:
        return attrs.evolve(told, id=fact, severity=severity)

    general = finding("C-DIV-001", "error")
    assert told_once([general, finding("R-CHO-010", "info")]) == [general, finding("R-CHO-010", "info")]
    assert told_once([general, finding("R-CHO-010", "error")]) == [finding("R-CHO-010", "error")]
    assert told_once([general]) == [general]


def test_facts_of_vllm_hold_for_what_infera_starts_too() -> None:
    recipe = repaired("stock/aggregated")
    recipe.flags("worker")["--model"] = "/models/Qwen3-235B-A22B-FP8"
    recipe.flags("server")["--router-tokenizer-path"] = "/models/Qwen3-235B-A22B-FP8"
    assert faults(recipe.lint()) == {"C-DIV-002"}, "1536 / 8 = 192 is no multiple of 128"
    recipe.flags("worker")["--enable-expert-parallel"] = True
    assert faults(recipe.lint()) == set()


def _config_map(recipe: Recipe, drop: str | None = None) -> Documents:
    documents = recipe.documents()
    main = documents[-1]["spec"]["services"]["worker"]["extraPodSpec"]["containers"][0]
    data = {one["name"]: one["value"] for one in main["env"] if "value" in one and one["name"] != drop}
    main["env"] = [one for one in main["env"] if "value" not in one]
    main["envFrom"] = [{"configMapRef": {"name": "kernels"}}]
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kernels"}, "data": data}, *documents]


def test_the_block_may_stand_in_a_config_map() -> None:
    assert _faults(_config_map(repaired(_ONE))) == set()
    dropped = _config_map(repaired(_ONE), "AITER_SITUV2_A8W4")
    assert _faults(dropped) == {"R-ENV-AITER_SITUV2_A8W4", "R-ENV-001"}
    assert _faults(dropped[1:]) == set(), "of a ConfigMap that is not there nothing is known"


def _resources(**given: Any) -> Documents:
    recipe = repaired(_ONE)
    recipe.container("worker")["resources"] = given
    return recipe.documents()


_WHOLE = {"cpu": "32", "memory": "512Gi", "amd.com/gpu": 8}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"limits": _WHOLE}, set()),
        ({"limits": _WHOLE, "requests": {"cpu": "32000m", "memory": "524288Mi", "amd.com/gpu": "8"}}, set()),
        ({"limits": _WHOLE, "requests": {"amd.com/gpu": 4}}, {"R-RES-001"}),
        ({"requests": _WHOLE}, {"R-RES-001"}),
        ({"limits": {**_WHOLE, "cpu": "16000m"}}, {"R-RES-001"}),
    ],
)
def test_requests_and_limits_by_value(given: dict[str, Any], expected: set[str]) -> None:
    assert _faults(_resources(**given)) == expected


def _affinity(node: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


@pytest.mark.parametrize("pinned", [_affinity, lambda node: {"nodeName": node}], ids=["affinity", "name"])
def test_other_ways_to_a_node(pinned: Callable[[str], dict[str, Any]]) -> None:
    def placed(*nodes: str) -> set[str]:
        recipe = repaired(_PAIR)
        for service, node in zip(("server", "prefill", "decode"), nodes, strict=True):
            recipe.services[service].pop("nodeSelector")
            recipe.services[service] |= pinned(node)
        return faults(recipe.lint())

    assert placed("a", "a", "b") == set()
    assert placed("a", "a", "a") == {"R-PH-004"}
    assert placed("b", "a", "b") == {"R-PH-006"}
    assert placed("<node>", "<node>", "b") == {"R-PH-002"}


def test_a_choice_by_other_labels_is_not_known() -> None:
    recipe = repaired(_ONE)
    for service in recipe.services.values():
        service["nodeSelector"] = {"example.com/slot": "k3"}
    assert faults(recipe.lint()) == set()


@pytest.mark.parametrize(
    ("site", "expected"),
    [({"acceleratorsPerNode": 4}, {"R-RES-003"}), ({"nodes": 1}, {"R-PH-004"}), ({"namespace": "infera"}, set())],
)
def test_what_the_site_says_of_nodes(site: dict[str, Any], expected: set[str]) -> None:
    assert faults(repaired(_PAIR).lint(_PAIR, {**SITE, **site})) == expected


def test_the_namespace_is_a_fault_only_where_the_site_says_another() -> None:
    recipe = repaired(_ONE)
    recipe.namespace = "serving"
    assert faults(recipe.lint()) == set()
    assert faults(recipe.lint(_ONE, {**SITE, "namespace": "serving"})) == set()
    assert faults(recipe.lint(_ONE, {**SITE, "namespace": "infera"})) == {"R-NS-001"}


def test_slow_storage_is_a_fault_of_the_optimized_recipes_alone() -> None:
    site = {**SITE, "modelStorage": "nfs", "expectedReadySeconds": 5700}
    assert faults(repaired(_ONE).lint(_ONE, site)) == {"R-WT-003", "R-PRB-001"}
    recipe = repaired("stock/aggregated")
    recipe.container("worker")["startupProbe"]["failureThreshold"] = 720
    assert faults(recipe.lint(None, site)) == set(), "the stock recipes' weights lie on a claim; slow fits the budget"


def test_the_operators_own_account_is_no_other() -> None:
    recipe = repaired(_ONE)
    recipe.services["worker"]["serviceAccountName"] = f"{recipe.name}-disc"
    assert faults(recipe.lint()) == set()


def test_the_whole_of_dev_holds_the_devices() -> None:
    recipe = repaired(_PAIR)
    recipe.unmount("decode", "ib")
    assert faults(recipe.lint()) == {"R-PD-004"}
    recipe.services["decode"]["volumes"].append({"name": "dev", "hostPath": {"path": "/dev"}})
    recipe.container("decode")["volumeMounts"].append({"name": "dev", "mountPath": "/dev"})
    assert faults(recipe.lint()) == set()


def test_a_tokenizer_that_the_router_does_not_mount() -> None:
    recipe = repaired(_ONE)
    recipe.unmount("server", "model")
    assert faults(recipe.lint()) == {"R-OPR-016"}


def test_the_fault_is_pointed_at_and_named() -> None:
    recipe = repaired(_PAIR)
    recipe.flags("decode")["--tool-call-parser"] = "hermes"
    recipe.env("decode")["HIP_FORCE_DEV_KERNARG"] = "0"
    recipe.env("prefill").pop("AITER_SITUV2_A8W4")
    found = {one.id: one for one in recipe.lint()}
    assert "--tool-call-parser" in _line(recipe, found["R-ARG-011"])
    assert "HIP_FORCE_DEV_KERNARG (1 and 0)" in found["R-ENV-020"].message
    assert found["R-ENV-001"].message == "1 of 15 variables are not set: AITER_SITUV2_A8W4"


def _line(recipe: Recipe, finding: PluginFinding) -> str:
    import yaml

    assert finding.line is not None
    return yaml.safe_dump_all(recipe.documents(), sort_keys=False).splitlines()[finding.line - 1]
