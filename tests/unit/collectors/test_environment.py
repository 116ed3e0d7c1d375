"""Facts of an environment, from what the probes print, the pod's status and the engine's own answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.collectors.environment import (
    Seen,
    environment_payload,
    environment_record,
    facts_of_engine,
    facts_of_node,
    facts_of_pod,
)
from moeplan.collectors.server_info import read_server_info
from moeplan.errors import InputError
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.evidence import Interval
from moeplan.model.observations import COMPLETE_ENVIRONMENT, ENVIRONMENT_PARTS, EnvironmentFact
from moeplan.wire.observation import ObservationContext
from moeplan.wire.pod_status import ContainerStatus, PodStatus

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
INFO = SHARED / "samples" / "made" / "vllm-server_info-cpu.json"
DIGEST = "sha256:" + "5" * 64
ENGINE = {
    "parts": {
        "command": {"program": "vllm serve", "tensor-parallel-size": "8"},
        "packages": {"vllm": "0.32.0"},
        "variables": None,
        "operating_system": {"kernel": "6.8.0"},
        "unknown_part": {"x": "y"},
    },
    "started": 1796055000,
    "distributions": 213,
    "distributionsDigest": DIGEST,
}
NONE_LOOKS = [
    {"what": "accelerators", "how": "nvidia-smi --query-gpu", "outcome": "failed"},
    {"what": "accelerators", "how": "/sys/class/drm/card*/device", "outcome": "not_found"},
    {"what": "accelerators", "how": "/proc/driver/nvidia/gpus", "outcome": "not_found"},
    {"what": "driver", "how": "/sys/module", "outcome": "not_found"},
]


def told(facts: list[EnvironmentFact]) -> dict[tuple[str, str], str]:
    return {(fact.part, fact.name): fact.value for fact in facts}


def test_facts_of_a_process() -> None:
    assert told(facts_of_engine(ENGINE)) == {
        ("command", "program"): "vllm serve",
        ("command", "tensor-parallel-size"): "8",
        ("packages", "vllm"): "0.32.0",
        ("packages", "distributions"): f"{DIGEST} of 213",
        ("operating_system", "kernel"): "6.8.0",
        ("runtime", "engine"): "vllm",
        ("runtime", "version"): "0.32.0",
        ("runtime", "started"): "2026-11-30T16:10:00Z",
    }


def test_facts_of_a_node_with_accelerators() -> None:
    values = {
        "name": "gpu-host-7",
        "accelerators": 8,
        "acceleratorModel": "NVIDIA H200",
        "gpuMemoryBytes": 150_754_820_096,
        "driver": "580.65.06",
        "rdmaDevices": ["mlx5_0", "mlx5_1"],
        "networkInterface": "bond0",
        "memlockBytes": 2**53 - 1,
    }
    found = told(facts_of_node({"values": values, "looks": []}))
    assert found == {
        ("accelerator", "count"): "8",
        ("accelerator", "model"): "NVIDIA H200",
        ("accelerator", "memory-bytes"): "150754820096",
        ("driver", "version"): "580.65.06",
        ("network", "rdma-devices"): "mlx5_0 mlx5_1",
        ("operating_system", "memlock-bytes"): str(2**53 - 1),
    }


def test_a_node_without_accelerators_says_so_only_where_the_kernel_has_none() -> None:
    none = told(facts_of_node({"values": {}, "looks": NONE_LOOKS}))
    assert none["accelerator", "count"] == "0"
    assert none["driver", "version"].startswith("none")
    for index in range(1, 4):
        spoilt = [dict(row, outcome="timed_out") if at == index else row for at, row in enumerate(NONE_LOOKS)]
        assert facts_of_node({"values": {}, "looks": spoilt}) == []
        assert facts_of_node({"values": {}, "looks": NONE_LOOKS[:index] + NONE_LOOKS[index + 1 :]}) == []


def test_every_container_that_lends_code_is_named_by_its_image() -> None:
    containers = (
        ContainerStatus("init", "copy-plugin", DIGEST, 0, None),
        ContainerStatus("container", "engine", "sha256:" + "6" * 64, 2, None),
        ContainerStatus("container", "side.car", None, 1, None),
    )
    found = told(facts_of_pod(PodStatus("p", "ns", "n", "Running", None, containers)))
    assert found == {
        ("container", "runtime"): "kubernetes",
        ("container", "image-init-0"): DIGEST,
        ("container", "image-container-1"): "sha256:" + "6" * 64,
        ("container", "image-container-2"): "no digest in the status",
        ("container", "restarts"): "3",
    }


def test_the_payload_holds_each_fact_once_and_every_gap() -> None:
    facts = (
        EnvironmentFact("container", "runtime", "kubernetes", "kubectl"),
        EnvironmentFact("container", "runtime", "kubepods", "engine-probe"),
        EnvironmentFact("command", "program", "vllm serve", "engine-probe"),
    )
    payload = environment_payload(Seen("node-1", "pod", facts))
    assert [fact.value for fact in payload.facts] == ["vllm serve", "kubernetes"]
    assert {gap.part for gap in payload.gaps} == set(ENVIRONMENT_PARTS) - {"command", "container"}
    assert list(payload.faults()) == []
    context = ObservationContext(
        DIGEST, Deployment(DIGEST, None, (RuntimeIdentity("serve", "oci_image", DIGEST),), None, None, None, None, None)
    )
    interval = Interval("2026-11-30T16:16:52Z", "2026-11-30T16:16:53Z")
    made = environment_record(Seen("node-1", "pod", facts, 1796055000), context, interval)
    assert made.record.engine_start == "2026-11-30T16:10:00Z"
    assert list(made.files) == [made.path]


@pytest.mark.shared
@pytest.mark.skipif(not INFO.is_file(), reason="the shared samples are not here")
def test_server_info_of_a_real_engine() -> None:
    data = INFO.read_bytes()
    assert read_server_info(data) == {
        "sharding": {
            "tensor_parallel_size": "1",
            "pipeline_parallel_size": "1",
            "data_parallel_size": "1",
            "expert_parallel_size": "1",
        },
        "precision": {"precision": "bfloat16", "quantization": "none", "kv_cache_precision": "auto"},
        "kernel_backend": {},
    }, "backends left at auto tell nothing"


def test_server_info_with_experts_spread_and_backends_chosen() -> None:
    config: dict[str, Any] = {
        "parallel_config": {"tensor_parallel_size": 4, "data_parallel_size": 8, "enable_expert_parallel": True},
        "model_config": {"dtype": "torch.bfloat16", "quantization": "fp8"},
        "attention_config": {"backend": "FLASHINFER_MLA"},
        "kernel_config": {"moe_backend": "/secret/path"},
    }
    found = read_server_info(json.dumps({"vllm_config": config}).encode())
    assert found["sharding"]["expert_parallel_size"] == "32"
    assert found["precision"]["quantization"] == "fp8"
    assert found["kernel_backend"] == {"attention_backend": "FLASHINFER_MLA"}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"vllm_config": 1}', b'{"error": "x"}', b"[" * 100_000])
def test_what_is_no_server_info_is_refused(data: bytes) -> None:
    with pytest.raises(InputError) as refused:
        read_server_info(data)
    assert refused.value.issues[0].code == "not_server_info"


def test_the_parts_are_those_of_the_model() -> None:
    assert set(COMPLETE_ENVIRONMENT) <= set(ENVIRONMENT_PARTS)
