"""vLLM's programs, families and derived values, read from launches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from moeplan_vllm.facts import vllm_facts
from moeplan_vllm.families import architecture, family_of, name_of
from moeplan_vllm.programs import IMAGES, role_of, vllm_programs
from moeplan_vllm.rules.derived import DERIVED
from moeplan_vllm.rules.reading import connectors, count, parse_count
from moeplan_vllm.rules.registered import RULES

from moeplan.facts.fields import parse_field
from moeplan.facts.judge import judge
from moeplan.facts.launches import Knowledge, Scene, Subject, read_scene
from moeplan.model.rendering import ManifestSource

KNOWLEDGE = Knowledge(programs=vllm_programs(), versioned=IMAGES, role=role_of, model=architecture, derived=DERIVED)


def scene_of(script: str, site: Mapping[str, Any] | None = None) -> Scene:
    return read_scene((ManifestSource("run.sh", script),), KNOWLEDGE, site)


def launch_of(script: str, site: Mapping[str, Any] | None = None) -> Subject:
    (launch,) = scene_of(script, site).launches
    return launch


def derived(script: str, name: str, site: Mapping[str, Any] | None = None) -> Any:
    value = launch_of(script, site).look(parse_field(f"derived {name}"))
    return value.value if value.state != "unknown" else "unknown"


@pytest.mark.parametrize(
    ("script", "program", "model"),
    [
        ("vllm serve m/x --port 1", "vllm", "m/x"),
        ("exec /opt/bin/vllm serve --model m/x", "vllm", "m/x"),
        ("python -m vllm.entrypoints.cli.main serve m/x", "vllm", "m/x"),
        ("python3 -m vllm.entrypoints.openai.api_server --model=m/x", "vllm.api_server", "m/x"),
        ("docker run --gpus all vllm/vllm-openai:v0.11.0 m/x -tp 8", "vllm", "m/x"),
        ("docker run --gpus all vllm/vllm-openai serve m/x", "vllm", "m/x"),
        ("--tensor-parallel-size 8", "vllm", None),
    ],
)
def test_programs(script: str, program: str, model: str | None) -> None:
    launch = launch_of(script)
    assert launch.program is not None
    assert (launch.program.name, launch.model_reference) == (program, model)


def test_other_programs_are_none_of_vllm() -> None:
    assert scene_of("python -m sglang.launch_server --model m\nnginx\nvllm bench serve").launches == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("8192", 8192),
        ("8k", 8000),
        ("8K", 8192),
        ("1.5k", 1500),
        ("2M", 2 << 20),
        ("1.5K", None),
        ("auto", None),
        ("-1", None),
    ],
)
def test_counts_as_vllm_reads_them(text: str, number: int | None) -> None:
    assert parse_count(text) == number
    assert count(launch_of(f"vllm serve m --max-model-len={text}"), "--max-model-len", 7) == number


@pytest.mark.parametrize(
    ("reference", "family"),
    [
        ("moonshotai/Kimi-K3", "kimi-k3"),
        ("/models/kimi-k3/", "kimi-k3"),
        ("/root/.cache/huggingface/hub/models--deepseek-ai--DeepSeek-V3.2/snapshots/abc", "deepseek-v3.2"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3.1"),
        ("RedHatAI/Kimi-K3-speculator.dspark", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", None),
        ("zai-org/GLM-5-FP8", "glm-5"),
        ("zai-org/GLM-5.2-FP8", "glm-5.2"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("meta-llama/Llama-3.1-8B", None),
    ],
)
def test_families(reference: str, family: str | None) -> None:
    assert family_of(reference) == family


def test_a_cached_snapshot_is_named_by_its_repository() -> None:
    assert name_of("/hub/models--Qwen--Qwen3-235B-A22B-FP8/snapshots/0a1b") == "qwen3-235b-a22b-fp8"
    assert architecture("/m/nothing-of-the-kind") is None


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        ("-tp 8 -pp 2 -dp 2", "engine-gpus", 32),
        ("-tp 8 -dp 2 -ep", "expert-ranks", 16),
        ("-tp $TP", "engine-gpus", "unknown"),
        ("-tp 8", "multi-node", False),
        ("--nnodes 2", "multi-node", True),
        ("-dp 16 -dpl 8", "data-parallel-nodes", True),
        ("-dp 8", "data-parallel-nodes", False),
        ("-sc.method=mtp", "speculation-method", "mtp"),
        ("--speculative-config ...", "speculation", True),
        ("", "speculation", False),
        ("--max-model-len 32k", "context-tokens", 32000),
        ("", "context-tokens", None),
        ("", "kv-paired", False),
    ],
)
def test_derived_values(arguments: str, name: str, value: Any) -> None:
    assert derived(f"vllm serve m {arguments}", name) == value


def test_a_site_of_several_nodes_spreads_what_one_cannot_hold() -> None:
    assert derived("vllm serve m -tp 16", "multi-node", {"nodes": 2, "acceleratorsPerNode": 8}) is True
    assert derived("vllm serve m -tp 8", "multi-node", {"nodes": 2, "acceleratorsPerNode": 8}) is False


def test_connectors_within_a_multi_connector() -> None:
    inner = '{"kv_connector":"NixlConnector"},{"kv_connector":"OffloadingConnector"}'
    extra = f'"kv_connector_extra_config":{{"connectors":[{inner}]}}'
    config = f'{{"kv_connector":"MultiConnector","kv_role":"kv_both",{extra}}}'
    launch = launch_of(f"vllm serve m --kv-transfer-config '{config}'")
    assert connectors(launch) == ("NixlConnector", "OffloadingConnector")
    assert launch.look(parse_field("derived kv-paired")).value is True


def test_rules_are_of_facts() -> None:
    assert set(RULES) <= {fact.id for fact in vllm_facts().facts}


@pytest.mark.parametrize(
    ("arguments", "severity"),
    [
        ("-sc.method=eagle3", {"C-SPC-001": "info"}),
        ("-sc.method=mtp", {"C-SPC-001": "error"}),
        ("", {}),
    ],
)
def test_speculation_in_stages_is_as_sure_as_the_release_is_known(arguments: str, severity: dict[str, str]) -> None:
    scene = scene_of(f"vllm serve m -pp 2 {arguments}")
    assert {one.id: one.severity for one in judge(scene, vllm_facts(), RULES)} == severity


def test_eagle3_with_stages_is_taken_by_later_releases() -> None:
    script = "vllm serve m -pp 2 -sc.method=eagle3"
    for version, ids in (("0.27.1", ["C-SPC-001"]), ("0.29.0", [])):
        scene = scene_of(script, {"engineVersion": version})
        assert [one.id for one in judge(scene, vllm_facts(), RULES)] == ids
