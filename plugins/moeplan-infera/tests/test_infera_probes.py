"""The probes' scripts, run as they run in a pod, on a made sysfs, table of mounts and model directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from moeplan_infera.rendering import PodGround
from moeplan_infera.rendering_probes import node_job, storage_job

DIGEST = "sha256:" + "a" * 64
GROUND = PodGround(node="node-a", model_directory="/data/models", image=f"engine@{DIGEST}", overlay=f"overlay@{DIGEST}")
GIB = 2**30


def script_of(job: dict[str, Any]) -> str:
    """Return the script in a Job's command, after ``python3 -c``."""
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[-3:-1] == ["python3", "-c"]
    return str(command[-1])


def env_of(job: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in job["spec"]["template"]["spec"]["containers"][0]["env"]}


def run(script: str, values: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Run a script as the pod does: with its own variables and nothing of the project's on its path."""
    env = {"PATH": os.environ["PATH"], **values}
    done = subprocess.run([sys.executable, "-I", "-c", script], env=env, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    told: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, told


def node(rdma: str | None = None, driver: str | None = None) -> dict[str, Any]:
    ground = GROUND if rdma is None else PodGround(**{**_fields(GROUND), "rdma_library": rdma})
    return node_job("n", "infera", ground, accelerators=2, driver=driver, labels={"a": "b"})


def _fields(ground: PodGround) -> dict[str, Any]:
    import attrs

    return {field.name: getattr(ground, field.name) for field in attrs.fields(PodGround)}


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Return a sysfs with two MI355X, a display adapter, and a loaded driver."""
    card(tmp_path, 0, "0x1002", 288 * 10**9, 300 * 2**20)
    card(tmp_path, 1, "0x1002", 288 * 10**9, 0)
    card(tmp_path, 2, "0x1a03", 0, 0)
    (tmp_path / "module/amdgpu").mkdir(parents=True)
    (tmp_path / "module/amdgpu/version").write_text("6.16.6\n")
    return tmp_path


def card(root: Path, number: int, vendor: str, total: int, used: int) -> None:
    path = root / f"class/drm/card{number}/device"
    path.mkdir(parents=True)
    (path / "vendor").write_text(vendor + "\n")
    if total:
        (path / "mem_info_vram_total").write_text(f"{total}\n")
        (path / "mem_info_vram_used").write_text(f"{used}\n")


def test_a_node_with_free_gpus_and_the_right_driver_is_well(sysfs: Path) -> None:
    job = node(driver="6.16.6")
    code, told = run(script_of(job), {**env_of(job), "SYS": str(sysfs)})
    assert (code, told["faults"], told["driver"]) == (0, [], "6.16.6")
    assert [one["total"] for one in told["accelerators"]] == [288 * 10**9] * 2


def test_memory_in_use_another_driver_and_too_few_gpus_are_faults(sysfs: Path) -> None:
    (sysfs / "class/drm/card1/device/mem_info_vram_used").write_text(str(200 * GIB))
    job = node(driver="6.14.0")
    code, told = run(script_of(job), {**env_of(job), "ACCELERATORS": "8", "SYS": str(sysfs)})
    assert code == 1
    assert [fault.split(" ")[0] for fault in told["faults"]] == [
        "2",
        str(sysfs / "class/drm/card1/device"),
        "the",
    ]
    assert "214748364800 bytes in use" in told["faults"][1]


def test_no_rdma_device_is_a_fault_only_where_kv_moves_between_nodes(sysfs: Path) -> None:
    values = {"SYS": str(sysfs)}
    job = node(rdma="/usr/lib/libionic.so.1")
    code, told = run(script_of(job), {**env_of(job), **values})
    assert told["rdmaDevices"] in (None, 0), "this machine has RDMA devices"
    assert code == 1
    assert "the library libibverbs.so.1 opens no RDMA device" in told["faults"]
    assert run(script_of(node()), {**env_of(node()), **values})[0] == 0


def test_the_job_asks_for_all_gpus_and_ends(sysfs: Path) -> None:
    job = node(rdma="/usr/lib/libionic.so.1")
    spec = job["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert container["resources"]["limits"]["amd.com/gpu"] == container["resources"]["requests"]["amd.com/gpu"] == 2
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"], pod["restartPolicy"]) == (0, 3600, "Never")
    assert container["command"][0] == "/overlay/bin/infera-exec"
    assert (pod["hostNetwork"], container["securityContext"]["privileged"]) == (True, True)
    assert "hostNetwork" not in node()["spec"]["template"]["spec"]


MOUNTS = """\
20 1 259:1 / / rw,relatime - overlay overlay rw,lowerdir=/a
30 20 259:2 /models {directory} ro,relatime master:1 - {kind} {source} rw
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a model directory with a target of three files and a draft."""
    target, draft = tmp_path / "m/Kimi-K3", tmp_path / "m/Kimi-K3-DSpark"
    for path in (target, draft):
        path.mkdir(parents=True)
        (path / "config.json").write_text("{}")
    names = [f"model-{n}.safetensors" for n in range(3)]
    for name in names:
        (target / name).write_bytes(b"x" * 100)
    (draft / "model.safetensors").write_bytes(b"x")
    index = {"weight_map": {f"t{n}": name for n, name in enumerate([*names, names[0]])}}
    (target / "model.safetensors.index.json").write_text(json.dumps(index))
    return tmp_path / "m"


def storage(models: Path, *, kind: str = "xfs", more: str = "", **values: str) -> tuple[int, dict[str, Any]]:
    job = storage_job(
        "s", "infera", GROUND, target="Kimi-K3", draft="Kimi-K3-DSpark", shards=3, tensor_bytes=300, labels={}
    )
    table = models.parent / "mountinfo"
    table.write_text(MOUNTS.format(directory=models, kind=kind, source="/dev/nvme1n1") + more)
    return run(script_of(job), {**env_of(job), "DIRECTORY": str(models), "MOUNTS": str(table), **values})


def test_local_storage_with_every_file_is_well(models: Path) -> None:
    assert storage(models) == (
        0,
        {"filesystem": "xfs", "source": "/dev/nvme1n1", "files": 3, "bytes": 300, "faults": []},
    )


@pytest.mark.parametrize("kind", ["nfs4", "nfs", "overlay", "fuse.s3fs", "tmpfs"])
def test_storage_that_is_not_local_is_a_fault(kind: str, models: Path) -> None:
    code, told = storage(models, kind=kind)
    assert code == 1
    assert told["faults"][0] == f"{models} lies on {kind} (/dev/nvme1n1); local xfs or ext4 is wanted"


def test_a_network_mount_below_the_directory_is_seen(models: Path) -> None:
    more = f"31 30 0:50 / {models}/Kimi-K3 ro - nfs4 peer:/export rw\n"
    code, told = storage(models, more=more)
    assert code == 1
    assert told["faults"] == [f"{models}/Kimi-K3 lies on nfs4 (peer:/export); local xfs or ext4 is wanted"]


def test_a_directory_that_is_not_mounted_itself_is_a_fault(models: Path) -> None:
    (models.parent / "deeper").mkdir()
    (models / "Kimi-K3").rename(models.parent / "deeper/Kimi-K3")
    (models / "Kimi-K3-DSpark").rename(models.parent / "deeper/Kimi-K3-DSpark")
    (models.parent / "deeper").rename(models / "deeper")
    code, told = storage(models, DIRECTORY=str(models / "deeper"))
    assert (code, told["filesystem"]) == (1, "xfs")
    assert told["faults"] == [f"{models / 'deeper'} is no mount of its own; what it lies on cannot be told"]


@pytest.mark.parametrize(
    ("lost", "word"),
    [
        ("Kimi-K3/model-1.safetensors", "model-1.safetensors: No such file"),
        ("Kimi-K3/model.safetensors.index.json", "no index"),
        ("Kimi-K3/config.json", "holds no model"),
        ("Kimi-K3-DSpark/model.safetensors", "holds no model"),
    ],
)
def test_what_is_missing_is_named(lost: str, word: str, models: Path) -> None:
    (models / lost).unlink()
    code, told = storage(models)
    assert code == 1
    assert any(word in fault for fault in told["faults"])


def test_too_few_files_and_bytes_are_faults(models: Path) -> None:
    code, told = storage(models, SHARDS="96", BYTES="1453000000000")
    assert code == 1
    assert told["faults"] == [
        "3 files hold the weights, 96 are wanted",
        "3 files hold 300 bytes, at least 1453000000000 are wanted",
    ]


def test_without_a_draft_none_is_looked_for(models: Path) -> None:
    job = storage_job("s", "infera", GROUND, target="Kimi-K3", draft=None, shards=3, tensor_bytes=1, labels={})
    assert env_of(job)["DRAFT"] == ""
    (models / "Kimi-K3-DSpark/config.json").unlink()
    assert storage(models, DRAFT="")[0] == 0


def test_the_directory_itself_is_mounted_and_no_device_is_asked_for(models: Path) -> None:
    job = storage_job("s", "infera", GROUND, target="Kimi-K3", draft=None, shards=3, tensor_bytes=1, labels={})
    pod = job["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "model", "hostPath": {"path": "/data/models", "type": "Directory"}}]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "node-a"}
    assert set(pod["containers"][0]["resources"]["limits"]) == {"cpu", "memory"}
    assert env_of(job)["DIRECTORY"] == pod["containers"][0]["volumeMounts"][0]["mountPath"]
