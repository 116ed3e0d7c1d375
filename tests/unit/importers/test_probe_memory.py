"""A probe's memory lines as rows: a recorded CPU engine, and a line of an accelerator reckoned by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.importers.probe_memory import probe_memory_rows
from moeplan.importers.probe_record import ProbeRecord, read_probe_record
from moeplan.model.observations import MEMORY_PARTS
from moeplan.model.series import series_faults

DATA = Path(__file__).parents[2] / "data/probe-vllm-cpu"
RECORDED = (DATA / "memory.jsonl").read_bytes()


def rows(record: ProbeRecord) -> dict[str, list[tuple[int, str]]]:
    table = probe_memory_rows(record, record.origin_ns, "gpu-0").table()
    assert list(series_faults(table, 3600 * 10**9)) == []
    found: dict[str, list[tuple[int, str]]] = {}
    for metric, value, state in zip(table.metric, table.value, table.state, strict=True):
        found.setdefault(metric, []).append((value, state))
    return found


def changed(**parts: Any) -> ProbeRecord:
    lines = [json.loads(row) for row in RECORDED.splitlines()[:2]]
    lines[1].update(parts)
    return read_probe_record("m", b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_a_cpu_engine_tells_its_cache_and_heap_and_the_rest_is_an_upper_bound() -> None:
    found = rows(read_probe_record("m", RECORDED))
    assert set(found) == {f"memory_{part}_bytes" for part in MEMORY_PARTS}
    assert found["memory_kv_cache_bytes"][0] == (0, "not_exposed")  # before the cache was made
    assert found["memory_kv_cache_bytes"][-1] == (1 << 30, "measured")
    heap, mapped, free, weights, buffers, probe = 215_339_008, 1_094_279_168, 5_509_632, 13_636_608, 524_352, 1_072
    rest = heap + mapped - free - weights - buffers - (1 << 30) - probe
    assert found["memory_activations_bytes"][-1] == (rest, "measured")
    assert set(found["memory_routing_buffers_bytes"]) == {(0, "measured")}  # one rank hands no token to another
    assert found["memory_allocator_bytes"][-1][0] > 1 << 30  # the cache is part of what malloc mapped


def test_an_accelerators_parts_add_up() -> None:
    record = changed(
        allocator={"allocatedBytes": 900, "reservedBytes": 1000},
        weights={"bytes": 500, "bufferBytes": 20, "emptied": 0},
        kvCache={"bytes": 300},
        routing={"capturerBytes": 7, "workspaceBytes": 8},
        probeBytes=30,
    )
    assert {name: values[0][0] for name, values in rows(record).items()} == {
        "memory_allocator_bytes": 1000,
        "memory_kv_cache_bytes": 300,
        "memory_activations_bytes": 50,
        "memory_routing_buffers_bytes": 15,
        "memory_fragmentation_bytes": 100,
    }


@pytest.mark.parametrize("size", [-1, "9", True])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(InputError, match="no size"):
        rows(changed(kvCache={"bytes": size}))


def test_another_kind_is_refused() -> None:
    record = read_probe_record("w", (DATA / "weights.jsonl").read_bytes())
    with pytest.raises(InputError, match="not a record of memory"):
        probe_memory_rows(record, record.origin_ns, "gpu-0")


def test_an_engine_of_two_ranks_that_names_no_routing_buffer_exposes_none() -> None:
    lines = [json.loads(row) for row in RECORDED.splitlines()[:2]]
    lines[0]["rank"]["tensorParallel"]["size"] = 2
    record = read_probe_record("m", b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert rows(record)["memory_routing_buffers_bytes"] == [(0, "not_exposed")]
