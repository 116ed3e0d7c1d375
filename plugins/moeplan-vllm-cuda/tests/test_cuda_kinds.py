"""Each fact in the words and shapes it may take: other spellings, variables with unknown parts, whole pairs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from moeplan_vllm_cuda.plugin import moeplan_lint

from moeplan.manifests.sources import read_source
from moeplan.model.plugin import PluginFinding
from moeplan.model.rendering import LintRequest, ManifestSource

H200 = {"hardware": "h200", "acceleratorsPerNode": 8, "engineVersion": "0.27.1"}
DIGEST = "@sha256:" + "0123456789abcdef" * 4
V31 = "vllm serve deepseek-ai/DeepSeek-V3.1 -tp 8 --enable-expert-parallel"
V32 = "vllm serve deepseek-ai/DeepSeek-V3.2 -tp 2 -dp 4 -ep --tokenizer-mode deepseek_v32"


def lint(text: str, site: dict[str, Any] | None = None, name: str = "run.sh") -> dict[str, PluginFinding]:
    """Return all findings in a file as a user would give it, by id."""
    source = read_source(name, text.encode())
    numbers = None if source.documents is None else tuple(range(len(source.documents)))
    request = LintRequest((ManifestSource(name, source.text, numbers),))
    return {finding.id: finding for finding in moeplan_lint(request, H200 if site is None else site)}


SPELLED = [
    # id, the fault, the same without it
    ("C-ATT-002", f"{V31} --attention-backend flashinfer_mla", f"{V31} --attention-backend flashmla"),
    ("C-ATT-002", f"{V31} -ac.backend CUTLASS_MLA", f"{V31} -ac.backend auto"),
    (
        "C-ATT-002",
        f"docker run --gpus all --ipc=host -e VLLM_ATTENTION_BACKEND=CUTLASS_MLA vllm/vllm-openai:v0.12.0 {V31[11:]}",
        f"docker run --gpus all --ipc=host -e VLLM_ATTENTION_BACKEND=FLASHMLA vllm/vllm-openai:v0.12.0 {V31[11:]}",
    ),
    (
        "C-ATT-003",
        f"{V31} --attention-backend FLASH_ATTN_MLA_SPARSE --kv-cache-dtype fp8",
        f"{V31} --attention-backend FLASH_ATTN_MLA_SPARSE --kv-cache-dtype bfloat16",
    ),
    (
        "C-ATT-004",
        f"{V31} --attention-config.backend FLASHMLA_SPARSE --block-size 16",
        f"{V31} --attention-config.backend FLASHMLA_SPARSE --block-size 64",
    ),
    (
        "C-ATT-004",
        f"{V31} --attention-backend FLASHMLA --kv-cache-dtype fp8_e5m2",
        f"{V31} --attention-backend FLASHMLA --kv-cache-dtype fp8_e4m3",
    ),
    ("C-MOE-001", f"{V31} --moe-backend flashinfer-TRTLLM", f"{V31} --moe-backend flashinfer-cutlass"),
    (
        "C-MOE-001",
        f"{V31} --kernel-config.moe_backend flashinfer_trtllm",
        f"{V31} --kernel-config.moe_backend deep_gemm",
    ),
    ("C-MOE-003", "vllm serve /m/tuned -tp 8 -q modelopt_fp4", "vllm serve /m/tuned -tp 8 -q fp8"),
    (
        "C-SCH-002",
        f"{V31} --no-enable-chunked-prefill --max-num-batched-tokens 8192",
        f"{V31} --no-enable-chunked-prefill --max-num-batched-tokens 163840",
    ),
    (
        "C-DIV-002",
        "vllm serve Qwen/Qwen3-30B-A3B-Instruct-2507-FP8 -tp 4",
        "vllm serve Qwen/Qwen3-30B-A3B-Instruct-2507-FP8 -tp 2",
    ),
    ("C-DIV-004", f"CUDA_VISIBLE_DEVICES=0,1,2,3 {V31}", f"CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 {V31}"),
    (
        "C-DIV-004",
        f"docker run --gpus '\"device=0,1\"' --ipc=host vllm/vllm-openai:v0.27.1 {V31[11:]}",
        f"docker run --gpus 8 --ipc=host vllm/vllm-openai:v0.27.1 {V31[11:]}",
    ),
    ("C-ENV-007", f"{V31} --tool-call-parser llama3_json", f"{V31} --tool-call-parser deepseek_v31"),
    (
        "C-ATT-005",
        f"docker run --entrypoint bash vllm/vllm-openai:v0.27.1 -c '{V31} --kv-cache-dtype nvfp4'",
        f"docker run --entrypoint bash vllm/vllm-openai:v0.27.1 -c '{V31} --kv-cache-dtype fp8'",
    ),
]


@pytest.mark.parametrize(("fact", "broken", "sound"), SPELLED)
def test_a_fault_in_other_words(fact: str, broken: str, sound: str) -> None:
    assert lint(broken)[fact].severity != "info"
    assert fact not in lint(sound)


def test_a_variable_that_holds_something_unknown_still_tells_the_rest() -> None:
    script = """
