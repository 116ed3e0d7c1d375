"""Every fact that can be seen in a manifest: one that breaks it, held against the same manifest unbroken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from moeplan_vllm_cuda.plugin import moeplan_lint

from moeplan.model.plugin import PluginFinding
from moeplan.model.rendering import LintRequest, ManifestSource

DIGEST = "@sha256:" + "0123456789abcdef" * 4
RELEASE = "registry.example.com/vllm/vllm-openai:v0.27.1" + DIGEST
SITE = {
    "hardware": "h200",
    "acceleratorsPerNode": 8,
    "driver": "580",
    "engineVersion": "0.27.1",
    "modelStorage": "local-nvme",
    "expectedReadySeconds": 900,
}
READY = {"VLLM_ENGINE_READY_TIMEOUT_S": "3600"}
PINNED = {"GLOO_SOCKET_IFNAME": "ens1", "NCCL_SOCKET_IFNAME": "ens1"}
K3_ARGUMENTS = """--tensor-parallel-size 8 --trust-remote-code --gpu-memory-utilization 0.97 --max-num-seqs 5
 --max-model-len 32768 --moe-backend marlin --disable-custom-all-reduce --no-enable-flashinfer-autotune
 --max-num-batched-tokens 4096 --attention-backend FLASHMLA --enable-auto-tool-choice --tool-call-parser kimi_k3
 --reasoning-parser kimi_k3"""
K3_ENVIRONMENT = {
    **READY,
    "VLLM_USE_V2_MODEL_RUNNER": "1",
    "VLLM_USE_RUST_FRONTEND": "1",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
}
NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_producer", "kv_load_failure_policy": "fail"}
NIXL_ENVIRONMENT = {
    **READY,
    "VLLM_NIXL_SIDE_CHANNEL_HOST": "$(POD_IP)",
    "VLLM_NIXL_SIDE_CHANNEL_PORT": "5600",
    "UCX_TLS": "rc,cuda_copy",
}
V4_ARGUMENTS = """--tensor-parallel-size 8 --kv-cache-dtype fp8 --block-size 256 --max-model-len 200000
 --gpu-memory-utilization 0.95 --max-num-seqs 16 --tokenizer-mode deepseek_v4"""


def manifest(model: str, arguments: str = "", environment: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return a sound Deployment of one engine; ``more`` replaces parts of it, None drops them."""
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10}
    container: dict[str, Any] = {
        "name": "engine",
        "image": more.pop("image", RELEASE),
        "command": more.pop("command", ["vllm", "serve"]),
        "args": more.pop("args", [model, *_words(arguments)]),
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *(
                {"name": name, "value": value}
                for name, value in (READY if environment is None else environment).items()
            ),
        ],
        "resources": {"limits": {"nvidia.com/gpu": more.pop("gpus", 8), **more.pop("resources", {})}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        "startupProbe": more.pop("startup", {**probe, "failureThreshold": 360}),
        "livenessProbe": more.pop("liveness", {**probe, "failureThreshold": 3}),
        "securityContext": more.pop("security", None),
    }
    container = {key: value for key, value in container.items() if value is not None}
    shm = more.pop("shm", {"medium": "Memory", "sizeLimit": "32Gi"})
    spec = {
        "containers": [container],
        "volumes": [{"name": "shm", "emptyDir": shm}] if shm is not None else [],
        "nodeSelector": {"nvidia.com/gpu.product": more.pop("product", "NVIDIA-H200")},
        **more,
    }
    if shm is None:
        container["volumeMounts"] = []
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "m"},
        "spec": {"template": {"spec": spec}},
    }


def _words(arguments: str) -> list[str]:
    """Split at blanks, JSON objects kept whole."""
    words: list[str] = []
    for word in arguments.split():
        opened = "".join(words[-1:]).count("{") - "".join(words[-1:]).count("}")
        if words and opened > 0:
            words[-1] += " " + word
        else:
            words.append(word)
    return words


def lint(*documents: Any, site: dict[str, Any] | None = None, profile: str | None = None) -> tuple[PluginFinding, ...]:
    """Lint documents, or scripts given as text, together."""
    sources = tuple(
        ManifestSource(f"m{number}", document)
        if isinstance(document, str)
        else ManifestSource(f"m{number}", json.dumps(document, indent=1), (0,))
        for number, document in enumerate(documents)
    )
    return moeplan_lint(LintRequest(sources, profile), SITE if site is None else site)


