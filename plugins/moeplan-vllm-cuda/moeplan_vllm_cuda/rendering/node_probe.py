"""Looks at a node from inside a pod; it runs alone, on Python 3.8 or later, and ends with 1 where something is wrong.

Variables: GPUS (how many are wanted), DRIVER (the first driver branch that will do, or 0), RDMA (names of the devices
that are wanted, separated by commas, or empty).
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
from typing import Any

MOST_USED_MIB = 1024
IPC_LOCK = 1 << 14
FIELDS = "index,name,driver_version,memory.total,memory.used"


def gpus() -> list[dict[str, Any]]:
    """Return what nvidia-smi tells of each GPU; its text alone where a value is none."""
    command = ["nvidia-smi", "--query-gpu=" + FIELDS, "--format=csv,noheader,nounits"]
    told = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60, text=True).stdout
    rows = [[cell.strip() for cell in line.split(",")] for line in told.splitlines() if line.strip()]
    return [dict(zip(FIELDS.split(","), row)) for row in rows]  # noqa: B905 (strict came with Python 3.10)


def rdma_devices() -> list[str] | None:
    """Return the devices that the library opens, and None where there is no library; no tool is asked."""
    try:
        library = ctypes.CDLL("libibverbs.so.1")
    except OSError:
        return None
    library.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    library.ibv_get_device_name.restype = ctypes.c_char_p
    library.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    count = ctypes.c_int(0)
    found = library.ibv_get_device_list(ctypes.byref(count))
    return [library.ibv_get_device_name(found[number]).decode() for number in range(count.value)]


def may_lock() -> bool:
    """Return whether memory can be pinned without a limit: by the limit itself, or by the capability."""
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    with open("/proc/self/status") as stream:
        effective = [line.split()[1] for line in stream if line.startswith("CapEff:")]
    return bool(effective) and bool(int(effective[0], 16) & IPC_LOCK)


def gpu_faults(found: list[dict[str, Any]], wanted: int, driver: int) -> list[str]:
    """Return what is wrong with the GPUs: too few, in use, an old driver."""
    faults = []
    if len(found) < wanted:
        faults.append(f"{len(found)} GPUs, {wanted} are wanted")
    for gpu in found:
        used, branch = gpu.get("memory.used", ""), gpu.get("driver_version", "").split(".")[0]
        if not used.isdigit() or int(used) > MOST_USED_MIB:
            faults.append(f"GPU {gpu.get('index')}: {used} MiB are in use by something else")
        if not branch.isdigit() or int(branch) < driver:
            faults.append(f"GPU {gpu.get('index')}: driver {gpu.get('driver_version')}, {driver} or later is wanted")
    return faults


def rdma_faults(found: list[str] | None, wanted: list[str], locks: bool) -> list[str]:
    """Return what is wrong with the RDMA devices that are wanted."""
    if found is None:
        return ["there is no libibverbs.so.1"]
    faults = [f"the library opens no device {name}" for name in wanted if name not in found]
    if not locks:
        faults.append("memory cannot be pinned: a limit on locked memory, and no IPC_LOCK")
    return faults


def main() -> None:
    """Look, say what was found, and end with 1 where something is wrong."""
    wanted, driver = int(os.environ["GPUS"]), int(os.environ["DRIVER"])
    names = [name for name in os.environ["RDMA"].split(",") if name]
    faults: list[str] = []
    found: list[dict[str, Any]] = []
    try:
        found = gpus()
        faults += gpu_faults(found, wanted, driver)
    except (OSError, subprocess.SubprocessError) as error:
        faults.append(f"nvidia-smi: {error}")
    devices, locks = rdma_devices(), may_lock()
    if names:
        faults += rdma_faults(devices, names, locks)
    print(json.dumps({"gpus": found, "rdmaDevices": devices, "pins": locks, "faults": faults}, indent=1))
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
