"""The proof of the contract: SGLang on MI355X in at most 300 lines, on the shared rooms alone, beside the others."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from collections.abc import Callable
from importlib import invalidate_caches, metadata
from pathlib import Path
from typing import Any

import pytest

from moeplan.diagnosis.diagnose import diagnose
from moeplan.findings.listed import Listed
from moeplan.hooks.host import open_host
from moeplan.manifests.write import dump_yaml
from moeplan.testing import RuntimePluginSuite
from moeplan.testing.suite import REGENERATE
from moeplan.workflows.lint import lint

SOURCE = Path(__file__).with_name("sglang_plugin.py")
ROOMS = ("moeplan.errors", "moeplan.facts", "moeplan.hooks", "moeplan.manifests", "moeplan.model", "moeplan.units")
SHARED = Path(__file__).resolve().parents[2].parent / "shared"
IMAGE = "lmsysorg/sglang-rocm@sha256:3c01f73fe23aebf4a8853de0899a70b75c2af6c0409d2331353847aac4d3f906"
OVERLAY = "inferaimage/infera-overlay@sha256:6918eff34f201548a738dd592d2a1ece0627354d2e88f24a87cfa8f787a72a44"
FLAGS = {
    "--model-path": "/models/Kimi-K3",
    "--tp-size": "8",
    "--attention-backend": "aiter",
    "--mem-fraction-static": "0.97",
    "--context-length": "32768",
    "--max-running-requests": "16",
    "--max-mamba-cache-size": "16",
    "--language-only": None,
    "--disaggregation-transfer-backend": "mooncake",
}
"""Source: the recipe's manifest, as ``combos`` of the handed facts has it."""
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def sglang(installed: Path) -> Path:
    """Install the plugin as a distribution of its own."""
    shutil.copy(SOURCE, installed / "made_sglang.py")
    directory = installed / "moeplan_sglang_mi355x-0.1.0.dist-info"
    directory.mkdir()
    name = "moeplan-sglang-mi355x"
    told = "SGL-DP-001 SGL-MLA-001 SGL-PD-001 SGL-PD-002 SGL-HEADS-001"
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n\n{told}\n")
    (directory / "entry_points.txt").write_text("[moeplan]\nsglang-mi355x = made_sglang\n")
    invalidate_caches()
    return installed


def worker(role: str, node: str) -> dict[str, Any]:
    words = [word for flag in FLAGS.items() for word in flag if word is not None]
    transport = ["--kv-event-transport", "zmq", "--request-transport", "http"]
    common = ["--host", "0.0.0.0", "--port", "30000", "--disaggregation-mode", role]
    memory = {"cpu": "16", "memory": "768Gi", "amd.com/gpu": 8}
    mounts = (
        ("overlay", "/overlay", True),
        ("model", "/models", True),
        ("dshm", "/dev/shm", False),
        ("ib", "/dev/infiniband", False),
        ("host-libionic", "/host-libionic/libionic.so", True),
    )
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["/overlay/bin/infera-exec", "python3", "-m", "infera.engine.sglang", *common, *words, *transport],
        "env": [
            *variables(),
            {"name": "SGLANG_USE_AITER", "value": "1"},
            {"name": "HF_HUB_OFFLINE", "value": "1"},
        ],
        "resources": {"requests": memory, "limits": dict(memory)},
        "securityContext": {"privileged": True, "capabilities": {"add": ["IPC_LOCK", "SYS_PTRACE"]}},
        "volumeMounts": [{"name": n, "mountPath": path} | ({"readOnly": True} if r else {}) for n, path, r in mounts],
    }
    paths = {
        "ib": ("/dev/infiniband", "Directory"),
        "host-libionic": ("/usr/lib/x86_64-linux-gnu/libionic.so.1", "File"),
    }
    hosts = {"model": ("/srv/nvme/models", "Directory"), **paths}
    pod = {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "nodeSelector": {"kubernetes.io/hostname": node},
        "initContainers": [overlay()],
        "containers": [container],
        "volumes": [
            {"name": "overlay", "emptyDir": {}},
            {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
            *({"name": name, "hostPath": {"path": path, "type": kind}} for name, (path, kind) in hosts.items()),
        ],
    }
    head = {"componentType": "worker", "role": role, "replicas": 1, "port": 30000, "skipReadinessProbe": True}
    return {**head, "extraPodSpec": pod}


def overlay() -> dict[str, Any]:
    copy = ["sh", "-c", "cp -a /payload/. /overlay/"]
    mounts = [{"name": "overlay", "mountPath": "/overlay"}]
    return {"name": "infera-overlay", "image": OVERLAY, "command": copy, "volumeMounts": mounts}


def variables() -> list[dict[str, Any]]:
    paths = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP"}
    listed: list[dict[str, Any]] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in paths.items()
    ]
    return [*listed, {"name": "INFERA_ENGINE_READY_TIMEOUT", "value": "7200"}]


