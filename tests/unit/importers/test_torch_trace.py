"""Traces of torch's profiler: recorded ones against a reckoning of one's own, and malformed ones."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.evaluation.communication import step_samples
from moeplan.importers.given import GivenFile
from moeplan.importers.torch_trace import import_torch_trace, read_rank
from moeplan.importers.trace_events import part_of
from moeplan.model.finding import Finding
from moeplan.model.observations import CommunicationTrace
from moeplan.wire.closed_table import load_table
from moeplan.wire.observation import MadeObservation, ObservationContext
from moeplan.wire.series import SERIES
from tests.build import digest_of, make_deployment

DATA = Path(__file__).parents[2] / "data"
VLLM = (DATA / "torch-trace-vllm-cpu.json.gz").read_bytes()
RANKS = [(DATA / f"torch-trace-gloo-rank{rank}.json.gz").read_bytes() for rank in (0, 1)]
CONTEXT = ObservationContext(digest_of("plan"), make_deployment())


def imported(*files: bytes, **changes: Any) -> tuple[MadeObservation, tuple[Finding, ...]]:
    given = [GivenFile(f"trace-{number}.json", data) for number, data in enumerate(files)]
    return import_torch_trace(given, CONTEXT, **({"engine_start": None} | changes))


def reckoned(data: bytes) -> list[tuple[int, dict[str, int]]]:
    """Return each step's length and parts, reckoned moment by moment between all beginnings and ends of events."""
    trace = json.loads(gzip.decompress(data), parse_float=Fraction)
    spans = [
        (round(Fraction(e["ts"]) * 1000), round(Fraction(e["ts"]) * 1000) + round(Fraction(e["dur"]) * 1000), e["name"])
        for e in trace["traceEvents"]
    ]
    kinds = (("all_to_all", r".*all_?to_?all.*"), ("collective", r"gloo:.*|c10d::.*"), ("routing", r"aten::topk"))
    found = []
    for begin, end, name in sorted(spans):
        if not name.startswith("execute_context_") or name.endswith("context_0(0)_generation_0(0)"):
            continue
        inner = [
            (max(a, begin), min(b, end), other) for a, b, other in spans if a < end and b > begin and other != name
        ]
        edges = sorted({begin, end, *(a for a, _, _ in inner), *(b for _, b, _ in inner)})
        spent = dict.fromkeys((kind for kind, _ in kinds), 0)
        for left, right in pairwise(edges):
            going = [other for a, b, other in inner if a <= left and b >= right]
            kind = next((k for k, pattern in kinds if any(re.fullmatch(pattern, other) for other in going)), None)
            if kind is not None:
                spent[kind] += right - left
        found.append((end - begin, spent))
    return found


@pytest.mark.parametrize("data", [VLLM, *RANKS], ids=["vllm", "rank 0", "rank 1"])
def test_recorded_steps_are_as_reckoned_moment_by_moment(data: bytes) -> None:
    trace = read_rank(data)
    seen = [
        (s.step_ns, {"all_to_all": s.all_to_all_ns, "collective": s.collective_ns, "routing": s.routing_ns})
        for s in trace.steps
    ]
    assert seen == reckoned(data)
    assert all(step.routing_ns > 0 for step in trace.steps)


def test_a_world_of_one_rank_exchanges_nothing() -> None:
    made, findings = imported(VLLM)
    assert made.record.payload == CommunicationTrace(world_size=1, row_count=52)
    assert made.record.collector.tool_version == "0.32.0"
    samples = step_samples(load_table(SERIES, made.files[str(made.record.attachments[0].path)]))
    assert len(samples) == 13
    assert {(sample.rank, sample.all_to_all_ns, sample.collective_ns) for sample in samples} == {("rank-0", 0, 0)}
    assert {finding.code for finding in findings} == {"steps_read", "one_rank", "rest"}
    assert "_C::cpu_fused_moe" in next(finding.message for finding in findings if finding.code == "rest")


def test_two_ranks_are_one_record_and_the_traces_are_not_enclosed() -> None:
    made, findings = imported(*RANKS)
    samples = step_samples(load_table(SERIES, made.files[str(made.record.attachments[0].path)]))
    assert [len([s for s in samples if s.rank == rank]) for rank in ("rank-0", "rank-1")] == [4, 4]
    assert all(sample.all_to_all_ns > 0 and sample.collective_ns > 0 for sample in samples)
    traces = made.record.attachments[1:]
    assert [(part.role, part.path, part.name) for part in traces] == [
        ("trace", None, "rank-0.trace"),
        ("trace", None, "rank-1.trace"),
    ]
    assert "ranks_missing" not in {finding.code for finding in findings}


def test_a_rank_left_out_is_said() -> None:
    _made, findings = imported(RANKS[0])
    assert [f.severity for f in findings if f.code == "ranks_missing"] == ["warning"]


