"""The one file that looks at a node: against this host's own tools, made trees of sysfs, and made tools' output."""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moeplan.site import node_probe
from moeplan.site.probing import node_program

HOST = "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
NFS = "90 22 0:55 / /data rw - nfs4 filer:/export rw,vers=4.2\n"


def _run(*arguments: str, before: str = "") -> Any:
    """Run the probe as a pod does: over standard input, without moeplan on the path."""
    program = before + node_program().read_text("utf-8")
    words = [sys.executable, "-I", "-", "--node=node-a", *arguments]
    done = subprocess.run(words, input=program, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def _row(told: Any, what: str) -> Any:
    return [row for row in told["looks"] if row["what"] == what][-1]


def test_it_is_for_python_3_8_and_the_standard_library_alone() -> None:
    source = node_program().read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {n.name for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
    assert "from __future__ import annotations" in source  # annotations hold types that 3.8 cannot evaluate
    assert not any(isinstance(node, ast.Match) for node in ast.walk(tree))


@pytest.mark.skipif(shutil.which("findmnt") is None or shutil.which("stat") is None, reason="needs util-linux")
def test_directories_are_told_as_findmnt_and_coreutils_tell_them(tmp_path: Path) -> None:
    paths = [str(tmp_path), "/proc", "/"]
    told = _run(*(f"--directory={path}" for path in paths))
    for path, found in zip(paths, told["directories"], strict=True):
        words = ["findmnt", "--noheadings", "--raw", "--output", "FSTYPE,SOURCE,TARGET", "--target", path]
        shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
        shown[1] = shown[1].partition("[")[0]  # of a bind mount: the directory within its source
        assert [found["storage"][key] for key in ("filesystem", "source", "mountPoint")] == shown
        words = ["stat", "--file-system", "--format", "%b %S", path]
        blocks, size = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        assert found["totalBytes"] == int(blocks) * int(size)
        assert found["exists"] is True


def test_the_host_is_told_as_the_system_tells_it() -> None:
    told = _run()
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    assert told["values"]["memlockBytes"] == (2**53 - 1 if soft == resource.RLIM_INFINITY else soft)
    assert told["values"]["hostMemoryBytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert told["values"]["name"] == "node-a"
    assert {row["what"] for row in told["looks"]} >= {"accelerators", "driver", "rdma_devices", "memlock", "gid_index"}
    for row in told["looks"]:
        assert (row["found"] is None) == (row["outcome"] != "found")
        assert (row["why"] is None) == (row["outcome"] == "found")


def test_a_limit_that_is_set_is_the_limit_that_is_told() -> None:
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    lower = 65_536 if soft == resource.RLIM_INFINITY else min(soft, 65_536)
    before = f"import resource; resource.setrlimit(resource.RLIMIT_MEMLOCK, ({lower}, {soft}))\n"
    source = node_program().read_text("utf-8").replace("from __future__ import annotations\n", "")
    program = "from __future__ import annotations\n" + before + source
    words = [sys.executable, "-I", "-"]
    done = subprocess.run(words, input=program, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["values"]["memlockBytes"] == lower


def test_a_directory_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    told = _run(f"--directory={tmp_path}/none")
    assert told["directories"][0]["exists"] is False
    assert told["directories"][0]["storage"] is None
    assert _row(told, "filesystem")["why"] == "no such directory"


def test_in_a_pod_the_path_is_the_nodes_and_not_the_pods(tmp_path: Path) -> None:
    told = _run("--in-pod", f"--directory=/data/a=b={tmp_path}")
    found = told["directories"][0]
    assert (found["path"], found["exists"]) == ("/data/a=b", True)
    assert "mountPoint" not in found["storage"]
    assert "sharedMemoryBytes" not in told["values"]
    assert "in this pod" in _row(told, "shared_memory")["found"]
    assert not [row for row in told["looks"] if row["what"] == "network_interface"]


@pytest.mark.parametrize(
    ("body", "outcome", "why"),
    [
        ("import time; time.sleep(60)", "timed_out", "no answer in 1 s"),
        ("import os; os.kill(os.getpid(), 11)", "failed", "it ended by signal 11"),
        ("import os; os._exit(3)", "failed", "it ended without an answer"),
        ("raise ValueError('a\\x1bb\\nc')", "failed", "ValueError: a?b c"),
        ("import subprocess; subprocess.run(['sleep', '60'])", "timed_out", "no answer in 1 s"),
    ],
)
def test_a_look_that_hangs_or_crashes_costs_its_row(body: str, outcome: str, why: str) -> None:
    source = node_program().read_text("utf-8")
    broken = source.replace('if __name__ == "__main__":', f'def memlock():\n    {body}\n\n\nif __name__ == "__main__":')
    words = [sys.executable, "-I", "-", "--deadline=1"]
    done = subprocess.run(words, input=broken, capture_output=True, text=True, timeout=30, check=True)
    told = json.loads(done.stdout)
    row = _row(told, "memlock")
    assert (row["outcome"], row["why"], row["found"]) == (outcome, why, None)
    assert _row(told, "host_memory")["outcome"] == "found"
    assert "memlockBytes" not in told["values"]


# --- mounts ---


@pytest.mark.parametrize(
    ("path", "text", "point", "filesystem"),
    [
        ("/data/models", HOST + NFS, "/data", "nfs4"),
        ("/data", HOST + NFS, "/data", "nfs4"),
        ("/database", HOST + NFS, "/", "ext4"),
        ("/data/a b/c", HOST + NFS + r"91 90 259:9 / /data/a\040b rw - xfs /dev/md0 rw" + "\n", "/data/a b", "xfs"),
        ("/data", HOST + NFS + "92 22 259:9 / /data rw shared:3 master:2 - xfs /dev/md0 rw\n", "/data", "xfs"),
        ("/", HOST, "/", "ext4"),
    ],
)
def test_the_longest_mount_counts_and_of_equal_ones_the_last(path: str, text: str, point: str, filesystem: str) -> None:
    found = node_probe.mount_of(path, node_probe.mounts(text))
    assert found is not None
    assert (found[2], found[3]) == (point, filesystem)


def test_lines_of_another_form_are_no_mounts() -> None:
    assert node_probe.mounts("garbage\n1 2 3:4 / /x rw\n\n1 - 2\n") == []
    assert node_probe.mount_of("/x", []) is None


@pytest.mark.parametrize(
    ("filesystem", "source", "local", "word"),
    [
        ("xfs", "/dev/nvme0n1", True, None),
        ("nfs4", "filer:/export", False, None),
        ("cifs", "//filer/share", False, None),
        ("overlay", "overlay", None, "container's own layer"),
        ("tmpfs", "tmpfs", True, "memory"),
        ("fuse.s3fs", "s3fs", None, "cannot be told"),
        ("ext4", "/dev/rbd0", False, "over the network"),
        ("newfs", "/dev/sda", None, "not known"),
    ],
)
def test_what_is_local_and_what_cannot_be_told(
    filesystem: str, source: str, local: bool | None, word: str | None
) -> None:
    told, caveat = node_probe.is_local(filesystem, "259:1", source, "/nonexistent")
    assert told is local
    assert (caveat is None) if word is None else (caveat is not None and word in caveat)


@pytest.mark.parametrize(
    ("block", "local"),
    [
        ("devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1", True),
        ("devices/virtual/nvme-fabrics/ctl/nvme1/nvme1n1", False),
        ("devices/platform/host2/session1/target2:0:0/2:0:0:1/block/sdb", False),
    ],
)
def test_a_block_device_over_the_network_is_not_local(tmp_path: Path, block: str, local: bool) -> None:
    (tmp_path / block).mkdir(parents=True)
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "dev/block/259:1").symlink_to(tmp_path / block)
    assert node_probe.is_local("xfs", "259:1", "/dev/x", str(tmp_path))[0] is local


def test_a_directory_below_a_mount_says_so_and_statfs_has_a_say(tmp_path: Path) -> None:
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(HOST, "utf-8")
    below = tmp_path / "models"
    below.mkdir()
    caveats = node_probe.directory(str(below), str(below), False, str(mountinfo))[1]["caveats"]
    assert "root file system" in caveats[0]
    mountinfo.write_text(HOST + f"9 22 259:3 / {tmp_path} rw - nfs4 filer:/export rw\n", "utf-8")
    text, values = node_probe.directory(str(below), str(below), False, str(mountinfo))
    assert text == "nfs4 from filer:/export"
    assert f"it lies on the mount {tmp_path}" in values["caveats"][0]
    # What is written there is not what the kernel has mounted; statfs of the real place tells.
    assert values["caveats"][1].startswith("statfs says ")
    assert "local" not in values["storage"]
    mountinfo.write_text(HOST + f"9 22 259:3 /data/models {below} rw - ext4 /dev/sda1 rw\n", "utf-8")
    caveats = node_probe.directory("/data/models", str(below), True, str(mountinfo))[1]["caveats"]
    assert "root file system" in caveats[0]
    mountinfo.write_text(HOST + f"9 22 259:3 /models {below} rw - ext4 /dev/sda1 rw\n", "utf-8")
    caveats = node_probe.directory("/data/models", str(below), True, str(mountinfo))[1]["caveats"]
    assert caveats[0] == "it is no mount of its own: it is /models of what is mounted on the node"
    mountinfo.write_text(HOST + f"9 22 259:3 / {below} rw - ext4 /dev/sda1 rw\n", "utf-8")
    assert node_probe.directory("/data/models", str(below), True, str(mountinfo))[1]["caveats"] == []


def test_a_password_in_a_mounts_source_is_not_shown() -> None:
    assert node_probe.without_secret("//user:secret@filer/share") == "//filer/share"
    assert node_probe.without_secret("https://user:secret@dav.example/x") == "https://dav.example/x"
    assert node_probe.without_secret("filer:/a@b") == "filer:/a@b"


# --- RDMA ---


def _device(root: Path, name: str, gids: dict[int, tuple[str, str]]) -> None:
    port = root / f"class/infiniband/{name}/ports/1"
    for folder in ("gid_attrs/types", "gids"):
        (port / folder).mkdir(parents=True)
    for index, (kind, gid) in gids.items():
        (port / f"gid_attrs/types/{index}").write_text(kind + "\n", "utf-8")
        (port / f"gids/{index}").write_text(gid + "\n", "utf-8")


V4 = "0000:0000:0000:0000:0000:ffff:c000:0201"
V6 = "fe80:0000:0000:0000:0a00:27ff:fe00:0000"


def test_the_gid_index_is_that_of_roce_v2_over_ipv4_where_all_ports_agree(tmp_path: Path) -> None:
    gids = {0: ("IB/RoCE v1", V6), 1: ("RoCE v2", V6), 2: ("IB/RoCE v1", V4), 3: ("RoCE v2", V4)}
    _device(tmp_path, "mlx5_0", gids)
    _device(tmp_path, "mlx5_1", gids)
    assert node_probe.gid_index(str(tmp_path)) == ("mlx5_0: [3]; mlx5_1: [3]", {"gidIndex": 3})
    assert node_probe.rdma_in_sysfs(str(tmp_path))[1] == {"rdmaDevices": ["mlx5_0", "mlx5_1"]}
    _device(tmp_path, "mlx5_2", {1: ("RoCE v2", V4)})
    assert node_probe.gid_index(str(tmp_path))[1] == {}


def test_without_devices_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(node_probe.Nothing):
        node_probe.rdma_in_sysfs(str(tmp_path))
    with pytest.raises(node_probe.Nothing):
        node_probe.gid_index(str(tmp_path))


_LIBRARY = """
#include <stdlib.h>
static const char *names[] = {NAMES};
void **ibv_get_device_list(int *count) { *count = COUNT; return (void **)names; }
const char *ibv_get_device_name(void *device) { return device; }
"""


@pytest.fixture(scope="module")
def verbs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what makes a library with the two functions of libibverbs that are called."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")

    def make(*names: str) -> str:
        folder = tmp_path_factory.mktemp("verbs")
        listed = ", ".join(f'"{name}"' for name in names) or "0"
        text = _LIBRARY.replace("NAMES", listed).replace("COUNT", str(len(names)))
        (folder / "verbs.c").write_text(text, "utf-8")
        target = folder / "libverbs.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", target, folder / "verbs.c"], check=True)
        return str(target)

    return make


