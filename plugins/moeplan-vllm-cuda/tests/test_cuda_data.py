"""The plugin's data: every fact is there, sourced and sharp; recipes and GPUs say what their source says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from moeplan_vllm_cuda.gpus import find_gpu
from moeplan_vllm_cuda.knowledge import cuda_facts
from moeplan_vllm_cuda.plugin import moeplan_log_signatures, moeplan_runtime
from moeplan_vllm_cuda.profiles import cuda_profiles, known_status
from moeplan_vllm_cuda.recipes import find_variant
from moeplan_vllm_cuda.rules.derived import DERIVED, driver_needed
from moeplan_vllm_cuda.rules.registered import RULES

from moeplan.diagnosis.required_text import signature_fault
from moeplan.facts.conditions import Condition, fields_of
from moeplan.facts.derived import DERIVED as CORE_DERIVED

SHARED = Path(__file__).resolve().parents[4] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared facts are not here")


@pytest.mark.shared
@needs_shared
def test_every_known_fact_has_its_entry_and_its_severity_is_not_raised() -> None:
    known = json.loads((SHARED / "facts/cuda_facts.json").read_text())["facts"]
    facts = cuda_facts()
    rank = {"info": 0, "warning": 1, "error": 2}
    assert {row["id"] for row in known} <= {fact.id for fact in facts.facts}
    for row in known:
        assert rank[facts[row["id"]].severity] <= rank[row["severity"]], row["id"]
        assert facts[row["id"]].silent == row["silent"]


@pytest.mark.shared
@needs_shared
def test_sentences_are_our_own() -> None:
    for row in json.loads((SHARED / "facts/cuda_facts.json").read_text())["facts"]:
        fact = cuda_facts()[row["id"]]
        for text in (fact.title, fact.consequence, fact.remedy):
            assert not (len(row["consequence"]) > 40 and row["consequence"].rstrip(".") in text), row["id"]


def test_rules_belong_to_facts_and_derived_fields_exist() -> None:
    ids = {fact.id for fact in cuda_facts().facts}
    assert set(RULES) <= ids
    for fact in cuda_facts().facts:
        for condition in (fact.when, fact.violated):
            for field in fields_of(condition) if isinstance(condition, Condition) else ():
                assert field.space != "derived" or field.name in DERIVED or field.name in CORE_DERIVED, fact.id


def test_signatures_are_specific() -> None:
    faults = [signature_fault(one) for one in moeplan_log_signatures()]
    assert [fault for fault in faults if fault is not None] == []
    assert len(faults) >= 80


def test_what_must_be_zero_is_the_eager_draft() -> None:
    assert {one.id for one in moeplan_log_signatures() if one.expectation == "must_be_zero"} == {"C-SPC-008"}


def test_profiles_are_the_strategies_with_their_status() -> None:
    ids = [profile.id for profile in cuda_profiles()]
    expected = ["tp", "tep", "dep"]
    assert ids[:3] == [f"single_node_{one}" for one in expected]
    assert set(ids[3:]) == {*(f"multi_node_{one}" for one in (*expected, "tp_pp", "tp_dp")), "pd_cluster"}
    assert all(profile.status == "recipe_only" and profile.sources for profile in cuda_profiles())
    failing = known_status("single_node_tp", "kimi-k3", "h200")
    assert failing is not None
    assert failing["status"] == "reported_failing"
    assert known_status("single_node_tp", "kimi-k3", "b300") is None


def test_the_plugin_declares_every_id_it_may_report() -> None:
    info = moeplan_runtime()
    assert (info.engine, info.vendor, info.plugin) == ("vllm", "nvidia", "vllm-cuda")
    origins = {rule.id: rule.origin for rule in info.rules}
    assert origins == {fact.id: cuda_facts().origin_of(fact.id) for fact in cuda_facts().facts}
    assert origins["C-DIV-001"] == "moeplan-vllm"
    assert origins["C-K3-002"] == "moeplan-vllm-cuda"


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("NVIDIA-H200", "h200"),
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("8x B200", "b200"),
        ("NVIDIA GB200", "gb200"),
        ("GH200", "gh200"),
        ("H20", "h20"),
        ("RTX 5090 (SM 12.0)", "rtx5090"),
        ("a toaster", None),
    ],
)
def test_gpus_by_the_names_they_bear(name: str, gpu: str | None) -> None:
    found = find_gpu(name)
    assert (None if found is None else found.id) == gpu


@pytest.mark.parametrize(
    ("reference", "precision", "gigabytes", "cap"),
    [
        ("moonshotai/Kimi-K3", "mxfp4", 1680, None),
        ("/models/Qwen3-235B-A22B-FP8", "fp8", 240, 4),
        ("/models/DeepSeek-V4-Pro", "fp8", 960, None),
        ("zai-org/GLM-5.2", "bf16", 1786, None),
    ],
)
def test_variants_by_name(reference: str, precision: str, gigabytes: int, cap: int | None) -> None:
    found = find_variant(reference)
    assert found is not None
    assert (found[1].precision, found[1].least_gigabytes, found[1].tensor_cap) == (precision, gigabytes, cap)


def test_a_name_of_two_precisions_is_nobodys() -> None:
    assert find_variant("mindlab-research/Macaron-V1-Coding-Venti") is None
    assert find_variant("someone/unknown") is None


def test_drivers_of_cuda_releases() -> None:
    assert [driver_needed(one) for one in ("13.0", "12.9", "12.8", "12.4", "11.8")] == [580, 575, 570, 550, None]
