"""A probe's record of memory -> rows of a series: the parts of memory that nothing outside the engine can tell."""

from __future__ import annotations

from typing import Any

from moeplan.importers.probe_record import ProbeRecord
from moeplan.model.series_rows import SeriesRows

__all__ = ["probe_memory_rows"]

_SOURCE = "moeplan-probe"


def probe_memory_rows(record: ProbeRecord, origin_ns: int, subject: str) -> SeriesRows:
    """Return the parts of memory over time; a part that the engine does not tell is ``not_exposed``.

    ``allocator`` is what the allocator took from the device, ``fragmentation`` what it took and did not hand out,
    ``activations`` what it handed out beyond weights, KV cache and the probe's own counters. On CPUs torch has no
    allocator of its own: glibc's is the whole process's, so that ``activations`` there is an upper bound, in which is
    all else that the process took. An engine of one rank hands no token to another: it has 0 bytes of routing buffers
    where it tells of none.

    Args:
        record: a record of kind ``memory``.
        origin_ns: start of the evidence record's interval, nanoseconds since 1970; not after the record's origin.
        subject: pseudonym of the device.

    Raises:
        InputError: the record is of another kind, or a size is none.
    """
    if record.kind != "memory":
        raise record.refused("wrong_kind", "not a record of memory", "one of kind memory")
    rows = SeriesRows(_SOURCE)
    for line in record.of_type("memory"):
        at = record.origin_ns + line["timeNs"] - origin_ns
        for part, size in _parts(record, line).items():
            metric = f"memory_{part}_bytes"
            if size is None:
                rows.unread(at, subject, metric, "bytes", "not_exposed")
            else:
                rows.add(at, subject, metric, size, "bytes")
    return rows


def _parts(record: ProbeRecord, line: dict[str, Any]) -> dict[str, int | None]:
    """Return bytes by part; None where they are not exposed."""
    reserved, allocated = (_size(record, line, "allocator", key) for key in ("reservedBytes", "allocatedBytes"))
    weights, buffers = (_size(record, line, "weights", key) for key in ("bytes", "bufferBytes"))
    cache = _size(record, line, "kvCache", "bytes")
    routing = [_size(record, line, "routing", key) for key in ("capturerBytes", "workspaceBytes")]
    known = [size for size in (weights, buffers, cache, _size(record, line, None, "probeBytes")) if size is not None]
    heap, free = (_size(record, line, "process", "malloc", key) for key in ("heapBytes", "freeBytes"))
    mapped = _size(record, line, "process", "malloc", "mappedBytes")
    if reserved is None or allocated is None:
        taken = None if heap is None or mapped is None else heap + mapped
        rest = None if taken is None or free is None or weights is None else max(0, taken - free - sum(known))
        return {
            "allocator": taken,
            "kv_cache": cache,
            "activations": rest,
            "routing_buffers": _buffers(record, routing),
            "fragmentation": free,
        }
    return {
        "allocator": reserved,
        "kv_cache": cache,
        "activations": max(0, allocated - sum(known)) if weights is not None else None,
        "routing_buffers": _buffers(record, routing),
        "fragmentation": max(0, reserved - allocated),
    }


def _buffers(record: ProbeRecord, sizes: list[int | None]) -> int | None:
    """Return the bytes of routing's buffers; None where an engine of several ranks does not tell them."""
    found = [size for size in sizes if size is not None]
    if found:
        return sum(found)
    parts = [part for part in record.header["rank"].values() if isinstance(part, dict)]
    return 0 if parts and all(part.get("size") == 1 for part in parts) else None


def _size(record: ProbeRecord, line: dict[str, Any], *path: str | None) -> int | None:
    value: Any = line
    for key in path:
        if key is not None:
            value = value.get(key) if type(value) is dict else None
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise record.refused("wrong_type", f"{path[-1]} is no size, seq {line['seq']}", "bytes, 0 or more")
    return value
