"""Look at the node this runs on and print what is found as one line of JSON.

One file on the standard library alone, for Python 3.8 and later: ``moeplan site probe`` runs it here, or sends it to
``python3 -`` in a pod. Each look runs in a process of its own with a deadline, so that a stale NFS mount or a vendor's
library that crashes costs one row. Nothing is written and no environment variable is shown. It is longer than other
modules because it travels as one file.

    python3 node_probe.py [--node NAME] [--deadline SECONDS] [--directory PATH]…
    python3 - --in-pod [--node NAME] [--deadline SECONDS] [--directory PATH=WHERE_IT_IS_MOUNTED]…
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Row = dict[str, Any]
    Values = dict[str, Any]
    Found = tuple[str, Values]
    Function = Callable[[], Found]
    Tool = Callable[[list[str]], str]
    Mount = tuple[str, str, str, str, str]

__all__ = ["main", "probe"]

UNLIMITED = 2**53 - 1
MIB = 1 << 20
NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "gfs2", "glusterfs"),
        *("gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "virtiofs"),
        "wekafs",
    )
)
"""File systems whose bytes lie elsewhere, or may."""
LOCAL = frozenset(("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "ntfs3", "reiserfs", "xfs", "zfs"))
MAGIC = {
    0x58465342: ("xfs",),
    0xEF53: ("ext2", "ext3", "ext4"),
    0x6969: ("nfs", "nfs4"),
    0x794C7630: ("overlay",),
    0x01021994: ("tmpfs",),
    0x9123683E: ("btrfs",),
    0x2FC12FC1: ("zfs",),
    0xFF534D42: ("cifs", "smb3"),
    0xFE534D42: ("cifs", "smb3"),
    0x00C36400: ("ceph",),
    0x0BD00BD0: ("lustre",),
}
"""What statfs calls a file system. Source: linux/magic.h and statfs(2)."""


class Nothing(Exception):
    """The look was made and there is none."""


class Failed(Exception):
    """The look could not be made; the text says why."""


def clean(text: object, limit: int = 400) -> str:
    """Return text in one line, printable, and not longer than the limit."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else "?" for c in line)[:limit]


# --- one look in a process of its own ---


def look(what: str, how: str, function: Function, deadline: int, subject: str | None = None) -> tuple[Row, Values]:
    """Return the row of a look and its values; ``function`` returns (text found, values) or raises."""
    begun = time.monotonic()
    answer = apart(function, deadline)
    values = answer.pop("values", None) or {}
    row: Row = {"what": what, "subject": subject, "how": how, "milliseconds": int((time.monotonic() - begun) * 1000)}
    row.update(answer)
    return row, values


def apart(function: Function, deadline: int) -> Row:
    """Return what ``function`` answers in a child that is ended with all it started when the deadline passes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        answer_and_end(function, writing)
    os.close(writing)
    data, late = read_all(reading, time.monotonic() + deadline)
    os.close(reading)
    if late:
        end_group(child)
        return row_end("timed_out", why=f"no answer in {deadline} s")
    _pid, status = os.waitpid(child, 0)
    try:
        answer: Row = json.loads(data.decode())
    except ValueError:
        ended = f"it ended by signal {status & 0x7F}" if status & 0x7F else "it ended without an answer"
        return row_end("failed", why=ended)
    return answer


def answer_and_end(function: Function, writing: int) -> NoReturn:
    """Run in the child: write the answer and leave without returning."""
    try:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(silent, number)
        try:
            found, values = function()
            answer = dict(row_end("found", found=clean(found, 4000) or "yes"), values=values)
        except Nothing as error:
            answer = row_end("not_found", why=clean(error) or "there is none")
        except Failed as error:
            answer = row_end("failed", why=clean(error))
        except Exception as error:
            answer = row_end("failed", why=clean(f"{type(error).__name__}: {error}"))
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def row_end(outcome: str, found: str | None = None, why: str | None = None) -> Row:
    """Return how a row ends."""
    return {"outcome": outcome, "found": found, "why": why}


def read_all(reading: int, until: float) -> tuple[bytes, bool]:
    """Return the bytes up to the end and False, or what came before the deadline and True."""
    data = b""
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            return data, True
        part = os.read(reading, 65536)
        if not part:
            return data, False
        data += part


def end_group(child: int) -> None:
    """Kill a child and all it started; one that hangs in the kernel cannot be waited for and is left."""
    for kill in (os.killpg, os.kill):
        with suppress(OSError):
            kill(child, signal.SIGKILL)
    for _ in range(20):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)


def run_tool(argv: list[str]) -> str:
    """Return a tool's standard output; its deadline is that of the look."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True)
    except FileNotFoundError:
        raise Failed(f"{argv[0]} is not installed here") from None
    if done.returncode:
        told = (done.stderr or done.stdout).decode("utf-8", "replace")[:200]
        raise Failed(f"{argv[0]} exits {done.returncode}: {told}")
    return done.stdout.decode("utf-8", "replace")


