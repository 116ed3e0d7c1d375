"""Looks at a node from inside a pod; it runs alone, on Python 3.8 or later, and ends with 1 where something is wrong.

Variables: ACCELERATORS (how many are wanted), RDMA ("yes" or "no"), DRIVER (the version expected, or "any"),
SYS (root of sysfs, for tests).
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import resource
from typing import Any

AMD = "0x1002"
LEAST_MEMORY = 100 * 10**9
MOST_USED = 2 * 2**30
IPC_LOCK = 1 << 14


def read(path: str) -> str | None:
    """Return a file's text, None where it cannot be read."""
    try:
        with open(path) as stream:
            return stream.read().strip()
    except OSError:
        return None


def accelerators(sys_root: str) -> list[dict[str, Any]]:
    """Return memory in bytes of each accelerator: there, and used by whatever runs."""
    found = []
    for device in sorted(glob.glob(sys_root + "/class/drm/card*/device")):
        total, used = read(device + "/mem_info_vram_total"), read(device + "/mem_info_vram_used")
        if read(device + "/vendor") == AMD and total is not None and int(total) >= LEAST_MEMORY:
            found.append({"device": device, "total": int(total), "used": int(used or 0)})
    return found


def rdma_devices() -> int | None:
    """Return how many devices the library opens, and None where there is no library; no tool is asked."""
    try:
        library = ctypes.CDLL("libibverbs.so.1")
    except OSError:
        return None
    library.ibv_get_device_list.restype = ctypes.c_void_p
    count = ctypes.c_int(0)
    library.ibv_get_device_list(ctypes.byref(count))
    return count.value


def may_lock() -> bool:
    """Return whether memory can be pinned without a limit: by the limit itself, or by the capability."""
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    status = read("/proc/self/status") or ""
    effective = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return bool(effective) and bool(int(effective[0], 16) & IPC_LOCK)


def main() -> None:
    """Look, say what was found, and end with 1 where something is wrong."""
    sys_root = os.environ.get("SYS", "/sys")
    wanted, rdma = int(os.environ["ACCELERATORS"]), os.environ["RDMA"] == "yes"
    expected = os.environ.get("DRIVER", "any")
    cards, driver, devices = accelerators(sys_root), read(sys_root + "/module/amdgpu/version"), rdma_devices()
    faults = []
    if len(cards) < wanted:
        faults.append(f"{len(cards)} accelerators, {wanted} are wanted")
    for card in cards:
        if card["used"] > MOST_USED:
            faults.append(f"{card['device']} has {card['used']} bytes in use by something else")
    if expected != "any" and driver != expected:
        faults.append(f"the loaded driver is {driver}, the site says {expected}")
    if rdma and not devices:
        faults.append("the library libibverbs.so.1 opens no RDMA device")
    if rdma and not may_lock():
        faults.append("memory cannot be pinned: a limit on locked memory, and no IPC_LOCK")
    told = {"accelerators": cards, "driver": driver, "rdmaDevices": devices, "pins": may_lock(), "faults": faults}
    print(json.dumps(told, indent=1))
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