OPTIONS="--tensor-parallel-size 8 -ep --node-rank ${LWS_WORKER_INDEX} --attention-backend CUTLASS_MLA"
if [ "$LWS_WORKER_INDEX" = 0 ]; then vllm serve deepseek-ai/DeepSeek-V3.1 $OPTIONS; fi
"""
    assert lint(script)["C-ATT-002"].line == 3
    assert "C-ATT-002" not in lint(script.replace("CUTLASS_MLA", "$BACKEND"))


def test_a_deviation_from_a_profile_is_named() -> None:
    profile = """--gpu-memory-utilization 0.97 --max-num-seqs 5 --max-model-len 32768 --max-num-batched-tokens 4096
 --moe-backend marlin --attention-backend FLASHMLA --disable-custom-all-reduce --no-enable-flashinfer-autotune"""
    variables = """VLLM_ENGINE_READY_TIMEOUT_S=3600 VLLM_USE_V2_MODEL_RUNNER=1 VLLM_USE_RUST_FRONTEND=1
 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"""
    sound = f"{variables} vllm serve moonshotai/Kimi-K3 -tp 16 {profile}".replace("\n", "")
    assert "C-K3-001" not in lint(sound)
    for old, new, told in (
        ("VLLM_USE_RUST_FRONTEND=1", "", "VLLM_USE_RUST_FRONTEND is not set"),
        ("PYTORCH_CUDA_ALLOC_CONF=", "OTHER=", "PYTORCH_CUDA_ALLOC_CONF is not set"),
        ("seqs 5", "seqs 64", "sequences is 64"),
        ("-backend marlin", "-backend triton", "moe-backend is triton"),
    ):
        assert lint(sound.replace(old, new))["C-K3-001"].message.endswith(told)


def test_flash_attention_for_mla_is_hoppers() -> None:
    blackwell = {**H200, "hardware": "b200"}
    assert lint(f"{V31} --attention-backend FLASH_ATTN_MLA", blackwell)["C-ATT-003"].severity == "error"
    assert "C-ATT-003" not in lint(f"{V31} --attention-backend FLASH_ATTN_MLA")
    assert "C-ATT-003" not in lint(f"{V31} --attention-backend FLASH_ATTN_MLA", {})


def test_autotuning_that_is_turned_on_is_worse_than_autotuning_that_is_left_alone() -> None:
    on = lint(f"{V32} --kernel-config.enable_flashinfer_autotune=True")
    assert (on["C-DS-001"].severity, lint(V32)["C-DS-001"].severity) == ("warning", "info")
    assert "C-DS-001" not in lint(f"{V32} --no-enable-flashinfer-autotune")


@pytest.mark.parametrize(
    ("model", "seconds", "severity"),
    [("moonshotai/Kimi-K3", "300", "error"), ("deepseek-ai/DeepSeek-V3.1", "300", "info"), ("/m", "1800", None)],
)
def test_pipeline_stages_and_the_step_timeout(model: str, seconds: str, severity: str | None) -> None:
    found = lint(f"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS={seconds} vllm serve {model} -tp 4 -pp 2").get("C-NET-011")
    assert (None if found is None else found.severity) == severity


def test_a_dspark_draft_with_fewer_tokens_than_the_recipes() -> None:
    for tokens, severity in (("3", "info"), ("7", None)):
        options = f"--speculative-config.method dspark --speculative-config.num_speculative_tokens {tokens}"
        found = lint(f"vllm serve deepseek-ai/DeepSeek-V4-Pro-0813 -tp 8 {options}").get("C-SPC-002")
        assert (None if found is None else found.severity) == severity


@pytest.mark.parametrize(("sizes", "told"), [("-dp 16", True), ("-tp 4 -dp 4", True), ("-tp 8 -dp 2", False)])
def test_kimi_k3_with_data_and_expert_parallel_on_hopper(sizes: str, told: bool) -> None:
    assert ("C-K3-003" in lint(f"vllm serve moonshotai/Kimi-K3 -ep {sizes}")) is told


@pytest.mark.parametrize(
    ("what", "driver", "told"),
    [
        (f"docker run --ipc=host vllm/vllm-openai{DIGEST} --model m", "570.1", True),
        (f"docker run --ipc=host example.com/own/engine{DIGEST} vllm serve m", "570.1", False),
        (V31, "570", True),
        (V31, "580", False),
    ],
)
def test_the_driver_of_a_wheel_and_of_an_image_without_a_tag(what: str, driver: str, told: bool) -> None:
    assert ("C-DRV-001" in lint(what, {**H200, "driver": driver})) is told


def pod(role: str, **more: str) -> str:
    """Return one half of a NIXL pair as JSON."""
    config = {"kv_connector": "NixlConnector", "kv_role": role, "kv_load_failure_policy": "fail"}
    words = ["vllm", "serve", more.get("model", "deepseek-ai/DeepSeek-V3.1"), "-tp", "8", "-ep"]
    words += [*more.get("words", "").split(), "--kv-transfer-config", json.dumps(config)]
    engine = {"name": "engine", "image": more.get("image", "vllm/vllm-openai:v0.27.1"), "command": words}
    body = {"containers": [engine], "affinity": affinity(more.get("products", "NVIDIA-H200"))}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role}, "spec": body})


def affinity(products: str) -> dict[str, Any]:
    """Return a node affinity that requires one of some products."""
    asked = {"key": "nvidia.com/gpu.product", "operator": "In", "values": products.split(",")}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [asked]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("prefill", "decode", "told"),
    [
        ({}, {}, None),
        ({}, {"words": "--kv-cache-dtype auto --dtype auto"}, None),
        (
            {},
            {"words": "--attention-config.backend FLASHMLA"},
            "--attention-backend is not set on prefill and FLASHMLA",
        ),
        ({}, {"model": "deepseek-ai/DeepSeek-R1"}, "the model is deepseek-ai/DeepSeek-V3.1 on prefill"),
        ({"image": f"a/vllm-openai:v0.27.1{DIGEST}"}, {"image": f"b/vllm-openai:v0.27.1{DIGEST}"}, None),
        ({}, {"image": "vllm/vllm-openai:v0.28.0"}, "the image is vllm/vllm-openai:v0.27.1 on prefill"),
        ({"image": f"a/b:1{DIGEST}"}, {"image": f"a/b:1{DIGEST[:-1]}0"}, "the image is a/b:1@sha256"),
    ],
)
def test_what_both_halves_must_have_alike(prefill: dict[str, str], decode: dict[str, str], told: str | None) -> None:
    found = lint(f"{pod('kv_producer', **prefill)}\n---\n{pod('kv_consumer', **decode)}\n", {}, "pair.yaml")
    assert (told is None) is ("C-PD-003" not in found)
    assert told is None or found["C-PD-003"].message.startswith(told)


@pytest.mark.parametrize(("products", "told"), [("NVIDIA-H200", True), ("NVIDIA-H200,NVIDIA-B200", False)])
def test_the_gpu_that_a_node_affinity_requires(products: str, told: bool) -> None:
    found = lint(pod("kv_producer", products=products, words="--attention-backend CUTLASS_MLA"), {}, "pod.json")
    assert ("C-ATT-002" in found) is told


@pytest.mark.parametrize(
    ("reference", "label", "served", "told"),
    [
        ("/m/current", "kimi-k3", "chat", "error"),
        ("/m/current", "web", "Kimi-K3", "error"),
        ("/m/current", "web", "chat", None),
        ("/m/Qwen3-30B-A3B", "kimi-k3", "kimi-k3", None),
    ],
)
def test_what_names_a_model_beside_its_directory(reference: str, label: str, served: str, told: str | None) -> None:
    """C-MEM-002: eight H200 are too few for Kimi-K3; the directory's own name stands before label and served name."""
    pod = {
        "metadata": {"labels": {"app.kubernetes.io/name": label}},
        "spec": {
            "containers": [
                {
                    "name": "engine",
                    "image": "vllm/vllm-openai:v0.27.1",
                    "args": [reference, "--served-model-name", served, "--tensor-parallel-size", "8"],
                }
            ]
        },
    }
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"}, "spec": {"template": pod}}
    found = lint(json.dumps(manifest), name="deploy.json")
    assert (found["C-MEM-002"].severity if "C-MEM-002" in found else None) == told


def test_of_a_directory_that_tells_nothing_kimis_share_is_no_finding() -> None:
    line = "vllm serve {} -tp 8 --gpu-memory-utilization {} --max-num-seqs 5"
    assert "C-MEM-005" not in lint(line.format("/m/current", "0.97"))
    assert lint(line.format("/m/current", "0.98"))["C-MEM-005"].severity == "warning"
    assert lint(line.format("Qwen/Qwen3-30B-A3B", "0.97"))["C-MEM-005"].severity == "warning"