def test_devices_are_those_that_the_library_lists(verbs: Any) -> None:
    assert node_probe.rdma_by_library(["ionic_0"], verbs("ionic_1", "ionic_0"))[1] == {
        "rdmaDevices": ["ionic_0", "ionic_1"]
    }
    with pytest.raises(node_probe.Nothing, match="lists none"):
        node_probe.rdma_by_library([], verbs())
    with pytest.raises(node_probe.Failed, match="the kernel has ionic_1 and the library does not list it"):
        node_probe.rdma_by_library(["ionic_0", "ionic_1"], verbs("ionic_0"))
    with pytest.raises(node_probe.Failed, match=node_probe.NO_LIBRARY):
        node_probe.rdma_by_library([], "libmoeplan-none.so.1")


@pytest.mark.parametrize(
    ("library", "in_pod", "values"),
    [
        ({"outcome": "found", "got": ["b"]}, False, {"rdmaDevices": ["b"]}),
        ({"outcome": "not_found", "why": "lists none"}, False, {"rdmaDevices": []}),
        ({"outcome": "failed", "why": node_probe.NO_LIBRARY}, False, {"rdmaDevices": ["a"]}),
        ({"outcome": "failed", "why": "the kernel has a"}, False, {}),
        ({"outcome": "failed", "why": "the kernel has a"}, True, {"rdmaDevices": ["a"]}),
    ],
)
def test_a_library_that_contradicts_the_kernel_gives_no_devices(
    library: dict[str, Any], in_pod: bool, values: dict[str, Any]
) -> None:
    looks: list[dict[str, Any]] = []

    def see(_what: str, how: str, _function: object) -> dict[str, Any]:
        if how == "/sys/class/infiniband":
            return {"rdmaDevices": ["a"]}
        looks.append(library)
        return {"rdmaDevices": library["got"]} if "got" in library else {}

    assert node_probe.rdma(see, looks, in_pod) == values