def read_line(path: str) -> str | None:
    """Return the stripped text of a small file, or None where it is not there."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(4096).strip()
    except OSError:
        return None


def names_in(path: str) -> list[str]:
    """Return the sorted names in a directory; none where it is not there."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


# --- directories ---


def mounts(text: str) -> list[Mount]:
    """Return (device, root, mount point, type, source) of each line of mountinfo. Source: proc_pid_mountinfo(5)."""
    found = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if dash and len(left) >= 5 and len(right) >= 2:
            found.append((left[2], plain(left[3]), plain(left[4]), right[0], plain(right[1])))
    return found


def plain(text: str) -> str:
    """Return a field of mountinfo without its octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def mount_of(path: str, listed: list[Mount]) -> Mount | None:
    """Return the mount a path lies on: the longest match, and of equal ones the last, which hides the others."""
    best: Mount | None = None
    for mount in listed:
        point = mount[2].rstrip("/") + "/"
        if (path + "/").startswith(point) and (best is None or len(mount[2]) >= len(best[2])):
            best = mount
    return best


def magic_of(path: str) -> int | None:
    """Return the type that statfs gives, as a number, or None where libc cannot be asked."""
    if ctypes.sizeof(ctypes.c_long) != 8:
        return None
    buffer = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF


def is_local(filesystem: str, device: str, source: str, sys_root: str = "/sys") -> tuple[bool | None, str | None]:
    """Return whether a mount's bytes lie on this node, or None where that cannot be told; and a caveat or None."""
    if filesystem in NETWORK:
        return False, None
    if filesystem == "overlay":
        return None, "overlay: a container's own layer, not a disk that was mounted for models"
    if filesystem in ("tmpfs", "ramfs"):
        return True, "it lies in memory and is empty after a restart"
    if filesystem.startswith("fuse"):
        return None, f"{filesystem}: what lies behind it cannot be told"
    block = os.path.realpath(f"{sys_root}/dev/block/{device}")
    if re.match(r"/dev/(rbd|nbd|drbd)", source) or re.search(r"/nvme-fabrics/|/session\d+/|/rbd\d+|/nbd\d+", block):
        return False, "a block device over the network"
    return (True, None) if filesystem in LOCAL else (None, f"{filesystem} is not known here")


def directory(shown: str, here: str, in_pod: bool, mountinfo: str = "/proc/self/mountinfo") -> Found:
    """Return (text, values) for a directory: the file system it lies on, as mounted."""
    real = os.path.realpath(here)
    if not os.path.isdir(real):
        raise Nothing("no such directory")
    sizes = os.statvfs(real)
    with open(mountinfo, encoding="utf-8", errors="replace") as stream:
        mount = mount_of(real, mounts(stream.read()))
    if mount is None:
        raise Failed("no mount of mountinfo holds it")
    device, root, point, filesystem, source = mount
    local, caveat = is_local(filesystem, device, source)
    caveats = [caveat] if caveat else []
    caveats += placed(real, root, point, shown, in_pod)
    magic = magic_of(real)
    if magic in MAGIC and filesystem not in MAGIC[magic]:
        caveats.append(f"statfs says {MAGIC[magic][-1]}")
        local = None
    storage: Values = {"filesystem": clean(filesystem, 64), "source": clean(without_secret(source)) or "none"}
    if not in_pod:
        storage["mountPoint"] = point
    if local is not None:
        storage["local"] = local
    text = f"{filesystem} from {storage['source']}"
    return text, {
        "storage": storage,
        "totalBytes": sizes.f_blocks * sizes.f_frsize,
        "freeBytes": sizes.f_bavail * sizes.f_frsize,
        "caveats": [clean(one) for one in caveats],
    }


def placed(real: str, root: str, point: str, shown: str, in_pod: bool) -> list[str]:
    """Return what is to be said where a directory is no mount of its own."""
    on_root = root == shown.rstrip("/") if in_pod else point == "/"
    if on_root:
        return ["it lies on the node's root file system: a disk that belongs there may not be mounted"]
    if in_pod:
        return [] if root == "/" else [f"it is no mount of its own: it is {root} of what is mounted on the node"]
    return [] if point == real else [f"it is no mount of its own: it lies on the mount {point}"]


