"""Every sample is recognised as what its source says; nothing crashes on a file that is cut, empty or no text."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import time
from pathlib import Path

import pytest

from moeplan.cli.import_observations import OBSERVATION_IMPORTS
from moeplan.importers.recognise import HEAD_BYTES, WHOLE_BYTES, Recognised, recognise
from moeplan.importers.recognised_formats import FORMATS, OTHER
from moeplan.importers.table import IMPORTERS

SHARED = Path(__file__).resolve().parents[4] / "shared"
SAMPLES = SHARED / "samples"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not beside the repository")
WORDS = {
    "vllm bench serve (JSON, InferenceX bench_serving fork)": "bench_serving fork",
    "vllm bench serve (JSON, older benchmark_serving.py)": "benchmark_serving.py",
    "SGLang server, bench_serving JSON": "bench_serving",
    "InferenceX aggregated result JSON": "InferenceX aggregated",
    "InferenceX config YAML": "InferenceX configuration",
    "aiperf export": "aiperf export",
    "vLLM /metrics polled to CSV (GPU)": "polled to CSV",
    "InferenceX trace_replay detailed_results CSV": "trace_replay",
    "guidellm report JSON": "guidellm report",
    "MLPerf loadgen summary": "MLPerf loadgen summary",
    "MLPerf loadgen detail": "MLPerf loadgen detail",
    "MLPerf power client/server JSON": "MLPerf power client/server",
    "SPEC PTDaemon power log (MLPerf power)": "SPEC PTDaemon",
    "lm-evaluation-harness results JSON": "lm-evaluation-harness results",
    "lm-evaluation-harness derived rows (InferenceX)": "derived by InferenceX",
    "nvidia-smi -q -x XML": "nvidia-smi -q -x",
    "rocm-smi --json": "rocm-smi --json",
    "nvidia-smi dmon": "nvidia-smi dmon",
    "AMD device-metrics-exporter text": "AMD device-metrics-exporter",
    "node_exporter text": "node_exporter",
    "EPLB example (expert-load matrix in prose)": "EPLB example",
    "ib_write_bw (perftest) output": "ib_write_bw",
    "kubectl get nodes -o json": "kubectl get nodes -o json",
    "kubectl get pods -o json": "kubectl get pods -o json",
    "launch / benchmark command text": "command of a benchmark",
    "DCGM exporter text": "DCGM exporter",
    "kubectl get node -o yaml": "kubectl get node -o yaml",
    "kubectl get pod -o yaml": "kubectl get pod -o yaml",
    "kubectl get events -o json": "kubectl get events -o json",
    "amd-smi metric --csv": "amd-smi metric --csv",
}
"""Words of the recognised tool by the tool that SOURCES.json names, written down by hand."""
MADE = {
    "guidellm.json": "guidellm",
    "lm-eval-0.4.13/results_toyadd.json": "lm-eval",
    "lm-eval-0.4.13/samples_toyadd.jsonl": "lm-eval",
    "aiperf-0.13.0/profile_export.jsonl": "aiperf",
    "aiperf-0.13.0/profile_export_raw.first12.jsonl": None,
    "aiperf-0.13.0/phase_manifest.json": None,
    "inference-perf-0.7.0/per_request_lifecycle_metrics.trimmed.json": "inference-perf",
    "inference-perf-0.7.0/inference-perf.partial.stage_0.yaml": None,
    "sglang-bench_serving-0.5.23/bench-details.jsonl": "sglang-bench",
    "sglang-bench_serving-0.5.23/stdout.txt": None,
    "vllm-bench-killed-all.json": "vllm-bench",
    "vllm-bench-killed-all.stdout.txt": None,
    "metrics-after.prom": "vllm-metrics",
    "metrics-series-1s-vllm0.32-cpu.full.jsonl.gz": "vllm-metrics",
    "restart-timeline-kill9-all.jsonl": "restart-timeline",
    "serve-log-engine-killed-vllm0.32-cpu.log": "vllm-log",
    "vllm-enable-eplb-on-cpu.log": "vllm-log",
    "vllm-server_info-cpu.json": None,
    "vllm-weight_checker-cpu.json": None,
    "routed_experts-constructed.json": None,
    "sse-chat-vllm0.32-cpu.jsonl": None,
    "tiny-moe/model-00001-of-00005.safetensors": None,
}
"""The action of ``moeplan import`` that reads a made sample."""


def of(data: bytes) -> Recognised:
    return recognise(io.BytesIO(data))


@pytest.mark.shared
@needs_samples
def test_public_samples_are_what_their_sources_say() -> None:
    sources = json.loads((SAMPLES / "public/SOURCES.json").read_bytes())
    assert len(sources) > 50
    for source in sources:
        seen = of((SAMPLES / "public" / source["file"]).read_bytes())
        assert WORDS[source["tool"]] in seen.format.tool, source["file"]
        assert seen.format.command or seen.format.note, source["file"]


@pytest.mark.shared
@needs_samples
def test_made_samples_go_to_their_importers() -> None:
    for name, command in MADE.items():
        seen = of((SAMPLES / "made" / name).read_bytes())
        assert seen.format.command == command, name
    for path in SAMPLES.rglob("*"):
        if path.is_file():
            assert of(path.read_bytes()).format is not OTHER, path


@pytest.mark.shared
@needs_samples
def test_a_name_decides_nothing_and_packing_changes_nothing() -> None:
    data = (SAMPLES / "made/vllm-bench.json").read_bytes()
    assert of(gzip.compress(data)).format == of(data).format
    assert of(b"\xef\xbb\xbf" + data).format == of(data).format
    assert of(json.dumps(json.loads(data), indent=2).replace("\n", "\r\n").encode()).format == of(data).format


def test_each_action_it_names_exists_and_each_load_tool_is_named() -> None:
    actions = {one.name for one in OBSERVATION_IMPORTS} | set(IMPORTERS)
    named = {one.command for one in FORMATS if one.command is not None}
    assert named <= actions
    assert actions - named == {"auto", "price"}  # a price is stated, and lies in no file


VLLM_KEYS = (
    '"date": "x", "endpoint_type": "openai", "backend": "openai", "model_id": "m", "duration": 1, "completed": 1, '
)
"""As vllm bench serve 0.32 begins a file; its fork of 2025 writes no endpoint_type and no failed."""


@pytest.mark.parametrize(
    ("keys", "command"),
    [
        (VLLM_KEYS + '"failed": 0, "input_lens": [1], "output_lens": [1], "ttfts": [0.1], "itls": [', "vllm-bench"),
        ('"model_id": "m", "duration": 1, "input_lens": [1], "ttfts": [0.1], "itls": [', "benchmark-serving"),
        (VLLM_KEYS + '"failed": 0, "generated": [', "reported"),
        ('"metadata": {}, "config": {}, "benchmarks": [', "guidellm"),
    ],
)
def test_a_json_file_too_large_to_parse_is_told_by_the_keys_before_its_cut(keys: str, command: str) -> None:
    seen = of(b"{" + keys.encode() + b"0.001, " * (WHOLE_BYTES // 7 + 1))
    assert (seen.format.command, seen.sure) == (command, "likely")


@pytest.mark.parametrize(
    ("data", "tool"),
    [
        (b"", "empty file"),
        (b" \n\n", "empty file"),
        (b"hello", "not known"),
        (bytes(range(256)) * 10, "not known"),
        (b"[" * 100_000, "not known"),
        (b'{"a":' * 50_000, "not known"),
        (b"index, power.draw [W], memory.used [MiB]\n0, 70.1 W, 4 MiB\n", "nvidia-smi --query-gpu, CSV"),
        (b"0, NVIDIA H200, 101.20 W, 1234 MiB\n", "nvidia-smi --query-gpu, CSV without header"),
        (b'# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0"} 0.0\n', "vLLM /metrics"),
        (b'{"timestamp": 0, "input_length": 5, "output_length": 2, "hash_ids": [1]}\n', "trace of requests to replay"),
        (b'{"traceEvents": [], "schemaVersion": 1}', "torch profiler trace"),
    ],
)
def test_files_that_no_sample_holds(data: bytes, tool: str) -> None:
    assert of(data).format.tool == tool


@pytest.mark.shared
@needs_samples
def test_mutated_samples_never_crash() -> None:
    """4,000 cuts, flips and splices; 64 KiB of each sample, so that it takes seconds."""
    draw = random.Random(20261201)
    heads = [path.read_bytes()[: 64 << 10] for path in sorted(SAMPLES.rglob("*")) if path.is_file()]
    for _ in range(4000):
        data = bytearray(draw.choice(heads))
        for _ in range(draw.randrange(1, 5)):
            if data:
                at = draw.randrange(len(data))
                data[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
        data = data[: draw.randrange(len(data) + 1)] + draw.choice(heads)[: draw.randrange(2000)]
        assert of(bytes(data)).sure in ("certain", "likely", "guess")


@pytest.mark.parametrize(
    "word", [b"power.draw ", b"RDMA_", b", 1", b"a:", b'"', b"[{", b"(Worker", b"INFO 01-01 00:00:00 a/"]
)
def test_no_pattern_takes_the_square_of_a_file_s_length(word: bytes) -> None:
    """One word over and over; a pattern that went back at each of them took from 2 s to 30 s."""
    data = (word * (HEAD_BYTES // len(word) + 1))[:HEAD_BYTES]
    started = time.process_time()
    of(data)
    assert time.process_time() - started < 1


def test_it_reads_no_more_than_its_cap() -> None:
    class Counted(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert size > 0
            got = super().read(size)
            Counted.taken += len(got)
            return got

    recognise(Counted(b"x" * (4 * WHOLE_BYTES)))
    assert Counted.taken <= HEAD_BYTES + 1
    Counted.taken = 0
    recognise(Counted(b"{" + b" " * (2 * WHOLE_BYTES)))
    assert Counted.taken <= WHOLE_BYTES + 1


def test_every_pattern_compiles_and_no_row_hides_another() -> None:
    for one in FORMATS:
        if one.shape in ("text", "binary"):
            re.compile(one.marks[0])
        assert one.command or one.note, one.tool
