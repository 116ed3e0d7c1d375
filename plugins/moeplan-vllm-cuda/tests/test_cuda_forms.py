"""The same faults in the forms that people write them in, and whose a manifest or script is."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from moeplan_vllm_cuda.plugin import moeplan_lint, moeplan_owns_manifest

from moeplan.manifests.sources import read_source
from moeplan.model.plugin import PluginFinding
from moeplan.model.rendering import LintRequest, ManifestSource


def lint_text(text: str, site: dict[str, Any] | None = None, name: str = "run.sh") -> dict[str, PluginFinding]:
    """Return the findings that count in a file as a user would give it, by id."""
    source = read_source(name, textwrap.dedent(text).lstrip("\n").encode())
    numbers = None if source.documents is None else tuple(range(len(source.documents)))
    request = LintRequest((ManifestSource(name, source.text, numbers),))
    return {finding.id: finding for finding in moeplan_lint(request, site or {}) if finding.severity != "info"}


H200 = {"hardware": "h200", "acceleratorsPerNode": 8, "engineVersion": "0.27.1"}
PAIR_SCRIPT = """
    export VLLM_NIXL_SIDE_CHANNEL_HOST=192.0.2.1
    CUDA_VISIBLE_DEVICES=0 VLLM_NIXL_SIDE_CHANNEL_PORT=5600 vllm serve Qwen/Qwen3-30B-A3B \\
      --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' &
    CUDA_VISIBLE_DEVICES=1 VLLM_NIXL_SIDE_CHANNEL_PORT=5601 vllm serve Qwen/Qwen3-30B-A3B \\
      --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}'
    """


def test_a_script_with_exports_and_continued_lines() -> None:
    found = lint_text(
        """
        #!/bin/bash
        set -e
        export GLOO_SOCKET_IFNAME="^lo,docker"
        exec vllm serve /models/Qwen3-235B-A22B-FP8 \\
          --tensor-parallel-size=8 \\
          --max-model-len 32k
        """,
        H200,
    )
    assert {"C-NET-002", "C-DIV-002", "C-DIV-010"} <= set(found)
    assert found["C-DIV-002"].line == 5
    assert found["C-DIV-002"].column == 3


def test_a_shell_in_a_container() -> None:
    found = lint_text(
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: m}
        spec:
          containers:
            - name: engine
              image: vllm/vllm-openai:v0.27.1
              command: [bash, -c]
              args:
                - |
                  export UCX_TLS=tcp,cuda_copy
                  python3 -m vllm.entrypoints.openai.api_server --model /models/DeepSeek-V3.1 \\
                    --headless -tp $(TP_SIZE) -ep
              env: [{name: TP_SIZE, value: "16"}]
              resources: {limits: {nvidia.com/gpu: 8}}
        """,
        H200,
        "pod.yaml",
    )
    assert {"C-NET-013", "C-DIV-004", "C-NET-010"} <= set(found)
    assert found["C-NET-013"].line == 13


def test_docker_run_says_what_a_pod_says() -> None:
    line = "docker run --gpus all {} -p 8000:8000 vllm/vllm-openai:v0.27.1 --model deepseek-ai/DeepSeek-V3.1 -tp 8 -ep"
    assert "C-NET-010" in lint_text(line.format(""), H200)
    assert "C-NET-010" not in lint_text(line.format("--ipc=host"), H200)
    assert "C-NET-010" not in lint_text(line.format("--shm-size 32g"), H200)


LEADER_WORKER_SET = """
    apiVersion: leaderworkerset.x-k8s.io/v1
    kind: LeaderWorkerSet
    metadata: {name: m}
    spec:
      replicas: 1
      leaderWorkerTemplate:
        size: 2
        leaderTemplate:
          spec:
            hostNetwork: true
            containers:
              - name: leader
                image: vllm/vllm-openai:v0.27.1
                args: [deepseek-ai/DeepSeek-V3.1, -tp, '16', -ep, --nnodes, $(LWS_GROUP_SIZE), --node-rank, '0',
                       --master-addr, $(LWS_LEADER_ADDRESS)]
                env: [{name: NCCL_SOCKET_IFNAME, value: ens1}]
                resources: {limits: {nvidia.com/gpu: 8}}
                volumeMounts: [{name: shm, mountPath: /dev/shm}]
            volumes: [{name: shm, emptyDir: {medium: Memory}}]
        workerTemplate:
          spec:
            hostNetwork: true
            containers:
              - name: worker
                image: vllm/vllm-openai:v0.27.1
                command: [vllm, serve]
                args: [deepseek-ai/DeepSeek-V3.1, -tp, '16', -ep, --nnodes, '2', --node-rank, '1', --headless]
                env: [{name: NCCL_SOCKET_IFNAME, value: ens1}, {name: GLOO_SOCKET_IFNAME, value: ens1}]
                livenessProbe: {httpGet: {path: /health, port: 8000}}
                startupProbe: {exec: {command: ['true']}, failureThreshold: 360}
                resources: {limits: {nvidia.com/gpu: 8}}
                volumeMounts: [{name: shm, mountPath: /dev/shm}]
            volumes: [{name: shm, emptyDir: {medium: Memory}}]
    """