Event = tuple[str, str, float, float]
"""Category, name, begin and duration in microseconds."""


def trace_of(events: Sequence[Event], **changes: Any) -> bytes:
    document: dict[str, Any] = {
        "baseTimeNanoseconds": 1_790_857_026_000_000_000,
        "distributedInfo": {"rank": 0, "world_size": 8},
        "traceEvents": [
            {"ph": "X", "cat": c, "name": n, "ts": t, "dur": d, "args": {"x": [1]}} for c, n, t, d in events
        ],
    }
    return json.dumps(document | changes).encode()


STEP: Event = ("user_annotation", "execute_context_1(4)_generation_0(0)", 1000.5, 100)


class TestDevice:
    """Kernels by the names that NCCL, DeepEP and vLLM give them; no such trace is recorded here."""

    def test_kernels_count_within_the_step_on_the_device(self) -> None:
        events: list[Event] = [
            STEP,
            ("gpu_user_annotation", STEP[1], 1050, 200),
            ("cpu_op", "aten::topk", 1001, 50),
            ("kernel", "void vllm::moe::topkGating<float, 8>(float const*)", 1060, 4),
            ("kernel", "void deep_ep::internode_ll::dispatch<true>(void*)", 1064, 30),
            ("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 1090, 10),
            ("kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 1240, 100),
            ("kernel", "cutlass_gemm", 1100, 100),
        ]
        trace = read_rank(trace_of(events))
        assert trace.on_device
        (step,) = trace.steps
        assert (step.step_ns, step.routing_ns) == (200_000, 4000)
        assert (step.all_to_all_ns, step.collective_ns) == (30_000 + 10_000, 10_000 - 4000)
        assert trace.unknown == (("cutlass_gemm", 100_000),)

    @pytest.mark.parametrize(
        ("name", "part"),
        [
            ("vllm::all_reduce", "collective_ns"),
            ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(x)", "collective_ns"),
            ("_C::shm_allreduce", "collective_ns"),
            ("_moe_C::topk_softmax", "routing_ns"),
            ("_moe_C::moe_align_block_size", "routing_ns"),
            ("vllm::rocm_aiter_biased_grouped_topk", "routing_ns"),
            ("nccl:all_to_all", "all_to_all_ns"),
            ("nccl:all_gather", "collective_ns"),
            ("c10d::alltoall_base_", "all_to_all_ns"),
            ("_moe_C::moe_wna16_gemm", None),
            ("_C::cpu_fused_moe", None),
            ("aten::topk_backward", None),
        ],
    )
    def test_part_of_a_name(self, name: str, part: str | None) -> None:
        assert part_of(name) == part


def test_steps_of_another_engine_are_named() -> None:
    events: list[Event] = [("user_annotation", "forward 1", 10, 5), ("cpu_op", "aten::topk", 11, 1)]
    with pytest.raises(InputError) as caught:
        read_rank(trace_of(events))
    assert caught.value.issues[0].code == "no_steps"
    assert [step.routing_ns for step in read_rank(trace_of(events), "forward ").steps] == [1000]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not_a_trace"),
        (b"[]", "not_a_trace"),
        (b'{"traceEvents": 3}', "not_a_trace"),
        (b"\x1f\x8bnonsense", "invalid_gzip"),
        (VLLM[:-20000], "partial_file"),
        (trace_of([STEP], distributedInfo=None), "place_unknown"),
        (trace_of([STEP], distributedInfo={"rank": 8, "world_size": 8}), "place_unknown"),
        (trace_of([]), "no_steps"),
        (trace_of([(*STEP[:2], -1, 4)]), "out_of_range"),
        (trace_of([(*STEP[:2], 1e30, 4)]), "out_of_range"),
        (json.dumps(json.loads(trace_of([STEP])))[:-5].encode(), "not_a_trace"),
        (trace_of([STEP]).replace(b"execute", b"exec\xff"), "not_a_trace"),
    ],
)
def test_what_is_no_trace_is_refused_by_name(data: bytes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(data)
    assert caught.value.issues[0].code == code
    assert caught.value.source == "trace-0.json"


def test_ranks_of_one_world_each_once() -> None:
    with pytest.raises(InputError) as caught:
        imported(RANKS[0], RANKS[0])
    assert caught.value.issues[0].code == "rank_repeated"
    with pytest.raises(InputError) as caught:
        imported(RANKS[0], VLLM)
    assert caught.value.issues[0].code == "worlds_differ"


def test_nothing_of_the_traces_text_is_in_the_record() -> None:
    secret = "hidden-word"
    events: list[Event] = [STEP, ("cpu_op", f"/home/{secret}/x.py(3): f", 1001, 5)]
    made, _findings = imported(trace_of(events, host_name=secret, traceName=f"/home/{secret}"))
    assert not any(secret.encode() in data for data in made.files.values())