def without_secret(source: str) -> str:
    """Return a mount's source without a user and password that it may hold."""
    return re.sub(r"//[^/@]*@", "//", source)


# --- RDMA ---


NO_LIBRARY = "the library cannot be loaded"


def rdma_in_sysfs(sys_root: str = "/sys") -> Found:
    """Return (text, values): the devices that the kernel has."""
    names = names_in(sys_root + "/class/infiniband")
    if not names:
        raise Nothing("the kernel has none")
    return ", ".join(names), {"rdmaDevices": names}


def rdma_by_library(expected: list[str], library: str = "libibverbs.so.1") -> Found:
    """Return (text, values): the devices that libibverbs lists, which is what an engine can open."""
    try:
        verbs = ctypes.CDLL(library, use_errno=True)
    except OSError as error:
        raise Failed(f"{NO_LIBRARY}: {error}") from None
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_list.argtypes = [ctypes.POINTER(ctypes.c_int)]
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    count = ctypes.c_int(0)
    listed = verbs.ibv_get_device_list(ctypes.byref(count))
    if not listed and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    names = sorted(verbs.ibv_get_device_name(listed[i]).decode("utf-8", "replace") for i in range(count.value))
    lost = sorted(set(expected) - set(names))
    if lost:
        told = (
            "the library does not list it: the vendor's provider library does not fit, or /dev/infiniband is not here"
        )
        raise Failed(f"the kernel has {', '.join(lost)} and {told}")
    if not names:
        raise Nothing("the library lists none")
    return ", ".join(names), {"rdmaDevices": names}


def gid_index(sys_root: str = "/sys") -> Found:
    """Return (text, values): the index of RoCE v2 over IPv4, where it is one and the same on every device."""
    found: dict[str, list[int]] = {}
    for path in sorted(port_paths(sys_root)):
        types = path + "/gid_attrs/types"
        indices = sorted((name for name in names_in(types) if name.isdigit()), key=int)
        found[path] = [int(i) for i in indices if is_roce_v2(read_line(f"{types}/{i}")) and has_ipv4(path, i)]
    if not found or not any(found.values()):
        raise Nothing("no port has a GID of RoCE v2 over IPv4")
    same = {tuple(indices) for indices in found.values()}
    text = "; ".join(f"{path.split('/infiniband/')[1].split('/')[0]}: {found[path]}" for path in found)
    alike = len(same) == 1 and len(next(iter(same))) == 1
    return text, {"gidIndex": next(iter(same))[0]} if alike else {}


def port_paths(sys_root: str) -> Iterator[str]:
    """Yield the directory of every port of every device."""
    base = sys_root + "/class/infiniband"
    for device in names_in(base):
        for port in names_in(f"{base}/{device}/ports"):
            yield f"{base}/{device}/ports/{port}"


def is_roce_v2(kind: str | None) -> bool:
    """Return whether a GID's type is RoCE v2."""
    return (kind or "").lower() == "roce v2"


def has_ipv4(path: str, index: str) -> bool:
    """Return whether a GID holds an IPv4 address."""
    gid = read_line(f"{path}/gids/{index}") or ""
    return gid.startswith("0000:0000:0000:0000:0000:ffff:")


# --- accelerators ---


def accelerators(
    models: list[str], totals: list[int | None], frees: list[int | None], driver: str | None = None
) -> Found:
    """Return (text, values) of accelerators: how many, what they call themselves, the least memory and free memory."""
    count = max(len(models), len(totals))
    if not count:
        raise Nothing("it lists none")
    values: Values = {"accelerators": count}
    if len(set(models)) == 1 and models[0]:
        values["acceleratorModel"] = clean(models[0], 200)
    for key, sizes in (("gpuMemoryBytes", totals), ("gpuFreeBytes", frees)):
        known = [size for size in sizes if size is not None]
        if known and len(known) == len(sizes):
            values[key] = min(known)
    if driver:
        values["driver"] = clean(driver, 64)
    return f"{count} x {values.get('acceleratorModel', 'accelerators of several or no names')}", values


def by_nvidia_smi(run: Tool = run_tool) -> Found:
    """Ask nvidia-smi."""
    query = "--query-gpu=name,driver_version,memory.total,memory.free"
    rows = [line.split(",") for line in run(["nvidia-smi", query, "--format=csv,noheader,nounits"]).splitlines()]
    rows = [[cell.strip() for cell in row] for row in rows if len(row) == 4]
    drivers = sorted({row[1] for row in rows})
    totals, frees = [mebibytes(row[2]) for row in rows], [mebibytes(row[3]) for row in rows]
    return accelerators([row[0] for row in rows], totals, frees, drivers[0] if len(drivers) == 1 else None)