def server() -> dict[str, Any]:
    words = ["--host", "0.0.0.0", "--port", "8000", "--router-tokenizer-path", "/models/Kimi-K3"]
    words += ["--request-transport", "http", "--kv-event-transport", "zmq"]
    pod = worker("prefill", "gpu-node-a")["extraPodSpec"]
    small = {"cpu": "4", "memory": "8Gi"}
    container = pod["containers"][0] | {
        "command": ["/overlay/bin/infera-exec", "python3", "-m", "infera.server", *words],
        "env": variables(),
        "resources": {"requests": small, "limits": dict(small)},
        "volumeMounts": pod["containers"][0]["volumeMounts"][:2],
    }
    del container["securityContext"]
    volumes = [one for one in pod["volumes"] if one["name"] in ("overlay", "model")]
    kept = {"nodeSelector": pod["nodeSelector"], "initContainers": pod["initContainers"]}
    return {"componentType": "server", "extraPodSpec": {**kept, "containers": [container], "volumes": volumes}}


def pair() -> dict[str, Any]:
    services = {
        "server": server(),
        "prefill": worker("prefill", "gpu-node-a"),
        "decode": worker("decode", "gpu-node-b"),
    }
    return {
        "apiVersion": "infera.amd.com/v1alpha1",
        "kind": "InferaDeployment",
        "metadata": {"name": "kimi-k3-pd-sglang", "namespace": "infera"},
        "spec": {
            "backendFramework": "sglang",
            "discoveryBackend": "kubernetes",
            "nats": {"deploy": False},
            "services": services,
        },
    }


def linted(value: Any, runtime: str | None = "sglang-mi355x") -> Listed:
    name, text = ("start.sh", value) if isinstance(value, str) else ("deploy.yaml", dump_yaml(value))
    return lint({name: text.encode()}, runtime=runtime)


def ids(value: Any) -> set[str]:
    return {finding.id for finding in linted(value).findings if finding.severity != "info"}


def decode(deployment: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = deployment["spec"]["services"]["decode"]["extraPodSpec"]["containers"][0]
    return container


def set_flag(name: str, value: str | None) -> Change:
    def change(deployment: dict[str, Any]) -> None:
        words = decode(deployment)["command"]
        if value is None:
            at = words.index(name)
            del words[at : at + (1 if FLAGS[name] is None else 2)]
        elif name in words:
            words[words.index(name) + 1] = value
        else:
            words += [name, value]

    return change


def one_gpu(deployment: dict[str, Any]) -> None:
    for half in ("requests", "limits"):
        decode(deployment)["resources"][half]["amd.com/gpu"] = 1


def hipfile(deployment: dict[str, Any]) -> None:
    decode(deployment)["env"].append({"name": "INFERA_REQUIRE_NATIVE", "value": "mooncake,hipfile"})


def test_it_has_at_most_300_lines() -> None:
    assert len(SOURCE.read_text("utf-8").splitlines()) <= 300


def test_it_imports_shared_rooms_the_neutral_library_and_the_standard_library_alone() -> None:
    names = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(SOURCE.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    strange = {
        name
        for name in names
        if name is not None
        and not name.startswith(("moeplan_infera.", *(f"{room}." for room in ROOMS)))
        and name not in ROOMS
        and name.split(".")[0] not in sys.stdlib_module_names
    }
    assert strange == set()
    assert any(name is not None and name.startswith("moeplan_infera.") for name in names)


def test_the_recipe_without_its_defect_is_clean(sglang: Path) -> None:
    assert [f"{one.id}: {one.message}" for one in linted(pair()).findings if one.severity != "info"] == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (one_gpu, "R-ARG-026"),
        (set_flag("--disaggregation-transfer-backend", None), "R-ARG-021"),
        (set_flag("--mem-fraction-static", "0.80"), "R-ARG-025"),
        (set_flag("--language-only", None), "R-ARG-025"),
        (set_flag("--speculative-algorithm", "DSPARK"), "R-LOG-012"),
        (hipfile, "R-OVL-003"),
    ],
)
def test_it_finds_what_is_known_of_sglang(sglang: Path, change: Change, expected: str) -> None:
    deployment = pair()
    change(deployment)
    assert ids(deployment) == {expected}


