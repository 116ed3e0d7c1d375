"""Memory of this node, and of an engine's processes on it. Source: proc_meminfo(5), proc_pid_status(5), cgroups(7)."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from moeplan.collectors.engine_probe import find, parent

__all__ = ["HostMemory", "TreeMemory", "engine_processes", "host_memory", "memory_limit", "tree_memory"]

_KIB = 1024
_CGROUP_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


@attrs.frozen
class HostMemory:
    """Bytes of a node's main memory: all of it, and what is in use and cannot be had for the asking."""

    total_bytes: int
    used_bytes: int


@attrs.frozen
class TreeMemory:
    """Resident bytes of a process and its descendants, and the sum of what each had at most.

    Pages that processes share count in each of them, and their peaks need not fall together: both are upper bounds.
    """

    processes: int
    used_bytes: int
    high_water_bytes: int


def host_memory(root: Path = Path("/")) -> HostMemory | None:
    """Return the node's memory, or None where the kernel does not tell it."""
    rows = _kibibytes(root / "proc/meminfo")
    total, available = rows.get("MemTotal"), rows.get("MemAvailable")
    return None if total is None or available is None else HostMemory(total, max(0, total - available))


def memory_limit(root: Path = Path("/")) -> int | None:
    """Return what this process's container may use, or the whole node's memory where nothing limits it."""
    host = host_memory(root)
    limits = [] if host is None else [host.total_bytes]
    for name in _CGROUP_LIMITS:
        try:
            text = (root / name).read_text().strip()
        except OSError:
            continue
        limits += [int(text)] if re.fullmatch(r"[0-9]{1,18}", text) and int(text) else []
    return min(limits, default=None)


def engine_processes(pid: int | None, name: str | None, proc: str = "/proc") -> list[int]:
    """Return the engine's first processes: the one named, those whose command line holds a text, or vLLM's servers."""
    if pid is not None:
        return [pid] if Path(proc, str(pid)).exists() else []
    return find(name, proc)


def tree_memory(pids: list[int], proc: str = "/proc") -> TreeMemory:
    """Return the memory of processes and of all that descend from them; one that ends meanwhile counts nothing."""
    wanted = _descendants(pids, proc)
    found = [_kibibytes(Path(proc, str(pid), "status")) for pid in sorted(wanted)]
    rows = [row for row in found if "VmRSS" in row]
    used = sum(row["VmRSS"] for row in rows)
    return TreeMemory(len(rows), used, max(used, sum(row.get("VmHWM", row["VmRSS"]) for row in rows)))


def _descendants(pids: list[int], proc: str) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path(proc).iterdir():
        if entry.name.isdigit():
            of = parent(int(entry.name), proc)
            if of is not None:
                children.setdefault(of, []).append(int(entry.name))
    wanted, left = set(pids), list(pids)
    while left:
        for child in children.get(left.pop(), ()):
            if child not in wanted:
                wanted.add(child)
                left.append(child)
    return wanted


def _kibibytes(path: Path) -> dict[str, int]:
    """Return the rows of a file that are numbers of kB, in bytes."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return {}
    return {name: int(number) * _KIB for name, number in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.M)}