def by_amd_smi(run: Tool = run_tool) -> Found:
    """Ask amd-smi."""
    told = json.loads(run(["amd-smi", "static", "--asic", "--vram", "--driver", "--json"]))
    cards = told.get("gpu_data", []) if isinstance(told, dict) else told
    models = [str(card.get("asic", {}).get("market_name", "")) for card in cards]
    sizes = [card.get("vram", {}).get("size") for card in cards]
    totals = [mebibytes(size.get("value")) if isinstance(size, dict) else None for size in sizes]
    drivers = sorted({str(card.get("driver", {}).get("version", "")) for card in cards})
    return accelerators(models, totals, [], drivers[0] if len(drivers) == 1 else None)


def by_rocm_smi(run: Tool = run_tool) -> Found:
    """Ask rocm-smi."""
    argv = ["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--json"]
    told = json.loads(run(argv))
    cards = [told[name] for name in sorted(told) if re.match(r"card\d+$", name)]
    models = [str(card.get("Card Series") or card.get("Card series") or "") for card in cards]
    totals = [number(card.get("VRAM Total Memory (B)")) for card in cards]
    used = [number(card.get("VRAM Total Used Memory (B)")) for card in cards]
    frees = list(map(difference, totals, used))
    return accelerators(models, totals, frees, told.get("system", {}).get("Driver version"))


def by_drm(sys_root: str = "/sys") -> Found:
    """Look at what the amdgpu module says of its cards."""
    cards = [name for name in names_in(sys_root + "/class/drm") if re.match(r"card\d+$", name)]
    devices = [f"{sys_root}/class/drm/{card}/device" for card in cards]
    devices = [one for one in devices if read_line(one + "/mem_info_vram_total")]
    totals = [number(read_line(one + "/mem_info_vram_total")) for one in devices]
    used = [number(read_line(one + "/mem_info_vram_used")) for one in devices]
    frees = list(map(difference, totals, used))
    return accelerators([read_line(one + "/product_name") or "" for one in devices], totals, frees)


def by_nvidia_module(root: str = "/proc/driver/nvidia/gpus") -> Found:
    """Look at what the nvidia module says of its cards."""
    told = [read_line(f"{root}/{name}/information") or "" for name in names_in(root)]
    models = [match[1].strip() for match in (re.search(r"^Model:(.*)$", text, re.M) for text in told) if match]
    return accelerators(models, [], [])


def loaded_driver(sys_root: str = "/sys") -> Found:
    """Return (text, values): the version of the module that is loaded, which may not be the one that is installed."""
    for module in ("nvidia", "amdgpu"):
        version = read_line(f"{sys_root}/module/{module}/version")
        if version:
            return f"{module} {version}", {"driver": clean(version, 64)}
    raise Nothing("neither the nvidia nor the amdgpu module says a version")


def difference(total: int | None, used: int | None) -> int | None:
    """Return what is free, or None where it cannot be told."""
    return None if total is None or used is None else total - used


def number(text: object) -> int | None:
    """Return an integer, or None for what is none."""
    return int(str(text)) if str(text).strip().isdigit() else None


def mebibytes(text: object) -> int | None:
    """Return a whole number of MiB as bytes, or None for what is none."""
    count = number(text)
    return None if count is None else count * MIB


# --- the host ---


def memlock() -> Found:
    """Return (text, values): the limit of locked memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    shown = ["unlimited" if one == resource.RLIM_INFINITY else f"{one} bytes" for one in (soft, hard)]
    value = UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, UNLIMITED)
    return f"soft {shown[0]}, hard {shown[1]}", {"memlockBytes": value}


def host_memory(path: str = "/proc/meminfo") -> Found:
    """Return (text, values): the host's memory."""
    match = re.search(r"^MemTotal:\s+(\d+) kB$", read_line(path) or "", re.M)
    if match is None:
        raise Failed("no MemTotal")
    size = int(match[1]) * 1024
    return f"{size} bytes", {"hostMemoryBytes": size}


def shared_memory(path: str = "/dev/shm", in_pod: bool = False) -> Found:
    """Return (text, values): the size of /dev/shm; in a pod it is the probe's own, and no value."""
    sizes = os.statvfs(path)
    size = sizes.f_blocks * sizes.f_frsize
    return (f"{size} bytes in this pod", {}) if in_pod else (f"{size} bytes", {"sharedMemoryBytes": size})


