"""The one file that looks at an engine's process: against a made /proc, and against a process of this host."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moeplan.collectors import engine_probe

PROGRAM = Path(engine_probe.__file__)
WORDS = (
    "/opt/ada/venv/bin/python3.11",
    "/opt/ada/venv/bin/vllm",
    "serve",
    "/data/ada/models/secret-model",
    "--api-key",
    "k-123456",
    "--tensor-parallel-size=8",
    "-dp",
    "2",
    "--enable-expert-parallel",
    "--dtype",
    "/tmp/odd",
    "--host",
    "10.1.2.3",
    "--kv-cache-dtype",
    "fp8_e4m3",
    "--served-model-name",
    "ada-model",
    "--max_model_len",
    "4096",
)
ENVIRON = (
    "PATH=/usr/bin",
    "HOME=/home/ada",
    "HF_TOKEN=hf_abcdefgh",
    "VLLM_API_KEY=k-123456",
    "VLLM_HOST_IP=10.1.2.3",
    "VLLM_USE_V1=1",
    "NCCL_DEBUG=WARN",
    "NCCL_SOCKET_IFNAME=eth0",
    "VLLM_CACHE_ROOT=/home/ada/.cache",
    "VLLM_NOTE=see https://ada@host/x",
    "OMP_NUM_THREADS=2",
    "CUDA_DEVICE_ORDER=10.9.8.7",
)
SECRETS = ("ada", "k-123456", "10.1.2.3", "10.9.8.7", "hf_abcdefgh", "secret-model", "/data", "/tmp/odd", "eth0", "pid")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with one engine (4711), its child, and a shell that started it."""
    root = tmp_path / "rootfs"
    packages = root / "opt/ada/venv/lib/python3.11/site-packages"
    for name, version in (("vllm", "0.32.0+cpu"), ("torch", "2.13.0"), ("Ada_Tools", "1.0")):
        directory = packages / f"{name}-{version}.dist-info"
        directory.mkdir(parents=True)
        (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: no\n")
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text('NAME=x\nPRETTY_NAME="Ubuntu 22.04.5 LTS (ada)"\n'.replace(" (ada)", ""))
    (root / "data/ada/models/secret-model").mkdir(parents=True)
    made = tmp_path / "proc"
    for pid, parent, words in (
        (100, 1, ("sh", "-c", "vllm serve " + WORDS[3])),
        (4711, 100, WORDS),
        (4712, 4711, ("VLLM::EngineCore",)),
        (5, 1, ("python3", "train.py")),
    ):
        one = made / str(pid)
        one.mkdir(parents=True)
        (one / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
        fields = ["S", str(parent), *["0"] * 17, "12345"]
        (one / "stat").write_text(f"{pid} (odd ) name) {' '.join(fields)} 0 0\n")
    engine = made / "4711"
    (engine / "environ").write_bytes("\0".join(ENVIRON).encode() + b"\0")
    (engine / "maps").write_text(
        "7f0000000000-7f0000001000 r-xp 0 08:01 42 /opt/ada/venv/lib/python3.11/site-packages/torch/lib/libtorch.so\n"
    )
    (engine / "cgroup").write_text("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope\n")
    (engine / "mountinfo").write_text(
        "600 500 0:99 / / rw,relatime - overlay overlay rw\n"
        "610 600 0:55 / /data/ada ro,relatime - nfs4 filer.example:/export/ada rw\n"
    )
    (engine / "root").symlink_to(root)
    (engine / "cwd").symlink_to("/data")
    (engine / "exe").symlink_to("/usr/bin/python3.11")
    (made / "stat").write_text("cpu 1 2 3\nbtime 1796055000\n")
    (made / "cpuinfo").write_text("processor : 0\nmodel name\t: AMD EPYC 9575F 64-Core Processor\n")
    return made


def found(proc: Path, tmp_path: Path) -> dict[str, Any]:
    return engine_probe.probe(4711, None, str(proc), str(tmp_path / "sys"))


def test_it_is_for_python_3_8_and_the_standard_library_alone() -> None:
    source = PROGRAM.read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {n.name for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
    assert "from __future__ import annotations" in source


def test_the_engine_is_told_from_the_shell_that_started_it_and_from_its_children(proc: Path) -> None:
    assert engine_probe.find(None, str(proc)) == [4711]
    assert engine_probe.find("train.py", str(proc)) == [5]
    assert engine_probe.find("no such", str(proc)) == []
    (proc / "6").mkdir()
    (proc / "6/cmdline").write_bytes(b"python3\0-m\0vllm.entrypoints.openai.api_server\0--model\0m\0")
    assert engine_probe.find(None, str(proc)) == [6, 4711]


def test_what_is_found(proc: Path, tmp_path: Path) -> None:
    told = found(proc, tmp_path)
    parts = told["parts"]
    assert parts["command"] == {
        "program": "vllm serve",
        "api-key": "<withheld>",
        "tensor-parallel-size": "8",
        "data-parallel-size": "2",
        "enable-expert-parallel": "true",
        "dtype": "<withheld>",
        "host": "<withheld>",
        "kv-cache-dtype": "fp8_e4m3",
        "served-model-name": "<withheld>",
        "max-model-len": "4096",
    }
    assert parts["variables"] == {
        "vllm_use_v1": "1",
        "nccl_debug": "WARN",
        "omp_num_threads": "2",
        "vllm_note": "<withheld>",
        "cuda_device_order": "<withheld>",
    }
    assert parts["packages"] == {"vllm": "0.32.0+cpu", "torch": "2.13.0"}
    assert parts["container"] == {"runtime": "kubepods", "root-filesystem": "overlay"}
    assert parts["storage"] == {"model-filesystem": "nfs4", "model-mount": "read-only"}
    assert parts["operating_system"]["distribution"] == "Ubuntu 22.04.5 LTS"
    assert parts["topology"]["processor-model"] == "AMD EPYC 9575F 64-Core Processor"
    assert told["started"] == 1796055000 + 12345 // os.sysconf("SC_CLK_TCK")
    lines = "ada-tools==1.0\ntorch==2.13.0\nvllm==0.32.0+cpu\n"
    assert told["distributionsDigest"] == "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
    assert told["distributions"] == 3


def test_no_secret_path_host_or_name_leaves_the_process(proc: Path, tmp_path: Path) -> None:
    text = json.dumps(found(proc, tmp_path))
    assert [secret for secret in SECRETS if secret in text] == []


def test_what_cannot_be_read_is_left_out_and_named(proc: Path, tmp_path: Path) -> None:
    for name in ("environ", "maps", "mountinfo", "cgroup"):
        (proc / "4711" / name).unlink()
    (proc / "4711/cwd").unlink()
    (proc / "4711/cmdline").write_bytes(b"vllm\0serve\0models/x\0")
    told = found(proc, tmp_path)
    assert told["failed"] == ["storage"], "a relative path and no working directory"
    assert told["parts"]["variables"] is None
    assert told["parts"]["container"] == {}


def test_one_line_over_standard_input_as_in_a_pod() -> None:
    words = [sys.executable, "-I", "-", f"--pid={os.getpid()}", "--directory=/"]
    done = subprocess.run(words, input=PROGRAM.read_bytes(), capture_output=True, timeout=60, check=True)
    told = json.loads(done.stdout)
    assert done.stdout.count(b"\n") == 1
    kind = subprocess.run(["stat", "--file-system", "--format", "%T", "/"], capture_output=True, text=True, check=True)
    assert told["parts"]["storage"]["model-filesystem"][:3] in kind.stdout + "ove"
    listed = {name.lower() for name in told["parts"]["packages"]}
    assert "numpy" in listed
    assert told["processes"] == 1
    absent = subprocess.run([*words[:3], "--pid=4194305"], input=PROGRAM.read_bytes(), capture_output=True, timeout=60)
    assert (absent.returncode, json.loads(absent.stdout)) == (3, {"parts": None, "processes": 0})


MATRIX = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m
GPU0\t X \tNV18\tSYS\tPIX\t0-55\t0
GPU1\tNV18\t X \tNV18\tNODE\t0-55\t0
GPU2\tSYS\tNV18\t X \tSYS\t56-111\t1
NIC0\tPIX\tNODE\tSYS\t X

Legend:
  X    = Self
  SYS  = Connection traversing PCIe
"""


def test_links_of_gpus_are_counted_and_those_of_nics_are_not() -> None:
    assert engine_probe.links_of_matrix(MATRIX) == {"NV18": 4, "SYS": 2}
    assert engine_probe.links_of_matrix("GPU0\tX\tCPU Affinity\nno matrix") == {}


def test_links_in_the_topology_of_the_amdgpu_driver(tmp_path: Path) -> None:
    for node, kinds in (("0", ("2",)), ("1", ("2", "11", "11")), ("2", ("11", "x"))):
        for number, kind in enumerate(kinds):
            link = tmp_path / "class/kfd/kfd/topology/nodes" / node / "io_links" / str(number)
            link.mkdir(parents=True)
            (link / "properties").write_text(f"type {kind}\nversion_major 0\n")
    assert engine_probe.gpu_links(str(tmp_path)) == {"gpu-links": "PCIe:2 XGMI:3"}


def test_without_accelerators_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine_probe.gpu_links(str(tmp_path)) == {}
    fake = tmp_path / "nvidia-smi"
    fake.write_text("#!/bin/sh\ncat <<'END'\n" + MATRIX + "END\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    assert engine_probe.gpu_links(str(tmp_path)) == {"gpu-links": "NV18:4 SYS:2"}
