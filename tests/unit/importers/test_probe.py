"""Records of the in-engine probe: read strictly, ranks put together, every way to leave something out refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.importers.probe_experts import counted_experts
from moeplan.importers.probe_record import ProbeRecord, looks_like_probe, read_probe_record
from moeplan.importers.probe_weights import loaded_weights
from moeplan.model.series import expert_faults, tensor_faults
from moeplan.units import NS_PER_S

ORIGIN = 1_796_086_023_925_691_775
START = 1_796_086_001_560_000_000
A, B = "a" * 64, "b" * 64
Lines = list[dict[str, Any]]


def header(kind: str, ranks: dict[str, tuple[int, int]] | None = None, **more: Any) -> dict[str, Any]:
    groups = {key: {"rank": rank, "size": size} for key, (rank, size) in (ranks or {}).items()}
    parallel = {name: groups.get(f"{name[:1]}p") for name in ("tensorParallel", "pipelineParallel", "dataParallel")}
    return {
        "type": "header",
        "format": "moeplan-probe-record",
        "formatVersion": 1,
        "kind": kind,
        "probe": {"name": "moeplan-vllm-probe", "version": "0.1.0"},
        "origin": {"wallNs": str(ORIGIN), "monotonicNs": "5"},
        "process": {"pid": 2, "parentPid": 1, "startedWallNs": str(START + NS_PER_S)},
        "engineProcess": {"pid": 1, "startedWallNs": str(START)},
        "engine": {"name": "vllm", "version": "0.32.0", "tested": True},
        "rank": {"global": 0, **parallel, "expertParallel": None},
        "loader": {"format": "auto", "class": "DefaultModelLoader"},
        "switches": {"hash": True, "count": kind == "experts", "memory": False, "lenient": False, "intervalMs": 1000},
        **more,
    }


def numbered(first: dict[str, Any], lines: Lines) -> bytes:
    rows = [first]
    for number, line in enumerate(lines):
        time = number * 1000
        rows.append({"seq": number, "timeNs": time, "wallNs": str(ORIGIN + time), **line})
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def weights(*names: tuple[str, str], ranks: dict[str, tuple[int, int]] | None = None, **more: Any) -> bytes:
    tensors = [{"type": "tensor", "pass": 0, "name": name, "bytes": 8, "sha256": digest} for name, digest in names]
    closing = [
        {"type": "passEnd", "pass": 0, "complete": True, "tensors": len(tensors)},
        {"type": "end", "tensors": len(tensors), "bytes": 8 * len(tensors), "passes": 1, "hashNs": 1},
    ]
    lines = [{"type": "pass", "pass": 0}, *tensors, *closing]
    return numbered(header("weights", ranks, **more), lines)


LAYERS = [
    {"layer": 0, "name": "model.layers.3.mlp.experts", "draft": False, "experts": 3, "topK": 2, "hashRouted": True}
    | {"dropped": {"count": 0, "basis": "dropless kernels"}},
    {"layer": 1, "name": "draft.layers.3.mlp.experts", "draft": True, "experts": 2, "topK": 1, "hashRouted": False}
    | {"dropped": None},
]


def interval(number: int, tokens: int, *rows: tuple[int, list[int], int], strays: int = 0) -> dict[str, Any]:
    layers = [
        {"layer": layer, "selections": counts, "unserved": 0, "strays": strays, "total": total}
        for layer, counts, total in rows
    ]
    start = number * NS_PER_S
    return {"type": "counts", "startNs": start, "endNs": start + NS_PER_S, "tokens": tokens, "layers": layers}


TESTED: dict[str, Any] = {"type": "selfTest", "layers": []}
TWO = [
    TESTED,
    interval(0, 2, (0, [1, 0, 3], 4), (1, [2, 0], 2)),
    interval(1, 0),
    interval(2, 1, (0, [0, 1, 1], 6), strays=5),
]


def experts(lines: Lines, ranks: dict[str, tuple[int, int]] | None = None, **more: Any) -> ProbeRecord:
    first = header("experts", ranks, **{"layers": LAYERS, "tokens": "rank", **more})
    return read_probe_record("experts.jsonl", numbered(first, lines))


def code(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return caught.value.issues[0].code


def test_tensors_become_rows_in_order() -> None:
    found = loaded_weights([read_probe_record("w", weights(("b", B), ("a", A)))])
    assert list(zip(found.table.rank, found.table.tensor, found.table.bytes, found.table.digest, strict=True)) == [
        ("tp0", "a", 8, f"sha256:{A}"),
        ("tp0", "b", 8, f"sha256:{B}"),
    ]
    assert list(tensor_faults(found.table)) == []
    assert (found.payload.loader, found.payload.ranks, found.payload.row_count) == ("auto", ("tp0",), 2)
    assert not found.payload.counting
    assert (found.start_ns, found.end_ns, found.engine_start_ns) == (ORIGIN, ORIGIN + 4000, START)
    assert (found.engine_version, found.probe_version) == ("0.32.0", "0.1.0")


def test_ranks_are_put_together_and_counting_is_said() -> None:
    switches = {"switches": {"hash": True, "count": True}}
    records = [
        read_probe_record(f"w{rank}", weights((f"e{rank}", A), ranks={"tp": (rank, 2)}, **switches)) for rank in (1, 0)
    ]
    found = loaded_weights(records)
    assert (found.payload.ranks, found.table.tensor) == (("tp0", "tp1"), ("e0", "e1"))
    assert found.payload.counting


def test_a_tensor_loaded_twice_alike_is_one_row() -> None:
    assert loaded_weights([read_probe_record("w", weights(("a", A), ("a", A)))]).payload.row_count == 1


def dropped(data: bytes, number: int) -> bytes:
    rows = data.splitlines(keepends=True)
    return b"".join(rows[:number] + rows[number + 1 :])


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new, 1)


WHOLE = weights(("a", A), ("b", B))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (dropped(WHOLE, 2), "lines_missing"),
        (dropped(WHOLE, 5), "incomplete_record"),
        (WHOLE[:-1], "incomplete_record"),
        (changed(WHOLE, b'"bytes": 8', b'"bytes": 9'), "totals_differ"),
        (changed(WHOLE, b'"complete": true', b'"complete": false'), "incomplete_record"),
        (weights(("a", A), ("a", B)), "tensor_differs"),
        (weights(), "incomplete_record"),
        (changed(WHOLE, b'"type": "pass"', b'"type": "fault", "code": "no_router", "message": "m"'), "probe_fault"),
        (changed(WHOLE, b'"formatVersion": 1', b'"formatVersion": 2'), "unsupported_version"),
        (changed(WHOLE, b'"kind": "weights"', b'"kind": "cookies"'), "unsupported_version"),
        (changed(WHOLE, b"moeplan-probe-record", b"another"), "not_a_probe_record"),
        (changed(WHOLE, str(ORIGIN + 2000).encode(), str(ORIGIN + 2 * NS_PER_S).encode()), "clock_stepped"),
        (changed(WHOLE, str(ORIGIN + 2000).encode(), b"noon"), "invalid_instant"),
        (b"", "not_a_probe_record"),
        (WHOLE + b"{\n", "invalid_json"),
        (WHOLE + b"7\n", "wrong_type"),
        (weights(("a", A), ranks={"tp": (0, 2)}), "rank_missing"),
        (weights(("a", A), ranks={"tp": (2, 2)}), "out_of_range"),
    ],
)
def test_weights_that_are_not_whole_are_refused(data: bytes, expected: str) -> None:
    assert code(lambda: loaded_weights([read_probe_record("w", data)])) == expected


def test_records_of_two_starts_or_twice_one_rank_are_refused() -> None:
    one = read_probe_record("w", WHOLE)
    other = read_probe_record("v", changed(WHOLE, str(START).encode(), str(START + NS_PER_S).encode()))
    assert code(lambda: loaded_weights([one, one])) == "rank_twice"
    assert code(lambda: loaded_weights([one, other])) == "engines_differ"
    assert code(lambda: loaded_weights([])) == "missing_record"
    assert code(lambda: counted_experts([one])) == "missing_record"


def test_what_a_killed_process_left_is_no_line() -> None:
    assert len(read_probe_record("w", WHOLE + b'{"type":"ten').lines) == 5


def test_the_first_bytes_tell_a_record() -> None:
    assert looks_like_probe(b'{"type":"header","format":"moeplan-probe-record","formatVersion":1')
    assert not looks_like_probe(b'{"type":"route","req_id":"r"}')


def test_counts_become_rows_of_experts_that_were_selected() -> None:
    found = counted_experts([experts(TWO)])
    table, base = found.table, ORIGIN % NS_PER_S
    assert list(zip(table.interval, table.layer, table.expert, table.selections, strict=True)) == [
        (0, 3, 0, 1),
        (0, 3, 2, 3),
        (0, 4, 0, 2),
        (2, 3, 1, 1),
        (2, 3, 2, 1),
    ]
    assert (table.start_ns[0], table.end_ns[-1]) == (base, base + 3 * NS_PER_S)
    assert list(expert_faults(table, {3: 3, 4: 2}, 5 * NS_PER_S)) == []
    assert (found.tokens, found.strays, found.payload.interval_count) == (3, 5, 3)
    assert (found.start_ns, found.end_ns) == (ORIGIN, ORIGIN + 3 * NS_PER_S)
    first, second = found.payload.layers
    assert (first.number, first.drafter, first.hash_routed, first.dropped_tokens) == (3, False, True, 0)
    assert (second.number, second.drafter, second.dropped_tokens, second.dropped_basis) == (4, True, None, None)
    assert list(found.payload.faults()) == []


def test_a_span_takes_the_intervals_within_it() -> None:
    found = counted_experts([experts(TWO)], between=(ORIGIN + NS_PER_S, ORIGIN + 9 * NS_PER_S))
    assert (found.payload.interval_count, found.tokens, sum(found.table.selections)) == (2, 1, 2)


def test_a_span_that_cuts_selections_is_refused() -> None:
    record = experts(TWO)
    assert code(lambda: counted_experts([record], between=(ORIGIN + 1, ORIGIN + 9 * NS_PER_S))) == "interval_straddles"
    assert code(lambda: counted_experts([record], between=(ORIGIN + 4 * NS_PER_S, ORIGIN * 2))) == "no_intervals"


@pytest.mark.parametrize(("sharded", "selections", "ranks"), [("rank", 4, ("tp0",)), ("shard", 8, ("tp0", "tp1"))])
def test_each_token_is_counted_once_over_ranks(sharded: str, selections: int, ranks: tuple[str, ...]) -> None:
    lines = [TESTED, interval(0, 2, (0, [1, 0, 3], 4))]
    records = [experts(lines, {"tp": (rank, 2)}, tokens=sharded) for rank in (0, 1)]
    found = counted_experts(records)
    assert (sum(found.table.selections), found.payload.ranks, found.tokens) == (selections, ranks, 2)


def test_data_parallel_ranks_add_up_and_pipeline_ranks_have_other_layers() -> None:
    lines = [TESTED, interval(0, 2, (0, [1, 0, 3], 4))]
    shifted = [TESTED, {**lines[1], "startNs": NS_PER_S // 3, "endNs": NS_PER_S}]
    found = counted_experts([experts(lines, {"dp": (0, 2)}), experts(shifted, {"dp": (1, 2)})])
    assert (list(found.table.selections), found.tokens) == ([2, 6], 4)
    other = [{**LAYERS[0], "name": "model.layers.5.mlp.experts"}]
    found = counted_experts([experts(lines, {"pp": (0, 2)}), experts(lines, {"pp": (1, 2)}, layers=other)])
    assert (list(found.table.layer), found.tokens) == ([3, 3, 5, 5], 2)


def test_ranks_of_a_group_that_counted_otherwise_are_refused() -> None:
    lines = [TESTED, interval(0, 2, (0, [1, 0, 3], 4))]
    less = [TESTED, interval(0, 1, (0, [1, 0, 1], 2))]
    records = [experts(lines, {"tp": (0, 2)}), experts(less, {"tp": (1, 2)})]
    assert code(lambda: counted_experts(records)) == "ranks_differ"
    other = [{**LAYERS[0], "experts": 4}]
    records = [experts(lines, {"tp": (0, 2)}), experts([TESTED], {"tp": (1, 2)}, layers=other)]
    assert code(lambda: counted_experts(records)) == "layers_differ"


@pytest.mark.parametrize(
    ("lines", "layers", "expected"),
    [
        (TWO[1:], LAYERS, "self_test_missing"),
        ([TESTED], LAYERS, "no_intervals"),
        (TWO, [], "no_layers"),
        ([TESTED, interval(0, 1, (0, [1, 1, 0], 3))], LAYERS, "counts_contradict"),
        ([TESTED, interval(0, 1, (0, [1, 1], 2))], LAYERS, "counts_contradict"),
        ([TESTED, interval(0, 1, (7, [1, 1, 0], 2))], LAYERS, "counts_contradict"),
        ([TESTED, interval(0, 1, (0, [3, -1, 0], 2))], LAYERS, "counts_contradict"),
        ([TESTED, {**interval(0, 1), "endNs": 0}], LAYERS, "counts_contradict"),
        ([TESTED, {**interval(0, 1), "tokens": None}], LAYERS, "wrong_type"),
        ([TWO[0], TWO[2], {**TWO[3], "startNs": NS_PER_S}], LAYERS, "counts_contradict"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_counts_that_contradict_themselves_are_refused(lines: Lines, layers: Lines, expected: str) -> None:
    assert code(lambda: counted_experts([experts(lines, layers=layers)])) == expected


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "rank", "size"]), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value below ``value``."""
    keys = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in keys for found in places(inner, (*path, key)))]


@given(data=st.data(), kind=st.sampled_from(["weights", "experts"]))
def test_whatever_stands_in_a_record_it_is_taken_or_refused_by_name(data: st.DataObject, kind: str) -> None:
    if kind == "weights":
        rows = [json.loads(row) for row in WHOLE.splitlines()]
    else:
        first = header("experts", layers=json.loads(json.dumps(LAYERS)), tokens="rank")
        rows = [json.loads(row) for row in numbered(first, TWO).splitlines()]
    path = data.draw(st.sampled_from([found for found in places(rows) if len(found) > 1]))
    inner: Any = rows
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = data.draw(JSON_VALUES)
    record = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    with contextlib.suppress(InputError):  # any other exception would be a traceback
        read = read_probe_record("r", record)
        (loaded_weights if read.kind == "weights" else counted_experts)([read])
