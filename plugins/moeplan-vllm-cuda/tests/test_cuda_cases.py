"""The handed cases and public reports: what must be named is named, and nothing else counts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from moeplan_vllm_cuda.knowledge import cuda_facts
from moeplan_vllm_cuda.plugin import moeplan_lint

from moeplan.manifests.sources import read_source
from moeplan.model.rendering import LintRequest, ManifestSource

SHARED = Path(__file__).resolve().parents[4] / "shared"
pytestmark = [pytest.mark.shared, pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")]
SITE_KEYS = {
    "gpu": "hardware",
    "gpus_per_node": "acceleratorsPerNode",
    "driver": "driver",
    "engine_version": "engineVersion",
    "model_storage": "modelStorage",
    "expected_ready_s": "expectedReadySeconds",
    "nodes": "nodes",
}


def _cases() -> list[dict[str, Any]]:
    path = SHARED / "cases/lint/index.json"
    listed = json.loads(path.read_text())["cases"] if path.is_file() else []
    return [case for case in listed if case["runtime"] == "vllm-cuda"]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["id"])
@pytest.mark.parametrize("named", [True, False], ids=["profile", "no-profile"])
def test_a_case_gives_exactly_what_is_expected(case: dict[str, Any], named: bool) -> None:
    source = read_source(case["file"], (SHARED / "cases/lint" / case["file"]).read_bytes())
    assert source.documents is not None
    given = ManifestSource(source.name, source.text, tuple(range(len(source.documents))))
    site = {SITE_KEYS[key]: value for key, value in case["inputs"].items()}
    found = moeplan_lint(LintRequest((given,), case["combo"] if named else None), site)
    counting = {finding.id for finding in found if finding.severity != "info"}
    assert set(case["expect"]) <= counting
    assert counting <= {*case["expect"], *case["also_ok"]}


REPORTED: list[tuple[str, str, dict[str, Any], str]] = [
    # report, what a user would give, what is known of the site, the fact that names the cause
    (
        "REP-001",
        "python -m vllm.entrypoints.openai.api_server --model /m/Qwen3-235B-A22B-FP8 --tensor-parallel-size 8 "
        "--gpu-memory-utilization 0.98 --max-model-len 32768 --enable-expert-parallel",
        {"acceleratorsPerNode": 8, "nodes": 1, "engineVersion": "0.8.5"},
        "C-DIV-002",
    ),
    (
        "REP-004",
        "vllm serve deepseek-ai/DeepSeek-V3 --data-parallel-size 8 --enable-expert-parallel "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}\'',
        {"nodes": 2, "acceleratorsPerNode": 8},
        "C-PD-001",
    ),
    (
        "REP-005",
        'N=\'{"kv_connector":"NixlConnector","kv_role":"%s"}\'\n'
        "vllm serve google/gemma-4-26B-A4B --tensor-parallel-size 2 "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_producer"}\' &\n'
        "vllm serve google/gemma-4-26B-A4B --tensor-parallel-size 4 "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}\'',
        {"hardware": "h200", "acceleratorsPerNode": 8},
        "C-PD-007",
    ),
    (
        "REP-006",
        "vllm serve Qwen/Qwen3.5-397B-A17B --tensor-parallel-size 4 "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_producer"}\'\n'
        "vllm serve Qwen/Qwen3.5-397B-A17B --data-parallel-size 8 --enable-expert-parallel "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}\'',
        {"nodes": 1, "acceleratorsPerNode": 8},
        "C-PD-007",
    ),
    (
        "REP-008",
        "vllm serve deepseek-ai/DeepSeek-V4-Pro --tensor-parallel-size 16 --nnodes 2 --master-addr 192.0.2.24 "
        "--master-port 29501",
        {"hardware": "h100", "nodes": 2, "acceleratorsPerNode": 8, "engineVersion": "0.28.0"},
        "C-NET-001",
    ),
    ("REP-016", "vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", {"hardware": "rtx5090"}, "C-MOE-008"),
    (
        "REP-019",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True vllm serve m "
        '--kv-transfer-config \'{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}\'',
        {"hardware": "gb10"},
        "C-PD-006",
    ),
    (
        "REP-020",
        "{kind: Pod, apiVersion: v1, metadata: {name: m}, spec: {containers: [{name: e, image: vllm/vllm-openai, "
        "args: [m], livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 120}}]}}",
        {},
        "C-TIM-002",
    ),
    (
        "REP-026",
        "--tensor-parallel-size 8 --pipeline-parallel-size 2 --num-speculative-tokens 1",
        {"nodes": 2, "acceleratorsPerNode": 8, "hardware": "h20"},
        "C-SPC-001",
    ),
    (
        "REP-027",
        "--pipeline-parallel-size 2 --speculative-config ...",
        {"engineVersion": "0.28.0"},
        "C-SPC-001",
    ),
    (
        "REP-036",
        "--gpu-memory-utilization 0.98 --kv-cache-dtype nvfp4 --max-model-len 124000 --max-num-seqs 1",
        {"hardware": "rtx5090", "engineVersion": "0.29.1rc1"},
        "C-MEM-005",
    ),
    ("REP-041", "docker run vllm/vllm-openai:v0.5.0", {"hardware": "v100", "driver": "530"}, "C-DRV-001"),
    (
        "REP-050",
        "export GLOO_SOCKET_IFNAME=eth0\nvllm serve /models --tensor-parallel-size 16",
        {"nodes": 2, "acceleratorsPerNode": 8},
        "C-NET-001",
    ),
    (
        "REP-060",
        "vllm serve openai/gpt-oss-120b --tensor-parallel-size 1 --data-parallel-size 8 "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_producer"}\'\n'
        "vllm serve openai/gpt-oss-120b --tensor-parallel-size 4 --data-parallel-size 2 "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}\'',
        {"hardware": "h200", "nodes": 2, "acceleratorsPerNode": 8},
        "C-PD-007",
    ),
    (
        "REP-062",
        'vllm serve zai-org/GLM-5.2-FP8 --kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_both"}\'\n'
        'vllm serve zai-org/GLM-5.2-FP8 --kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_both"}\''
        ' --speculative-config \'{"method":"dspark","num_speculative_tokens":7}\'',
        {"hardware": "h200", "nodes": 2, "acceleratorsPerNode": 8},
        "C-SPC-010",
    ),
    (
        "REP-064",
        'vllm serve m --kv-transfer-config \'{"kv_connector":"MooncakeConnector","kv_role":"kv_consumer"}\'',
        {"engineVersion": "0.21.0"},
        "V-PD-003",
    ),
    (
        "REP-065",
        'vllm serve m --kv-transfer-config \'{"kv_connector":"MooncakeStoreConnector","kv_role":"kv_consumer"}\' '
        '--speculative-config \'{"method":"mtp"}\'',
        {"engineVersion": "0.26.1rc1"},
        "V-PD-001",
    ),
    (
        "REP-080",
        "vllm serve /models/DeepSeek-V3.2 --trust-remote-code --max-model-len 131072 -dp 8 --enable-expert-parallel "
        "--gpu-memory-utilization 0.95",
        {"acceleratorsPerNode": 8, "engineVersion": "0.11.2"},
        "C-DS-002",
    ),
    (
        "REP-092",
        "--tensor-parallel-size 8 --pipeline-parallel-size 2 "
        '--speculative-config \'{"method":"mtp","num_speculative_tokens":5}\'',
        {"hardware": "h100", "nodes": 2},
        "C-SPC-001",
    ),
    (
        "REP-093",
        "vllm serve deepseek-ai/DeepSeek-V4-Pro --data-parallel-size 8 --enable-expert-parallel --kv-cache-dtype fp8 "
        "--block-size 256 --max-model-len 800000",
        {"hardware": "h200", "acceleratorsPerNode": 8, "nodes": 1},
        "C-DS-004",
    ),
    (
        "REP-096",
        "vllm serve deepseek-ai/DeepSeek-V4-Pro --tensor-parallel-size 16 --enable-expert-parallel",
        {"hardware": "h100", "nodes": 2, "acceleratorsPerNode": 8, "engineVersion": "0.20.0"},
        "C-DIV-011",
    ),
    (
        "REP-097",
        "--data-parallel-size 8 --enable-expert-parallel --max-num-seqs 512 --max-num-batched-tokens 512 "
        '--speculative-config \'{"method":"mtp","num_speculative_tokens":1}\' --gpu-memory-utilization 0.95',
        {"hardware": "h200", "acceleratorsPerNode": 8, "engineVersion": "0.20.0"},
        "C-SPC-004",
    ),
    (
        "REP-099",
        "VLLM_SSM_CONV_STATE_LAYOUT=DS UCX_TLS=rc,cuda_copy vllm serve moonshotai/Kimi-K3 -tp 8 "
        '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_producer"}\'',
        {"nodes": 2, "acceleratorsPerNode": 8},
        "C-PD-019",
    ),
    (
        "REP-112",
        "python3 -m vllm.entrypoints.openai.api_server --nnodes 2 --node-rank 1 --headless "
        "--distributed-executor-backend mp",
        {"nodes": 2},
        "C-NET-013",
    ),
    (
        "REP-113",
        "{kind: Pod, apiVersion: v1, metadata: {name: m}, spec: {containers: [{name: e, image: vllm/vllm-openai, "
        'command: [sh, -c], args: ["vllm serve m --headless --data-parallel-address $(Leader_Node_Address)"]}]}}',
        {"nodes": 2},
        "V-POD-001",
    ),
]


@pytest.mark.parametrize(("report", "text", "site", "fact"), REPORTED, ids=[row[0] for row in REPORTED])
def test_the_cause_of_a_report_is_named(report: str, text: str, site: dict[str, Any], fact: str) -> None:
    source = read_source("run.sh" if not text.startswith("{") else "run.yaml", text.encode())
    numbers = None if source.documents is None else tuple(range(len(source.documents)))
    found = {one.id for one in moeplan_lint(LintRequest((ManifestSource(source.name, source.text, numbers),)), site)}
    assert fact in found


def test_logs_of_reports_show_their_cause() -> None:
    reports = json.loads((SHARED / "cases/reports.json").read_text())["reports"]
    mine = [one for one in reports if one["runtime"] == "vllm-cuda" and _specific(one["log_signature"])]
    missed = [one["id"] for one in mine if not _ids(one["log_signature"])]
    assert len(mine) >= 25
    assert len(missed) * 100 <= len(mine) * 15, missed
    related = [one for one in mine if {name for name in one["related_facts"] if name.startswith("C-")}]
    wrong = [one["id"] for one in related if not _ids(one["log_signature"]) & set(one["related_facts"])]
    assert len(wrong) * 100 <= len(related) * 15, wrong


def _specific(text: str | None) -> bool:
    return text is not None and len(text) >= 20


def _ids(line: str) -> set[str]:
    return {
        one.id
        for one in cuda_facts().log_signatures()
        if all(part in line for part in one.literals) and (one.pattern is None or re.search(one.pattern, line))
    }


def test_healthy_logs_show_no_error() -> None:
    logs = sorted((SHARED / "samples/made").rglob("serve.log"))
    assert logs
    signatures = [one for one in cuda_facts().log_signatures() if one.severity == "error"]
    for path in logs:
        text = path.read_text(errors="replace")
        for one in signatures:
            lines = [line for line in text.splitlines() if all(part in line for part in one.literals)]
            assert not [line for line in lines if one.pattern is None or re.search(one.pattern, line)], (
                path.name,
                one.id,
            )