# --- accelerators ---

_NVIDIA = "NVIDIA H200, 580.65.06, 143771, 143100\nNVIDIA H200, 580.65.06, 143771, 52000\n"
_AMD = json.dumps(
    [
        {
            "gpu": index,
            "asic": {"market_name": "AMD Instinct MI355X"},
            "driver": {"name": "amdgpu", "version": "6.16.6"},
            "vram": {"type": "HBM3E", "size": {"value": 294896, "unit": "MB"}},
        }
        for index in range(8)
    ]
)
_ROCM = json.dumps(
    {
        "card1": {"Card Series": "MI300X", "VRAM Total Memory (B)": "100", "VRAM Total Used Memory (B)": "40"},
        "card0": {"Card Series": "MI300X", "VRAM Total Memory (B)": "100", "VRAM Total Used Memory (B)": "1"},
        "system": {"Driver version": "6.10.5"},
    }
)


def test_tools_output_is_read() -> None:
    mib = 1 << 20
    assert node_probe.by_nvidia_smi(lambda _argv: _NVIDIA)[1] == {
        "accelerators": 2,
        "acceleratorModel": "NVIDIA H200",
        "driver": "580.65.06",
        "gpuMemoryBytes": 143771 * mib,
        "gpuFreeBytes": 52000 * mib,
    }
    amd = {"accelerators": 8, "acceleratorModel": "AMD Instinct MI355X", "driver": "6.16.6"}
    amd_bytes = {"gpuMemoryBytes": 294896 * mib}
    assert node_probe.by_amd_smi(lambda _argv: _AMD)[1] == amd | amd_bytes
    assert node_probe.by_amd_smi(lambda _argv: json.dumps({"gpu_data": json.loads(_AMD)}))[1] == amd | amd_bytes
    assert node_probe.by_rocm_smi(lambda _argv: _ROCM)[1] == {
        "accelerators": 2,
        "acceleratorModel": "MI300X",
        "driver": "6.10.5",
        "gpuMemoryBytes": 100,
        "gpuFreeBytes": 60,
    }


