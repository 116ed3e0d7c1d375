"""Scripts and probes are run, with a ``vllm``, a ``docker`` and an ``nvidia-smi`` that say what they are told."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cuda_sites import CASES, ENGINE, Case, files_of, objects_of, site_for, templates_of

_RECORD = """#!{python}
import json, os, sys
print(json.dumps({{"words": [os.path.basename(sys.argv[0]), *sys.argv[1:]], "environment": dict(os.environ)}}))
"""
Run = dict[str, Any]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder of programs that print their own words and environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("vllm", "docker", "vllm-router"):
        (folder / name).write_text(_RECORD.format(python=sys.executable))
        (folder / name).chmod(0o755)
    return folder


def run(tools: Path, *words: str, **environment: str) -> Run:
    """Run a command with the folder first on the path."""
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(words, env={"PATH": path, **environment}, capture_output=True, text=True, check=True)
    told: Run = json.loads(done.stdout)
    return told


def nodes_of(case: Case) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Return number, site's node and engine container of each node, in the order of the scripts."""
    made = []
    templates = templates_of(case)
    for number, node in enumerate(site_for(case)["nodes"], 1):
        role = node["roles"][0]
        part = {"leader": "/leader", "worker": "/worker"}.get(role, "")
        if case.profile == "pd_cluster":
            first = next(one["name"] for one in site_for(case)["nodes"] if one["roles"] == [role]) == node["name"]
            part = f"-{role}" + ("" if case.devices <= 16 else "/leader" if first else "/worker")
        [container] = [one["spec"]["containers"][0] for name, one in templates.items() if name.endswith(part)]
        made.append((number, node, container))
    return made


def expected(case: Case, node: dict[str, Any], container: dict[str, Any], number: int) -> list[str]:
    """Return the container's words with what Kubernetes, LeaderWorkerSet and a shell put in."""
    command = container["command"]
    words = shlex.split(command[2].removeprefix("exec ").replace("\\\n", " ")) if command[0] == "/bin/sh" else command
    same = [one for one in site_for(case)["nodes"] if case.profile != "pd_cluster" or one["roles"] == node["roles"]]
    index = [one["name"] for one in same].index(node["name"])
    known = {
        "$(LWS_WORKER_INDEX)": str(index),
        "$(LWS_LEADER_ADDRESS)": same[0]["address"],
        "$((LWS_WORKER_INDEX * 8))": str(8 * index),
    }
    return [known.get(word, word) for word in words]


@pytest.mark.parametrize("name", CASES)
def test_scripts_start_what_the_manifests_start(name: str, tools: Path, tmp_path: Path) -> None:
    case = CASES[name]
    files = files_of(case)
    for number, node, container in nodes_of(case):
        wanted = expected(case, node, container, number)
        environment = {one["name"]: one.get("value", "") for one in container["env"] if one["name"] != "POD_IP"}
        environment = {key: value.replace("$(POD_IP)", node["address"]) for key, value in environment.items()}

        for path in (f"serve-{number}-{node['name']}.sh", f"docker-{number}-{node['name']}.sh"):
            (tmp_path / path).write_text(files[path])
        bare = run(tools, "sh", str(tmp_path / f"serve-{number}-{node['name']}.sh"))
        assert [word.replace(f"{node['modelDirectory']}/", "/models/") for word in bare["words"]] == wanted
        assert environment.items() <= bare["environment"].items()

        words = run(tools, "sh", str(tmp_path / f"docker-{number}-{node['name']}.sh"))["words"]
        assert words[:2] == ["docker", "run"]
        place = words.index(ENGINE)
        assert [words[place - 1], *words[place + 1 :]] == wanted
        given = dict(words[at + 1].split("=", 1) for at, word in enumerate(words[:place]) if word == "--env")
        assert given == environment
        assert words[words.index("--volume") + 1] == f"{node['modelDirectory']}:/models:ro"
        assert ("/dev/infiniband" in words[:place]) is (case.devices > 8)


def test_a_worker_reckons_its_first_rank(tools: Path) -> None:
    [worker] = [one for name, one in templates_of(CASES["multi-node-dep-3"]).items() if name.endswith("/worker")]
    command = worker["spec"]["containers"][0]["command"]
    for index in (1, 2):
        words = run(tools, *command, LWS_WORKER_INDEX=str(index))["words"]
        assert words[words.index("--data-parallel-start-rank") + 1] == str(8 * index)


def test_the_router_is_told_where_the_roles_are(tools: Path, tmp_path: Path) -> None:
    files = files_of(CASES["pd-cluster"])
    for name in ("serve-router.sh", "docker-router.sh"):
        (tmp_path / name).write_text(files[name])
        words = run(tools, "sh", str(tmp_path / name))["words"]
        assert "vllm-router" in words
        assert words[words.index("--prefill") + 1] == "http://192.0.2.1:8000"
        assert words[words.index("--decode") + 1] == "http://192.0.2.2:8000"


def probe_container(case: Case, part: str) -> dict[str, Any]:
    """Return the container of the first probe of a kind."""
    found = [one for one in objects_of(case) if one["kind"] == "Job" and part in one["metadata"]["name"]]
    container: dict[str, Any] = found[0]["spec"]["template"]["spec"]["containers"][0]
    return container


def probe(case: Case, part: str) -> list[str]:
    """Return the command of the first probe of a kind."""
    command: list[str] = probe_container(case, part)["command"]
    return command


