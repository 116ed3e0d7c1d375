"""Memory of a node and of an engine's processes, from files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeplan.collectors.host_memory import engine_processes, host_memory, memory_limit, tree_memory

KIB = 1024
MEMINFO = (
    "MemTotal:       1000000 kB\nMemFree:         100000 kB\nMemAvailable:    400000 kB\nHugePages_Total:       0\n"
)


def process(proc: Path, pid: int, parent: int, rss: int, most: int, command: str = "python") -> None:
    place = proc / str(pid)
    place.mkdir(parents=True)
    (place / "stat").write_text(f"{pid} (a (b) c) S {parent} " + "0 " * 40)
    (place / "status").write_text(f"Name:\tx\nVmHWM:\t{most:8} kB\nVmRSS:\t{rss:8} kB\nThreads:\t1\n")
    (place / "cmdline").write_text(command.replace(" ", "\0") + "\0")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    found = tmp_path / "proc"
    process(found, 10, 1, 100, 150, "vllm serve /models/m --port 8000")
    process(found, 11, 10, 200, 260, "VLLM::EngineCore")
    process(found, 12, 11, 5, 5)
    process(found, 20, 1, 999, 999, "another")
    return found


def test_an_engines_tree_is_its_server_and_all_that_descends_from_it(proc: Path) -> None:
    pids = engine_processes(None, None, str(proc))
    assert pids == [10]
    tree = tree_memory(pids, str(proc))
    assert (tree.processes, tree.used_bytes, tree.high_water_bytes) == (3, 305 * KIB, 415 * KIB)


def test_a_process_is_found_by_its_id_or_a_text_of_its_command(proc: Path) -> None:
    assert engine_processes(20, None, str(proc)) == [20]
    assert engine_processes(21, None, str(proc)) == []
    assert engine_processes(None, "--port 8000", str(proc)) == [10]
    assert engine_processes(None, "--port 9000", str(proc)) == []


def test_no_process_has_no_memory(proc: Path) -> None:
    tree = tree_memory([], str(proc))
    assert (tree.processes, tree.used_bytes, tree.high_water_bytes) == (0, 0, 0)
    (proc / "11/status").unlink()  # it ended meanwhile
    assert tree_memory([10], str(proc)).used_bytes == 105 * KIB


def test_a_nodes_memory_is_what_cannot_be_had(tmp_path: Path) -> None:
    assert host_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    found = host_memory(tmp_path)
    assert found is not None
    assert (found.total_bytes, found.used_bytes) == (1_000_000 * KIB, 600_000 * KIB)


@pytest.mark.parametrize(
    ("name", "text", "limit"),
    [
        ("memory.max", "max\n", 1_000_000 * KIB),
        ("memory.max", "4096000\n", 4_096_000),
        ("memory/memory.limit_in_bytes", "8192000\n", 8_192_000),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", 1_000_000 * KIB),
    ],
)
def test_a_containers_limit_is_the_total(tmp_path: Path, name: str, text: str, limit: int) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    place = tmp_path / "sys/fs/cgroup" / name
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert memory_limit(tmp_path) == limit