def test_what_a_tool_does_not_know_is_left_out() -> None:
    told = node_probe.by_nvidia_smi(lambda _argv: "NVIDIA GB10, 580.1, [N/A], [N/A]\nOther, 580.2, 1, 1\n")[1]
    assert told == {"accelerators": 2}
    with pytest.raises(node_probe.Nothing):
        node_probe.by_nvidia_smi(lambda _argv: "No devices were found\n")
    with pytest.raises(ValueError, match="Expecting value"):
        node_probe.by_amd_smi(lambda _argv: "ERROR")


def test_modules_are_read_in_sysfs(tmp_path: Path) -> None:
    for card, used in (("card0", 10), ("card1", 30)):
        device = tmp_path / f"class/drm/{card}/device"
        device.mkdir(parents=True)
        (device / "mem_info_vram_total").write_text("100\n", "utf-8")
        (device / "mem_info_vram_used").write_text(f"{used}\n", "utf-8")
    (tmp_path / "class/drm/card2/device").mkdir(parents=True)  # a display chip without memory of its own
    (tmp_path / "module/amdgpu").mkdir(parents=True)
    (tmp_path / "module/amdgpu/version").write_text("6.16.6\n", "utf-8")
    assert node_probe.by_drm(str(tmp_path))[1] == {"accelerators": 2, "gpuMemoryBytes": 100, "gpuFreeBytes": 70}
    assert node_probe.loaded_driver(str(tmp_path)) == ("amdgpu 6.16.6", {"driver": "6.16.6"})
    (tmp_path / "gpus/0000:01:00.0").mkdir(parents=True)
    (tmp_path / "gpus/0000:01:00.0/information").write_text("Model: \t NVIDIA H200\nIRQ:  1\n", "utf-8")
    assert node_probe.by_nvidia_module(str(tmp_path / "gpus"))[1] == {
        "accelerators": 1,
        "acceleratorModel": "NVIDIA H200",
    }


def test_only_tools_that_count_alike_add_to_each_other() -> None:
    values: dict[str, Any] = {"name": "n"}
    node_probe.fold(values, {})
    node_probe.fold(values, {"accelerators": 8, "driver": "1"})
    node_probe.fold(values, {"accelerators": 4, "gpuFreeBytes": 1})
    node_probe.fold(values, {"accelerators": 8, "gpuFreeBytes": 2, "driver": "2"})
    assert values == {"name": "n", "accelerators": 8, "driver": "1", "gpuFreeBytes": 2}


def test_the_default_routes_interface(tmp_path: Path) -> None:
    table = tmp_path / "route"
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    one = "eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    lan = "eth1\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    table.write_text(head + lan + one, "utf-8")
    assert node_probe.network_interface(str(table)) == ("eth0", {"networkInterface": "eth0"})
    table.write_text(head + one + one.replace("eth0", "eth2"), "utf-8")
    assert node_probe.network_interface(str(table)) == ("eth0, eth2", {})
    table.write_text(head + lan, "utf-8")
    with pytest.raises(node_probe.Nothing):
        node_probe.network_interface(str(table))