def loud(findings: tuple[PluginFinding, ...]) -> dict[str, str]:
    """Return what counts, by id."""
    return {finding.id: finding.severity for finding in findings if finding.severity != "info"}


def v31(arguments: str = "", environment: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    sizes = (
        "" if "-parallel" in arguments or "-tp" in arguments else "--tensor-parallel-size 8 --enable-expert-parallel"
    )
    return manifest("/models/DeepSeek-V3.1", f"{sizes} {arguments}", environment, **more)


def k3(arguments: str = "", drop: str = "", environment: Mapping[str, str | None] | None = None, **more: Any) -> Any:
    """Return one of two nodes of Kimi-K3 by its Hopper profile."""
    spread = "--data-parallel-size 2 --data-parallel-size-local 1 --data-parallel-address 192.0.2.10"
    text = " ".join((K3_ARGUMENTS + " " + spread).split())
    if drop:
        assert drop in text
        text = text.replace(drop, "")
    values = {**K3_ENVIRONMENT, **PINNED, **(environment or {})}
    kept = {name: value for name, value in values.items() if value is not None}
    return manifest("/models/Kimi-K3", f"{text} {arguments}", kept, hostNetwork=True, **more)


def half(role: str, arguments: str = "", environment: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return one half of a sound NIXL pair of DeepSeek-V3.1."""
    config = {**NIXL, "kv_role": role, **more.pop("transfer", {})}
    config = {key: value for key, value in config.items() if value is not None}
    more = {"resources": {"rdma/ib": 8}, "security": {"capabilities": {"add": ["IPC_LOCK"]}}, **more}
    sizes = "" if "-parallel" in arguments else "--tensor-parallel-size 8 --enable-expert-parallel"
    model = more.pop("model", "/models/DeepSeek-V3.1")
    text = f"{sizes} {arguments} --kv-transfer-config {json.dumps(config)}"
    return manifest(model, text, NIXL_ENVIRONMENT if environment is None else environment, hostNetwork=True, **more)


def without(values: dict[str, str], *names: str, **more: str) -> dict[str, str]:
    return {**{name: value for name, value in values.items() if name not in names}, **more}


SOUND: dict[str, list[Any]] = {
    "one node": [v31()],
    "a draft without stages": [v31("--speculative-config.method mtp --speculative-config.num_speculative_tokens 1")],
    "whole experts": [manifest("/models/Qwen3-235B-A22B-FP8", "-tp 8 --enable-expert-parallel")],
    "cut experts that fit": [manifest("/models/Qwen3-235B-A22B-FP8", "-tp=4", gpus=4)],
    "two nodes": [k3()],
    "stages": [v31("-tp 8 -pp 2 --nnodes 2 --node-rank 0 --master-addr 192.0.2.10", READY | PINNED, hostNetwork=True)],
    "a pair": [half("kv_producer"), half("kv_consumer")],
    "V4": [manifest("/models/DeepSeek-V4-Pro", V4_ARGUMENTS)],
    "V3.2": [
        manifest(
            "/models/DeepSeek-V3.2", "-tp 2 -dp 4 -ep --tokenizer-mode deepseek_v32 --reasoning-parser deepseek_v3"
        )
    ],
    "GLM": [manifest("zai-org/GLM-5.2-FP8", "-tp 8 --kv-cache-dtype fp8")],
    "gpt-oss": [manifest("openai/gpt-oss-120b", "", gpus=1, shm=None)],
    "MiniMax-M3": [manifest("MiniMaxAI/MiniMax-M3", "-tp 8 --block-size 128")],
    "a copying connector": [
        v31('--kv-transfer-config {"kv_connector":"OffloadingConnector","kv_role":"kv_both"}'),
    ],
}


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_found_in_what_is_sound(name: str) -> None:
    assert loud(lint(*SOUND[name])) == {}


def changed(**values: Any) -> dict[str, Any]:
    return {**SITE, **values}


K3_PAIR = {**K3_ENVIRONMENT, **NIXL_ENVIRONMENT, **PINNED, "VLLM_SSM_CONV_STATE_LAYOUT": "DS"}
K3_PAIR.pop("PYTORCH_CUDA_ALLOC_CONF")
K3_NIXL = f"--kv-transfer-config {json.dumps(NIXL)} --no-disable-hybrid-kv-cache-manager"
RDMA: dict[str, Any] = {"resources": {"rdma/ib": 8}, "security": {"capabilities": {"add": ["IPC_LOCK"]}}}
MOONCAKE = {"kv_connector": "MooncakeConnector", "kv_role": "kv_producer", "kv_load_failure_policy": "fail"}


def mooncake(arguments: str = "--data-parallel-address 192.0.2.10", extra: Any = None, **more: Any) -> dict[str, Any]:
    config = {**MOONCAKE, **({"kv_connector_extra_config": extra} if extra else {})}
    return v31(f"{arguments} --kv-transfer-config {json.dumps(config)}", **{**RDMA, **more})


BROKEN: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    # id, severity, documents, site
    ("C-DRV-001", "error", [v31()], changed(driver="575.57.08")),
    ("C-DRV-001", "error", ["docker run --gpus all --ipc=host vllm/vllm-openai:v0.5.0 --model m"], {"driver": "530"}),
    ("C-DRV-002", "error", [k3(image="vllm/vllm-openai:kimi-k3" + DIGEST)], changed(driver="575")),
    ("C-DRV-003", "error", [v31(image="vllm/vllm-openai:v0.27.1-cu129")], changed(driver="570.195.03")),
    ("C-MEM-001", "error", [v31("--tensor-parallel-size 4 -ep", gpus=4)], SITE),
    ("C-MEM-002", "error", [manifest("/models/Kimi-K3", K3_ARGUMENTS, K3_ENVIRONMENT)], changed(nodes=1)),
    ("C-MEM-003", "error", [k3(product="NVIDIA-H100-80GB-HBM3")], changed(hardware="h100")),
    ("C-MEM-005", "warning", [v31("--gpu-memory-utilization=0.98")], SITE),
    ("C-MEM-006", "warning", [k3("-pp 2", product="NVIDIA-B200")], changed(hardware="b200")),
    (
        "C-DIV-001",
        "error",
        [manifest("moonshotai/Kimi-K2-Instruct", "-tp 12 -ep", gpus=12)],
        changed(acceleratorsPerNode=12),
    ),
    ("C-DIV-002", "error", [manifest("/models/Qwen3-235B-A22B-FP8", "-tp 8")], SITE),
    ("C-DIV-002", "error", [manifest("Qwen/Qwen3-235B-A22B-FP8", "-tp=2 -dp=4")], SITE),
    ("C-DIV-003", "error", [v31("-tp 32 --nnodes 4", READY | PINNED)], changed(nodes=4)),
    ("C-DIV-004", "error", [v31("--tensor-parallel-size 8 -ep", gpus=4)], SITE),
    ("C-DIV-005", "error", [v31("-tp 1 -dp 4 -dpl 8 -ep")], SITE),
    ("C-DIV-006", "error", [v31("-tp 8 -ep --decode-context-parallel-size 3")], SITE),
    ("C-DIV-007", "warning", [k3("--tensor-parallel-size 12", drop="--tensor-parallel-size 8", gpus=12)], SITE),
    ("C-DIV-008", "error", [manifest("Qwen/Qwen3.8-2.4T-A95B-FP8", "-tp 12", gpus=12)], SITE),
    ("C-DIV-009", "error", [manifest("MiniMaxAI/MiniMax-M2.5", "--tensor-parallel-size 8")], SITE),
    ("C-DIV-010", "error", [manifest("/m/Qwen3-Coder-480B-A35B-Instruct-FP8", "-tp 8")], SITE),
    ("C-DIV-011", "error", [v31("-tp 32 -ep --nnodes 4", READY | PINNED)], changed(nodes=4)),
    ("C-MOE-001", "error", [v31("--moe-backend flashinfer_trtllm")], SITE),
    ("C-MOE-002", "error", [k3("--moe-backend cutlass", drop="--moe-backend marlin")], SITE),
    ("C-MOE-003", "warning", [manifest("nvidia/DeepSeek-V3.1-NVFP4", "-tp 8 -ep")], SITE),
    ("C-MOE-004", "error", [v31("--attention-config.use_fp4_indexer_cache=True")], SITE),
    ("C-MOE-004", "error", [v31("--moe-backend deep_gemm_mega_moe")], SITE),
    (
        "C-MOE-005",
        "error",
        [k3("--moe-backend deep_gemm_mega_moe", drop="--moe-backend marlin", product="NVIDIA-B200")],
        SITE,
    ),
    (
        "C-MOE-006",
        "error",
        [manifest("nvidia/DeepSeek-V3.1-NVFP4", "-tp 8 -ep --moe-backend deep_gemm_mega_moe", product="NVIDIA-B200")],
        SITE,
    ),
    (
        "C-MOE-010",
        "error",
        [manifest("/models/DeepSeek-V4-Pro", V4_ARGUMENTS, READY | {"VLLM_BATCH_INVARIANT": "1"})],
        SITE,
    ),
    ("C-MOE-011", "warning", [v31(environment=READY | {"VLLM_USE_FLASHINFER_MOE_FP4": "1"})], SITE),
    ("C-MOE-012", "error", [manifest("Qwen/Qwen3-235B-A22B-Instruct-2507", "-tp 8 --moe-backend deep_gemm")], SITE),
    ("C-ATT-002", "error", [v31("--attention-backend CUTLASS_MLA")], SITE),
    (
        "C-ATT-002",
        "error",
        [v31('-sc {"method":"mtp","num_speculative_tokens":1,"attention_backend":"FLASHINFER_MLA"}')],
        SITE,
    ),
    ("C-ATT-003", "error", [v31("--attention-backend=FLASH_ATTN_MLA --kv-cache-dtype=fp8_e4m3")], SITE),
    ("C-ATT-004", "error", [v31("--attention-backend FLASHMLA --block-size 32")], SITE),
    ("C-ATT-005", "error", [v31("--kv-cache-dtype nvfp4")], SITE),
    ("C-ATT-006", "warning", [manifest("deepseek-ai/DeepSeek-V3.2", "-tp 8 --tokenizer-mode deepseek_v32")], SITE),
    (
        "C-ATT-008",
        "warning",
        [manifest("zai-org/GLM-5.2-FP8", "-tp 16 --kv-cache-dtype fp8", gpus=16, product="NVIDIA-H20")],
        SITE,
    ),
    ("C-ATT-009", "warning", [manifest("zai-org/GLM-5.2-FP8", "-tp 8 --kv-cache-dtype fp8_e4m3")], SITE),
    ("C-ATT-010", "error", [manifest("MiniMaxAI/MiniMax-M3", "-tp 8")], SITE),
    ("C-ATT-011", "error", [manifest("/models/DeepSeek-V4-Pro", V4_ARGUMENTS.replace("--block-size 256", ""))], SITE),
    ("C-ATT-012", "warning", [k3("--attention-backend FLASH_ATTN_MLA", drop="--attention-backend FLASHMLA")], SITE),
    ("C-ATT-013", "error", [k3("--decode-context-parallel-size 8")], SITE),
    ("C-ATT-014", "warning", [v31("--kv-cache-dtype fp8", image="vllm/vllm-openai:v0.15.0")], SITE),
    ("C-K3-001", "warning", [k3("--max-num-seqs 64", drop="--max-num-seqs 5")], SITE),
    ("C-K3-002", "error", [k3(K3_NIXL, environment=K3_PAIR, **RDMA)], SITE),
    ("C-K3-003", "error", [k3("-tp 1 -ep", drop="--tensor-parallel-size 8", gpus=2)], SITE),
    ("C-K3-004", "error", [k3(image="vllm/vllm-openai:v0.26.0")], SITE),
    ("C-K3-005", "error", [k3(K3_NIXL, environment={**K3_PAIR, "VLLM_SSM_CONV_STATE_LAYOUT": "SD"}, **RDMA)], SITE),
    ("C-K3-006", "error", [k3(K3_NIXL, environment={**K3_PAIR, "UCX_TLS": "cuda_copy,tcp"}, **RDMA)], SITE),
    ("C-K3-007", "warning", [k3("--all2all-backend flashinfer_nvlink_one_sided")], SITE),
    ("C-DS-002", "warning", [manifest("/models/DeepSeek-V3.2", "-dp 8 -ep")], SITE),
    (
        "C-DS-004",
        "warning",
        [manifest("/models/DeepSeek-V4-Pro", V4_ARGUMENTS.replace("200000", "800000"))],
        SITE,
    ),
    (
        "C-DS-005",
        "error",
        [manifest("/models/DeepSeek-V4-Pro", V4_ARGUMENTS + ' -sc {"method":"dspark","num_speculative_tokens":7}')],
        SITE,
    ),
    ("C-DS-008", "error", [manifest("/models/DeepSeek-V4-Pro", "-tp 8 --kv-cache-dtype fp8 --block-size 256")], SITE),
    ("C-GLM-001", "error", [manifest("zai-org/GLM-5.1", "-tp 8 --chat-template-content-format=string")], SITE),
    (
        "C-GLM-002",
        "error",
        [manifest("zai-org/GLM-5.2-FP8", "-tp 8 --kv-cache-dtype fp8", image="vllm/vllm-openai:v0.22.0")],
        SITE,
    ),
    ("C-OSS-001", "warning", [manifest("openai/gpt-oss-120b", gpus=1, product="NVIDIA-H100-80GB-HBM3")], SITE),
    ("C-OSS-003", "warning", [manifest("openai/gpt-oss-120b", "--kv-cache-dtype fp8", gpus=1)], SITE),
    ("C-QW-001", "error", [half("kv_producer", model="Qwen/Qwen3.5-397B-A17B", product="NVIDIA-B200")], SITE),
    (
        "C-INK-001",
        "error",
        [manifest("thinkingmachines/Inkling-NVFP4", "-tp 16 --nnodes 2", READY | PINNED)],
        changed(nodes=2),
    ),
    (
        "C-VLM-001",
        "error",
        [manifest("moonshotai/Kimi-K2.6", "-tp 8 --language-model-only --mm-encoder-tp-mode data")],
        SITE,
    ),
    (
        "C-SPC-001",
        "error",
        [v31('-tp 8 -pp 2 --nnodes 2 -sc {"method":"mtp","num_speculative_tokens":1}', READY | PINNED)],
        changed(nodes=2),
    ),
    (
        "C-SPC-003",
        "error",
        [v31("--speculative-config.method mtp --speculative-config.draft_tensor_parallel_size 4")],
        SITE,
    ),
    (
        "C-SPC-004",
        "error",
        [v31('--max-num-seqs 512 --max-num-batched-tokens 512 -sc {"method":"mtp","num_speculative_tokens":1}')],
        SITE,
    ),
    ("C-SPC-006", "error", [v31('--async-scheduling -sc {"method":"ngram","num_speculative_tokens":3}')], SITE),
    (
        "C-SPC-007",
        "error",
        [
            manifest(
                "deepseek-ai/DeepSeek-V4-Pro-DSpark",
                V4_ARGUMENTS + ' -sc {"method":"dspark","num_speculative_tokens":7}',
                READY | {"VLLM_USE_V2_MODEL_RUNNER": "0"},
            )
        ],
        SITE,
    ),
    (
        "C-SPC-009",
        "error",
        [half("kv_producer"), half("kv_consumer", "-sc.method mtp -sc.num_speculative_tokens 1")],
        SITE,
    ),
    (
        "C-SPC-010",
        "error",
        [half("kv_producer"), half("kv_consumer", "-sc.method mtp -sc.num_speculative_tokens 1")],
        SITE,
    ),
    (
        "C-SPC-011",
        "warning",
        [
            half(
                "kv_producer",
                '--kv-cache-dtype fp8 -sc {"method":"dspark","model":"/models/d","num_speculative_tokens":7}',
                model="/models/GLM-5.2-FP8",
            )
        ],
        SITE,
    ),
    ("C-SCH-001", "error", [v31("--max-num-batched-tokens 256 --max-num-seqs 512")], SITE),
    (
        "C-SCH-002",
        "error",
        [v31("--no-enable-chunked-prefill --max-num-batched-tokens 8192 --max-model-len 32k")],
        SITE,
    ),
    ("C-SCH-003", "error", [v31("--tensor-parallel-size 8 --enable-eplb")], SITE),
    ("C-SCH-003", "error", [v31("--eplb-config.num_redundant_experts 32")], SITE),
    ("C-SCH-004", "error", [half("kv_producer", "--enable-return-routed-experts")], SITE),
    (
        "C-SCH-006",
        "warning",
        [
            v31(
                "-tp 8 -pp 2 --nnodes 2 --async-scheduling",
                READY | PINNED | {"VLLM_USE_V2_MODEL_RUNNER": "0"},
                image="vllm/vllm-openai:v0.33.0",
            )
        ],
        changed(nodes=2),
    ),
    (
        "C-NET-001",
        "error",
        [v31("-tp 16 -ep --nnodes 2", READY | {"NCCL_SOCKET_IFNAME": "ens1"}, hostNetwork=True)],
        SITE,
    ),
    ("C-NET-002", "error", [v31(environment=READY | {"GLOO_SOCKET_IFNAME": "eth0,eth1"})], SITE),
    ("C-NET-005", "error", [v31("-tp 16 -ep --nnodes 2 --distributed-executor-backend ray", READY | PINNED)], SITE),
    ("C-NET-006", "warning", [v31("--all2all-backend pplx")], SITE),
    ("C-NET-008", "error", [manifest("openai/gpt-oss-120b", "-dp 8 -ep --all2all-backend deepep_low_latency")], SITE),
    ("C-NET-010", "error", [v31(shm=None)], SITE),
    ("C-NET-010", "error", [v31(shm={})], SITE),
    ("C-NET-010", "warning", [v31(shm={"medium": "Memory", "sizeLimit": "8Gi"})], SITE),
    ("C-NET-011", "error", [k3("-pp 2")], SITE),
    ("C-NET-012", "error", [k3(drop="--data-parallel-address 192.0.2.10")], SITE),
    ("C-NET-012", "error", [k3("--data-parallel-address 127.0.0.1", drop="--data-parallel-address 192.0.2.10")], SITE),
    ("C-NET-012", "error", [k3("--headless", liveness=None, startup=None)], SITE),
    (
        "C-NET-013",
        "error",
        [
            manifest(
                "",
                environment=READY | PINNED,
                command=["python3", "-m", "vllm.entrypoints.openai.api_server"],
                args=_words("--model=/models/DeepSeek-V3.1 -tp 16 -ep --nnodes 2 --node-rank 1 --headless"),
                startup=None,
                liveness=None,
            )
        ],
        changed(nodes=2),
    ),
    ("C-NET-014", "warning", [v31("-tp 16 -ep --nnodes 2 --node-rank 1 --headless", READY | PINNED)], SITE),
    (
        "C-PD-001",
        "error",
        [half("kv_producer", environment=without(NIXL_ENVIRONMENT, "VLLM_NIXL_SIDE_CHANNEL_HOST"))],
        SITE,
    ),
    (
        "C-PD-001",
        "error",
        [half("kv_consumer", environment=NIXL_ENVIRONMENT | {"VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1"})],
        SITE,
    ),
    ("C-PD-003", "error", [half("kv_producer"), half("kv_consumer", image="vllm/vllm-openai:v0.28.0")], SITE),
    ("C-PD-003", "error", [half("kv_producer", "--kv-cache-dtype fp8"), half("kv_consumer")], SITE),
    ("C-PD-004", "warning", [half("kv_both")], SITE),
    ("C-PD-005", "error", [half("kv_producer", environment=NIXL_ENVIRONMENT | {"UCX_TLS": "cuda_copy,tcp"})], SITE),
    (
        "C-PD-006",
        "error",
        [half("kv_producer", environment=NIXL_ENVIRONMENT | {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})],
        SITE,
    ),
    (
        "C-PD-006",
        "warning",
        [
            v31(
                '--kv-transfer-config {"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}',
                READY | {"PYTORCH_ALLOC_CONF": "max_split_size_mb:512,expandable_segments:True"},
            )
        ],
        SITE,
    ),
    ("C-PD-007", "warning", [half("kv_producer", "--tensor-parallel-size 4 -ep", gpus=4), half("kv_consumer")], SITE),
    ("C-PD-008", "error", [k3(K3_NIXL.replace("--no-disable", "--disable"), environment=K3_PAIR, **RDMA)], SITE),
    ("C-PD-009", "error", [mooncake("")], SITE),
    ("C-PD-009", "error", [mooncake("--data-parallel-address 0.0.0.0")], SITE),
    ("C-PD-010", "warning", [mooncake(extra={"mooncake_protocol": "tcp"})], SITE),
    ("C-PD-013", "warning", [half("kv_producer", transfer={"kv_load_failure_policy": "recompute"})], SITE),
    ("C-PD-014", "error", [half("kv_producer", transfer={"kv_role": None})], SITE),
    ("C-PD-016", "warning", [half("kv_producer", resources={"vpc.amazonaws.com/efa": 4})], SITE),
    (
        "C-PD-017",
        "error",
        [half("kv_producer", "-tp 8 --pipeline-parallel-size 2", transfer={"kv_connector": "NixlPushConnector"})],
        SITE,
    ),
    ("C-PD-018", "error", [half("kv_producer", security=None)], SITE),
    ("C-PD-018", "error", [half("kv_consumer", resources={})], SITE),
    ("C-PD-019", "warning", [k3(K3_NIXL, environment={**K3_PAIR, "PYTORCH_CUDA_ALLOC_CONF": None}, **RDMA)], SITE),
    ("C-PD-020", "warning", [half("kv_producer", model="deepseek-ai/DeepSeek-V4.1-Flash")], SITE),
    ("C-PD-021", "error", [mooncake(resources={})], SITE),
    ("C-TIM-001", "error", [v31(environment={})], SITE),
    (
        "C-TIM-001",
        "error",
        [v31(environment={"VLLM_ENGINE_READY_TIMEOUT_S": "1200"})],
        changed(expectedReadySeconds=1800),
    ),
    ("C-TIM-002", "error", [v31(startup=None)], SITE),
    (
        "C-TIM-002",
        "error",
        [v31(startup={"tcpSocket": {"port": 8000}, "periodSeconds": 10, "failureThreshold": 30})],
        SITE,
    ),
    ("C-TIM-003", "warning", [v31(environment={"VLLM_ENGINE_READY_TIMEOUT_S": "1200"})], changed(modelStorage="nfs")),
    ("C-ENV-001", "warning", [v31(environment=READY | {"VLLM_NIXL_SIDE_CHANEL_PORT": "5600"})], SITE),
    ("C-ENV-001", "warning", [v31(environment=READY | {"VLLM_KIMI_K3_GEMM_AR": "1"})], SITE),
    (
        "C-ENV-003",
        "error",
        [
            v31(
                '--kv-transfer-config {"kv_connector":"OffloadingConnector","kv_role":"kv_both",'
                '"kv_connector_extra_config":{"spec_name":"TieringOffloadingSpec"}}'
            )
        ],
        SITE,
    ),
    (
        "C-ENV-004",
        "error",
        [
            v31(
                '--kv-transfer-config {"kv_connector":"SimpleCPUOffloadConnector","kv_role":"kv_both"}',
                resources={"memory": "1Ti"},
            )
        ],
        SITE,
    ),
    (
        "C-ENV-005",
        "warning",
        [
            v31(
                '--kv-transfer-config {"kv_connector":"OffloadingConnector","kv_role":"kv_both",'
                '"kv_connector_extra_config":{"cpu_bytes_to_use_per_rank":1000000000}}'
            )
        ],
        SITE,
    ),
    (
        "C-ENV-006",
        "error",
        [
            v31(
                '-tp 16 -ep --nnodes 2 --kv-transfer-config {"kv_connector":"LMCacheMPConnector","kv_role":"kv_both"}',
                READY | PINNED,
            )
        ],
        SITE,
    ),
    ("C-ENV-007", "warning", [v31("--tool-call-parser kimi_k2")], SITE),
    (
        "C-ENV-008",
        "error",
        [manifest("deepseek-ai/DeepSeek-V4-Pro-0813", V4_ARGUMENTS.replace("--tokenizer-mode deepseek_v4", ""))],
        SITE,
    ),
    ("C-ENV-009", "warning", [manifest("zai-org/GLM-5-FP8", "-tp 8")], SITE),
    (
        "C-ENV-010",
        "warning",
        [manifest("", command=None, args=["bash", "-c", "vllm serve /models/DeepSeek-V3.1 -tp 8 -ep"])],
        SITE,
    ),
    ("V-POD-001", "error", [v31("--data-parallel-address $(Leader_Node_Address)")], SITE),
    (
        "V-PD-001",
        "warning",
        [v31('-sc.method mtp --kv-transfer-config {"kv_connector":"MooncakeStoreConnector","kv_role":"kv_both"}')],
        SITE,
    ),
    ("V-PD-003", "error", [mooncake(image="vllm/vllm-openai:v0.21.0")], SITE),
]


@pytest.mark.parametrize(
    ("fact", "severity", "documents", "site"), BROKEN, ids=[f"{row[0]}-{number}" for number, row in enumerate(BROKEN)]
)
def test_a_broken_fact_is_named_at_its_place(
    fact: str, severity: str, documents: list[Any], site: dict[str, Any]
) -> None:
    found = lint(*documents, site=site)
    assert {finding.severity for finding in found if finding.id == fact} == {severity}, [f.id for f in found]
    assert all(finding.line is not None and "{" not in finding.message.partition("{'")[0] for finding in found)