def look(command: list[str], path: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """Run a probe; its ``python3`` is this one."""
    words = [sys.executable, *command[1:]]
    done = subprocess.run(words, env={"PATH": path, **environment}, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("rows", "wanted", "driver", "fault"),
    [
        (["0, NVIDIA H200, 580.65.06, 143771, 4", "1, NVIDIA H200, 580.65.06, 143771, 4"], 2, 580, None),
        (["0, NVIDIA H200, 580.65.06, 143771, 4"], 2, 580, "1 GPUs, 2 are wanted"),
        (["0, NVIDIA H200, 580.65.06, 143771, 90000"], 1, 580, "GPU 0: 90000 MiB are in use by something else"),
        (["0, NVIDIA H200, 575.57.08, 143771, 4"], 1, 580, "GPU 0: driver 575.57.08, 580 or later is wanted"),
        (["0, NVIDIA H200, 575.57.08, 143771, 4"], 1, 0, None),
    ],
)
def test_the_node_probe(tools: Path, rows: list[str], wanted: int, driver: int, fault: str | None) -> None:
    (tools / "nvidia-smi").write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(rows) + "\nEND\n")
    (tools / "nvidia-smi").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    code, told = look(probe(CASES["single-node-tp"], "-node-"), path, GPUS=str(wanted), DRIVER=str(driver), RDMA="")
    assert (code, told["faults"]) == (0 if fault is None else 1, [] if fault is None else [fault])


def test_the_node_probe_without_the_tool_or_the_devices(tools: Path) -> None:
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho '0, NVIDIA H200, 580.1, 143771, 4'\n")
    (tools / "nvidia-smi").chmod(0o755)
    command = probe(CASES["multi-node-tp"], "-node-")
    values = {"GPUS": "1", "DRIVER": "580", "RDMA": "mlx5_77"}
    code, told = look(command, f"{tools}{os.pathsep}{os.environ['PATH']}", **values)
    assert code == 1
    assert any("libibverbs" in one or "mlx5_77" in one for one in told["faults"])
    code, told = look(command, "/nonexistent", **{**values, "RDMA": ""})
    assert (code, told["faults"][0].startswith("nvidia-smi: ")) == (1, True)


MOUNT = "36 35 98:0 / {path} rw,noatime - {kind} {source} rw\n"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a model directory with a target of two shards and a draft of one file."""
    target, draft = tmp_path / "models" / "target", tmp_path / "models" / "draft"
    for folder in (target, draft):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    names = ["model-1.safetensors", "model-2.safetensors"]
    for name in names:
        (target / name).write_bytes(bytes(100))
    index = {"weight_map": {"a": names[0], "b": names[1], "c": names[1]}}
    (target / "model.safetensors.index.json").write_text(json.dumps(index))
    (draft / "model.safetensors").write_bytes(bytes(10))
    return tmp_path / "models"


def storage(models: Path, kind: str = "xfs", **more: str) -> tuple[int, list[str], dict[str, Any]]:
    """Run the storage probe on a directory that is mounted as told."""
    (models.parent / "mounts").write_text(MOUNT.format(path=models, kind=kind, source="/dev/nvme0n1"))
    container = probe_container(CASES["multi-node-tep-dspark"], "-storage-")
    values = {one["name"]: one["value"] for one in container["env"]}
    values |= {"DIRECTORY": str(models), "TARGET": "target", "DRAFT": "draft", "BYTES": "200"}
    values |= {"MOUNTS": str(models.parent / "mounts")} | more
    code, told = look(container["command"], os.environ["PATH"], **values)
    return code, told["faults"], told


def test_the_storage_probe(models: Path) -> None:
    code, faults, told = storage(models)
    assert (code, faults) == (0, [])
    assert (told["filesystem"], told["files"], told["bytes"]) == ("xfs", 2, 200)
    assert storage(models, TARGET="draft", BYTES="10")[:2] == (0, [])


@pytest.mark.parametrize(
    ("kind", "more", "fault"),
    [
        ("nfs4", {}, "models lies on nfs4 (/dev/nvme0n1); a local disk is wanted"),
        ("xfs", {"BYTES": "201"}, "2 files hold 200 bytes, at least 201 are wanted"),
        ("xfs", {"DRAFT": "target/none"}, "target/none: No such file or directory"),
    ],
)
def test_the_storage_probe_finds(models: Path, kind: str, more: dict[str, str], fault: str) -> None:
    code, faults, _ = storage(models, kind, **more)
    assert code == 1
    assert faults[0].endswith(fault)


def test_the_storage_probe_misses_a_shard_and_a_mount(models: Path) -> None:
    (models / "target" / "model-2.safetensors").unlink()
    code, faults, _ = storage(models)
    assert (code, faults[0]) == (1, "model-2.safetensors: No such file or directory")
    code, faults, _ = storage(models, DIRECTORY=str(models / "target"), TARGET=".", DRAFT="", BYTES="0")
    assert faults[0] == f"{models / 'target'} is no mount of its own; what it lies on cannot be told"


@pytest.mark.parametrize("name", ["single-node-tep", "pd-cluster-4"])
def test_probes_stand_on_the_engines_nodes_and_ask_for_its_gpus(name: str) -> None:
    case = CASES[name]
    jobs = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in objects_of(case) if one["kind"] == "Job"
    }
    assert len(jobs) == 2 * len(site_for(case)["nodes"])
    for number, node in enumerate(site_for(case)["nodes"], 1):
        for part in ("node", "storage"):
            [spec] = [spec for key, spec in jobs.items() if key.endswith(f"-{part}-{number}")]
            assert spec["nodeSelector"] == {"kubernetes.io/hostname": node["name"]}
            [container] = spec["containers"]
            if part == "node":
                assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
            else:
                [volume] = spec["volumes"]
                assert volume["hostPath"] == {"path": node["modelDirectory"], "type": "Directory"}