def test_one_gpu_beside_tp_8_is_pointed_at(sglang: Path) -> None:
    deployment = pair()
    one_gpu(deployment)
    (found,) = (one for one in linted(deployment, None).findings if one.id == "R-ARG-026")
    text = dump_yaml(deployment).splitlines()
    assert found.line is not None
    assert text[found.line - 1].strip() == "amd.com/gpu: 1"
    assert (found.plugin, found.severity) == ("sglang-mi355x", "error")
    assert found.message == "amd.com/gpu is 1 with a tensor-parallel size of 8"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("--tp 32 --ep 32 --dp 4 --enable-dp-attention --moe-a2a-backend deepep", {"SGL-DP-001"}),
        ("--tp 16 --dp 16 --enable-dp-attention --nnodes 2 --cuda-graph-max-bs 8", set()),
        ("--tp 8 --dp 4", set()),
        ("--speculative-algorithm DSPARK", {"R-LOG-012"}),
        (
            "python3 -m sglang.launch_server --model moonshotai/Kimi-K2-Instruct --tp 8 --attention-backend aiter",
            {"SGL-HEADS-001"},
        ),
        ("python3 -m sglang.launch_server --model moonshotai/Kimi-K2-Instruct --tp 4 --attention-backend aiter", set()),
    ],
)
def test_it_reads_plain_starts_of_public_reports(sglang: Path, script: str, expected: set[str]) -> None:
    """Source: sgl-project/sglang#28915, #23769, ROCm/MAD#182, ROCm/aiter#726."""
    assert ids(script) == expected


@pytest.mark.parametrize(
    ("script", "judged"),
    [
        ("python3 -m sglang.launch_server --model m --tp 8", {"sglang-mi355x": 1}),
        ("CUDA_VISIBLE_DEVICES=0 python3 -m sglang.launch_server --model m", {}),
        ("vllm serve m", {}),
    ],
)
def test_it_knows_its_own(sglang: Path, script: str, judged: dict[str, int]) -> None:
    assert linted(script, None).judged == judged


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")
@pytest.mark.parametrize("report", ["REP-031", "REP-068", "REP-106", "REP-126"])
def test_logs_of_public_reports_are_known(sglang: Path, report: str, tmp_path: Path) -> None:
    cases = json.loads((SHARED / "cases/reports.json").read_bytes())
    listed = cases if isinstance(cases, list) else next(one for one in cases.values() if isinstance(one, list))
    (case,) = (one for one in listed if one["id"] == report)
    log = tmp_path / "sglang.log"
    log.write_text(f"[2026-10-01 10:00:00] {case['log_signature']}\n")
    with open_host() as host:
        (answer,) = host.log_signatures().answers
    assert "error" in {one.severity for one in diagnose(log, answer.value).findings}


def test_it_stands_beside_the_other_plugins(sglang: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shares facts with vllm-rocm-aiter: ids of one origin are no collision."""
    monkeypatch.undo()
    monkeypatch.syspath_prepend(str(sglang))
    names = {point.name for point in metadata.entry_points(group="moeplan")}
    assert {"sglang-mi355x", "vllm-rocm-aiter", "vllm-cuda", "vllm-cpu"} <= names
    with open_host() as host:
        assert [str(failure) for failure in host.failures] == []
        assert {"sglang-mi355x", "vllm-rocm-aiter"} <= {plugin.name for plugin in host.plugins}


SUITE = """
from moeplan.testing import LintCase, LintGolden, RuntimePluginSuite

class TestSglang(RuntimePluginSuite):
    plugin = "sglang-mi355x"
    negative = (LintCase("R-ARG-026", "deploy.yaml"), LintCase("R-LOG-012", "start.sh"))
    golden = (LintGolden("start.sh", "start.json"),)
    deadline_s = 120
"""


def test_it_passes_the_suite(sglang: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    deployment = pair()
    one_gpu(deployment)
    (sglang / "deploy.yaml").write_text(dump_yaml(deployment))
    (sglang / "start.sh").write_text("python3 -m sglang.launch_server --model m --speculative-algorithm DSPARK\n")
    (sglang / "made_sglang_suite.py").write_text(SUITE)
    invalidate_caches()
    suite: RuntimePluginSuite = import_module("made_sglang_suite").TestSglang()
    monkeypatch.setenv(REGENERATE, "1")
    with pytest.raises(pytest.fail.Exception, match="was written"):
        suite.test_goldens()
    monkeypatch.delenv(REGENERATE)
    for name in dir(suite):
        if name.startswith("test_"):
            getattr(suite, name)()
