"""What the process and the allocator hold, and what of it is weights, KV cache and buffers of routing."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from moeplan_vllm_probe.hooks import find, require

__all__ = ["memory_of"]

_STATISTICS = {
    "allocatedBytes": "allocated_bytes.all.current",
    "allocatedPeakBytes": "allocated_bytes.all.peak",
    "reservedBytes": "reserved_bytes.all.current",
    "reservedPeakBytes": "reserved_bytes.all.peak",
    "activeBytes": "active_bytes.all.current",
    "inactiveSplitBytes": "inactive_split_bytes.all.current",
    "allocationRetries": "num_alloc_retries",
    "outOfMemory": "num_ooms",
}
"""Names here and in torch. Source: PyTorch documentation, ``torch.cuda.memory_stats``."""

_MALLINFO = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo(ctypes.Structure):
    """``struct mallinfo2``. Source: mallinfo(3)."""

    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO]


def memory_of(runner: Any, device: Any, probe_bytes: int) -> dict[str, Any]:
    """Return the members of a memory line, in bytes.

    Args:
        runner: the engine's model runner; it may not have a model yet.
        device: the device it runs on.
        probe_bytes: what the probe's own counters take.
    """
    model, caches = getattr(runner, "model", None), getattr(runner, "kv_caches", None)
    return {
        "process": _process(),
        "allocator": _allocator(device),
        "weights": _absent("no model is loaded") if model is None else _weights(model),
        "kvCache": {"bytes": _bytes(_tensors(caches))} if caches else _absent("the engine has no KV cache tensors"),
        "routing": _routing(runner),
        "probeBytes": probe_bytes,
    }


def _absent(reason: str) -> dict[str, str]:
    return {"notExposed": reason}


def _process() -> dict[str, Any]:
    """Return resident memory, its high-water mark, and what glibc's allocator holds. Source: proc_pid_status(5)."""
    rows = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines() if ":" in row)
    found = {name: int(rows[key].split()[0]) * 1024 for name, key in (("rssBytes", "VmRSS"), ("rssPeakBytes", "VmHWM"))}
    return {**found, "malloc": _malloc()}


def _malloc() -> dict[str, Any]:
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return _absent("the C library has no mallinfo2")
    function.restype = _Mallinfo
    info = function()
    return {"heapBytes": info.arena, "mappedBytes": info.hblkhd, "usedBytes": info.uordblks, "freeBytes": info.fordblks}


def _allocator(device: Any) -> dict[str, Any]:
    if getattr(device, "type", "cpu") != "cuda":
        return _absent("the device has no caching allocator of torch")
    statistics = require("torch").cuda.memory_stats(device)
    return {name: int(statistics[key]) for name, key in _STATISTICS.items() if key in statistics}


def _weights(model: Any) -> dict[str, Any]:
    """Return bytes of parameters and buffers as they lie on the device.

    Kernels may pack parameters elsewhere and leave them empty; how many did is said, for their bytes are not counted.
    """
    parameters = list(model.parameters())
    return {
        "bytes": _bytes(parameters),
        "bufferBytes": _bytes(model.buffers()),
        "emptied": sum(parameter.numel() == 0 for parameter in parameters),
    }


def _routing(runner: Any) -> dict[str, Any]:
    """Return the buffers that are named as those of routing; what kernels allocate inside is not among them."""
    capturer = getattr(runner, "routed_experts_capturer", None)
    manager = find("vllm.v1.worker.workspace", "_manager")
    found = {
        "capturerBytes": _bytes(_tensors(getattr(capturer, "device_buffer", None))),
        "workspaceBytes": _bytes(_tensors(getattr(manager, "_current_workspaces", None))),
    }
    if not any(found.values()):
        return _absent("dispatch and combine buffers lie inside the kernels, and the engine has no shared workspace")
    return found


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return [value] if hasattr(value, "untyped_storage") else []


def _bytes(tensors: Iterable[Any]) -> int:
    """Return the bytes of the tensors' storages, each once."""
    storages = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr() or id(storage)] = storage.nbytes()
    return sum(storages.values())