def test_a_leader_worker_set() -> None:
    found = lint_text(LEADER_WORKER_SET, name="lws.yaml")
    assert set(found) == {"C-NET-001", "C-NET-014"}
    assert (found["C-NET-001"].line or 99) < 18 < (found["C-NET-014"].line or 0)


def test_a_list_and_a_stateful_set() -> None:
    found = lint_text(
        """
        apiVersion: v1
        kind: List
        items:
          - apiVersion: v1
            kind: Service
            metadata: {name: m}
          - apiVersion: apps/v1
            kind: StatefulSet
            metadata: {name: m}
            spec:
              template:
                spec:
                  containers:
                    - name: engine
                      image: vllm/vllm-openai:v0.27.1
                      args: [serve, deepseek-ai/DeepSeek-V3.2, --reasoning-parser, deepseek_v3]
                      livenessProbe: {httpGet: {path: /health, port: 8000}, initialDelaySeconds: 120}
        """,
        name="list.yaml",
    )
    assert set(found) == {"C-DS-002", "C-TIM-002"}


def test_two_halves_in_one_script_share_a_host() -> None:
    assert "C-PD-002" not in lint_text(PAIR_SCRIPT, {"nodes": 2})
    assert "C-PD-002" in lint_text(PAIR_SCRIPT.replace("5601", "5600"))
    assert "C-PD-001" not in lint_text(PAIR_SCRIPT.replace("export VLLM_NIXL", "export OTHER"), {"nodes": 2})


def test_one_half_on_several_nodes_announces_its_address() -> None:
    script = 'vllm serve m --kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}\''
    assert "C-PD-001" in lint_text(script, {"nodes": 2})
    assert "C-PD-001" not in lint_text(script, {"nodes": 1})
    assert "C-PD-001" not in lint_text(script)


def test_variables_from_elsewhere_are_not_known_and_give_no_error() -> None:
    found = lint_text(
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: m}
        spec:
          hostNetwork: true
          containers:
            - name: engine
              image: vllm/vllm-openai:v0.27.1
              args: [deepseek-ai/DeepSeek-V3.1, -tp, '16', -ep, --nnodes, '2', --node-rank, '0']
              envFrom: [{configMapRef: {name: c}}]
              volumeMounts: [{name: shm, mountPath: /dev/shm}]
          volumes: [{name: shm, emptyDir: {medium: Memory}}]
        """,
        name="pod.yaml",
    )
    assert found == {}


@pytest.mark.parametrize("text", ["", "echo hello", "vllm serve", "vllm serve --tensor-parallel-size x -dp -1"])
def test_hostile_scripts_are_judged_without_a_failure(text: str) -> None:
    moeplan_lint(LintRequest((ManifestSource("m", text),)), {"nodes": [], "driver": 7, "hardware": None})


@pytest.mark.parametrize(
    ("manifest", "owned"),
    [
        ("vllm serve m", True),
        ("python -m vllm.entrypoints.openai.api_server --model m", True),
        ("docker run --gpus all vllm/vllm-openai:v0.27.1 --model m", True),
        ("docker run --device /dev/kfd vllm/vllm-openai-rocm:v0.27.1 --model m", False),
        ("VLLM_ROCM_USE_AITER=1 vllm serve m", False),
        ("python -m sglang.launch_server --model m", False),
        ({"kind": "InferaDeployment", "spec": {"services": {"a": {"args": ["vllm", "serve"]}}}}, False),
        ({"kind": "Pod", "spec": {"containers": [{"command": ["vllm", "serve"], "args": ["m"]}]}}, True),
        ({"kind": "Pod", "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}, None),
        ({"kind": "Pod", "spec": {"containers": [{"command": ["nginx"]}]}}, False),
    ],
)
def test_whose_it_is(manifest: Any, owned: bool | None) -> None:
    assert moeplan_owns_manifest(manifest) is owned