def network_interface(path: str = "/proc/net/route") -> Found:
    """Return (text, values): the interface of the default route."""
    rows = [line.split() for line in (read_line(path) or "").splitlines()[1:]]
    names = [row[0] for row in rows if len(row) > 7 and row[1] == "00000000" and row[7] == "00000000"]
    if not names:
        raise Nothing("there is no default route")
    return ", ".join(names), {"networkInterface": names[0]} if len(set(names)) == 1 else {}


# --- all of it ---


def probe(node: str, directories: list[tuple[str, str]], in_pod: bool, deadline: int) -> dict[str, Any]:
    """Return the node's values, its directories and every look."""
    looks: list[Row] = []
    values: Values = {"name": node}

    def see(what: str, how: str, function: Function) -> Values:
        row, got = look(what, how, function, deadline)
        looks.append(row)
        return got

    tools = (
        ("nvidia-smi --query-gpu", by_nvidia_smi),
        ("amd-smi static --json", by_amd_smi),
        ("rocm-smi --json", by_rocm_smi),
        ("/sys/class/drm/card*/device", by_drm),
        ("/proc/driver/nvidia/gpus", by_nvidia_module),
    )
    for how, function in tools:
        fold(values, see("accelerators", how, function))
    values.update(see("driver", "/sys/module/{nvidia,amdgpu}/version: the module that is loaded", loaded_driver))
    values.update(rdma(see, looks, in_pod))
    values.update(see("gid_index", "/sys/class/infiniband/*/ports/*/gid_attrs/types", gid_index))
    values.update(see("memlock", "getrlimit(RLIMIT_MEMLOCK) of this process", memlock))
    values.update(see("host_memory", "/proc/meminfo", host_memory))
    values.update(see("shared_memory", "statvfs of /dev/shm", lambda: shared_memory(in_pod=in_pod)))
    if not in_pod:
        values.update(see("network_interface", "/proc/net/route: the default route", network_interface))
    listed = []
    for shown, here in directories:
        how = "/proc/self/mountinfo, longest match; statfs" + (" in a pod that mounts it by hostPath" if in_pod else "")
        row, got = look("filesystem", how, partial(directory, shown, here, in_pod), deadline, clean(shown, 1000))
        looks.append(row)
        listed.append(described(shown, got, row["outcome"]))
    return {"values": values, "directories": [one for one in listed if one], "looks": looks}


def rdma(see: Callable[[str, str, Function], Values], looks: list[Row], in_pod: bool) -> Values:
    """Return the devices: the library's, or the kernel's where there is no library; none where they differ.

    A pod does not mount /dev/infiniband, so that the library is not believed there where it lists fewer.
    """
    kernel = see("rdma_devices", "/sys/class/infiniband", rdma_in_sysfs)
    expected = kernel.get("rdmaDevices", [])
    library = see("rdma_devices", "ibv_get_device_list of libibverbs.so.1", lambda: rdma_by_library(expected))
    if library:
        return library
    row = looks[-1]
    if row["outcome"] == "not_found":
        return {"rdmaDevices": []}
    return kernel if in_pod or (row["why"] or "").startswith(NO_LIBRARY) else {}


def fold(values: Values, got: Values) -> None:
    """Add what another tool knows of the same accelerators; the first that counts them is believed."""
    if values.get("accelerators", got.get("accelerators")) == got.get("accelerators"):
        for key, value in got.items():
            values.setdefault(key, value)


def described(shown: str, got: Values, outcome: str) -> Values | None:
    """Return a directory's entry; None where it cannot even be said whether it is there."""
    if outcome not in ("found", "not_found"):
        return None
    base: Values = {"path": shown, "exists": outcome == "found", "storage": None, "totalBytes": None}
    return {**base, "freeBytes": None, "caveats": [], **got}


def main(argv: list[str]) -> NoReturn:
    """Print what is found."""
    parser = argparse.ArgumentParser(description="look at this node")
    parser.add_argument("--node", default=socket.gethostname().lower())
    parser.add_argument("--deadline", type=int, default=10)
    parser.add_argument("--in-pod", action="store_true")
    parser.add_argument("--directory", action="append", default=[], metavar="PATH")
    args = parser.parse_args(argv)
    pairs = [one.rpartition("=") if args.in_pod else ("", "", one) for one in args.directory]
    directories = [(shown or here, here) for shown, _sign, here in pairs]
    found = probe(args.node, directories, args.in_pod, args.deadline)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    # A child that hangs in the kernel must not keep this from ending.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
