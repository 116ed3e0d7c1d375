from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from moeplan.errors import InputError
from moeplan.importers.vllm_log import LogInputs, import_vllm_log
from moeplan.importers.vllm_log_lines import LogClock, log_lines
from moeplan.importers.vllm_log_rules import read_line
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.finding import Finding
from moeplan.model.observations import EngineLog
from moeplan.model.series import SeriesTable, series_faults
from moeplan.wire.closed_table import load_table
from moeplan.wire.observation import MadeObservation, ObservationContext
from moeplan.wire.series import SERIES

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
MADE = SHARED / "samples" / "made"
shared = pytest.mark.skipif(not MADE.is_dir(), reason="the shared samples are not here")
DIGEST = "sha256:" + "5" * 64
CONTEXT = ObservationContext(
    DIGEST, Deployment(DIGEST, None, (RuntimeIdentity("serve", "oci_image", DIGEST),), None, None, None, None, None)
)
GPU_LOG = """\
INFO 09-21 12:28:58 [__init__.py:216] Automatically detected platform cuda.
(APIServer pid=7) INFO 09-21 12:29:02 [api_server.py:1896] vLLM API server version 0.10.2
(APIServer pid=7) INFO 09-21 12:29:02 [utils.py:328] non-default args: {'model': 'a/b', 'enable_expert_parallel': True}
(APIServer pid=7) INFO 09-21 12:29:09 [__init__.py:742] Resolved architecture: DeepseekV3ForCausalLM
(APIServer pid=7) INFO 09-21 12:29:09 [__init__.py:1815] Using max model len 32768
\x1b[1;36m(EngineCore_DP0 pid=66)\x1b[0;0m INFO 09-21 12:29:22 [core.py:76] Initializing a V1 LLM engine \
(v0.10.2) with config: model='/home/ada/m', speculative_config=SpeculativeConfig(method='deepseek_mtp', \
model='/home/ada/m', num_spec_tokens=3), tokenizer='/home/ada/m', dtype=torch.bfloat16, max_seq_len=32768, \
tensor_parallel_size=8, pipeline_parallel_size=2, data_parallel_size=4, quantization=fp8, \
kv_cache_dtype=fp8_e4m3, device_config=cuda
(Worker_TP0 pid=70) INFO 09-21 12:29:25 [cuda.py:371] Using Flash Attention backend on V1 engine.
(Worker_TP0 pid=70) INFO 09-21 12:30:37 [gpu_model_runner.py:2581] Model loading took 84.6145 GiB and 74.270197 seconds
(RayWorkerWrapper pid=71, ip=10.1.2.3) INFO 09-21 12:30:38 [gpu_model_runner.py:2581] Model loading took 84.6145 GiB \
and 74.9 seconds [repeated 3x across cluster]
(Worker_TP0 pid=70) INFO 09-21 12:30:50 [gpu_worker.py:298] Available KV cache memory: 34.38 GiB
(EngineCore_DP0 pid=66) INFO 09-21 12:30:51 [kv_cache_utils.py:864] GPU KV cache size: 1,048,576 tokens
(Worker_TP0 pid=70) INFO 09-21 12:31:20 [gpu_model_runner.py:3118] Graph capturing finished in 21 secs, took 0.50 GiB
(APIServer pid=7) INFO:     Started server process [7]
(APIServer pid=7) INFO:     Application startup complete.
(APIServer pid=7) INFO 09-21 12:33:20 [metrics.py:96] SpecDecoding metrics: Mean acceptance length: 2.33, Accepted \
throughput: 4.40 tokens/s, Drafted throughput: 9.90 tokens/s, Accepted: 44 tokens, Drafted: 99 tokens, Per-position \
acceptance rate: 0.758, 0.424, 0.152, Avg Draft acceptance rate: 44.4%
(EngineCore_DP0 pid=66) INFO 09-21 12:34:00 [eplb_state.py:480] EPLB step: avg_tokens=10.50, max_tokens=15, \
balancedness=0.7000
"""


def imported(
    text: str | bytes, year: int | None = 2026, offset: int | None = 0, **more: object
) -> tuple[MadeObservation, tuple[Finding, ...], SeriesTable]:
    data = text.encode() if isinstance(text, str) else text
    inputs = LogInputs(CONTEXT, clock=LogClock(year, offset), **more)  # type: ignore[arg-type]
    made, findings = import_vllm_log(data, inputs)
    path = made.record.attachments[0].path
    assert path is not None
    table = load_table(SERIES, made.files[path])
    assert list(series_faults(table, made.record.duration_ns)) == []
    return made, findings, table


def values(table: SeriesTable, metric: str) -> list[tuple[str, int, str]]:
    rows = zip(table.subject, table.metric, table.value, table.text, strict=True)
    return [(subject, value, text) for subject, name, value, text in rows if name == metric]


def payload(made: MadeObservation) -> EngineLog:
    assert isinstance(made.record.payload, EngineLog)
    return made.record.payload


def test_what_a_log_of_many_processes_tells() -> None:
    made, findings, table = imported(GPU_LOG)
    log = payload(made)
    assert (log.engine, log.engine_version, log.whole, log.line_count) == ("vllm", "0.10.2", True, 16)
    assert log.row_count == len(table)
    assert findings == ()
    expected = {
        "architecture": [("api-server", 0, "DeepseekV3ForCausalLM")],
        "attention_backend": [("worker-tp0", 0, "Flash Attention")],
        "expert_parallel_enabled": [("api-server", 1, "")],
        "tensor_parallel_size": [("engine-core-dp0", 8, "")],
        "pipeline_parallel_size": [("engine-core-dp0", 2, "")],
        "data_parallel_size": [("engine-core-dp0", 4, "")],
        "precision": [("engine-core-dp0", 0, "bfloat16")],
        "quantization": [("engine-core-dp0", 0, "fp8")],
        "kv_cache_precision": [("engine-core-dp0", 0, "fp8_e4m3")],
        "speculation": [("engine-core-dp0", 0, "deepseek_mtp")],
        "speculative_tokens": [("engine-core-dp0", 3, "")],
        "draft_tokens": [("api-server", 99, "")],
        "accepted_draft_tokens": [("api-server", 44, "")],
        # 84.6145 × 2^30 = 90854127566.848, 34.38 × 2^30 = 36915243909.12
        "model_loading_bytes": [("worker-tp0", 90_854_127_567, ""), ("ray-worker-wrapper", 90_854_127_567, "")],
        "model_loading_bytes_unseen": [("ray-worker-wrapper", 3, "")],
        "model_loading_ns": [("worker-tp0", 74_270_197_000, ""), ("ray-worker-wrapper", 74_900_000_000, "")],
        "available_kv_cache_bytes": [("worker-tp0", 36_915_243_909, "")],
        "kv_cache_tokens": [("engine-core-dp0", 1_048_576, "")],
        "cuda_graph_bytes": [("worker-tp0", 1 << 29, "")],
        "cuda_graph_capture_ns": [("worker-tp0", 21_000_000_000, "")],
        "eplb_balancedness_basis_points": [("engine-core-dp0", 7000, "")],
        "engine_state": [("api-server", 0, "starting"), ("api-server", 0, "ready")],
    }
    assert {metric: values(table, metric) for metric in expected} == expected
    ready = table.time_ns[table.text.index("ready")]
    assert ready == (2 * 60 + 22) * 10**9, "12:31:20, the last dated line before it, less 12:28:58"
    assert (made.record.interval.start, made.record.interval.end) == ("2026-09-21T12:28:58Z", "2026-09-21T12:34:01Z")


def test_no_argument_path_host_or_address_enters_the_record() -> None:
    made, _findings, _table = imported(GPU_LOG)
    everything = b"".join(made.files.values())
    for secret in (b"ada", b"/home", b"10.1.2.3", b"a/b", b"pid"):
        assert secret not in everything


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("ValueError: Model architectures ['XForCausalLM'] are not supported for now.", "unsupported_architecture"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out_of_memory"),
        ("RuntimeError: HIP out of memory.", "out_of_memory"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "out_of_memory"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "missing_kernel"),
        ("Memory access fault by GPU node-2 (Agent handle: 0x55)", "device_fault"),
        ("RuntimeError: Engine core initialization failed. See root cause above.", "engine_died"),
        ("Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.", "engine_died"),
        ("Out of memory: Killed process 4711 (VLLM::EngineCor)", "killed_for_memory"),
    ],
)
def test_fatal_lines_are_counted_by_cause(line: str, cause: str) -> None:
    text = GPU_LOG + f"(EngineCore_DP0 pid=66) ERROR 09-21 12:35:00 [core.py:700] {line}\n" + line + "\n"
    _made, findings, table = imported(text)
    rows = zip(table.metric, table.value, strict=True)
    assert sum(value for metric, value in rows if metric == f"fatal_{cause}") == 2
    assert [finding.code for finding in findings] == ["fatal_line"]
    quiet = GPU_LOG + f"(APIServer pid=7) INFO 09-21 12:35:00 [logger.py:41] Received request x: prompt: '{line}'\n"
    _made, _findings, table = imported(quiet)
    assert not any(metric.startswith("fatal_") for metric in table.metric), "what a client sent is not the engine's"


def test_what_a_plugin_calls_fatal_is_counted_too() -> None:
    _made, findings, table = imported(GPU_LOG, plugin_lines={"vllm-cuda.c-mem-001": (8, 4)})
    row = table.metric.index("fatal_vllm-cuda.c-mem-001")
    assert (table.subject[row], table.value[row]) == ("worker-tp0", 4)
    assert "4 line(s)" in findings[0].message


def test_a_log_without_its_first_lines_is_not_whole() -> None:
    for cut in (4, 6, 9):
        made, findings, _table = imported("\n".join(GPU_LOG.split("\n")[cut:]))
        assert not payload(made).whole
        assert "log_not_whole" in [finding.code for finding in findings]
    late = "\n".join(["INFO 09-21 12:00:00 [x.py:1] word"] * 300) + "\n" + GPU_LOG
    assert not payload(imported(late)[0]).whole


def test_a_node_without_a_server_of_its_own() -> None:
    text = "INFO 09-21 12:28:58 [serve.py:225] Launching vLLM (v0.32.0) headless multiproc executor, with head node\n"
    text += "(Worker_TP8 pid=3) INFO 09-21 12:30:50 [w.py:1] Available KV cache memory: 1.00 GiB\n"
    made, findings, table = imported(text)
    assert payload(made).whole
    assert findings == ()
    assert values(table, "engine_state") == [("engine", 0, "headless")]


def test_words_that_collectors_of_logs_put_before_a_line_are_left_out() -> None:
    lines = (f"engine-1  | {line}" for line in GPU_LOG.splitlines())
    made, _findings, table = imported("\n".join(lines))
    assert payload(made).row_count == len(imported(GPU_LOG)[2])
    assert values(table, "kv_cache_tokens") == [("engine-core-dp0", 1_048_576, "")]
    assert made.record.interval == imported(GPU_LOG)[0].record.interval


def test_the_year_turns_and_offsets_are_taken_off() -> None:
    text = "INFO 12-31 23:59:50 [a.py:1] vLLM API server version 0.20.0\n"
    text += "INFO 01-01 00:00:10 [a.py:1] Using max model len 9\n"
    made, _findings, table = imported(text, year=2026, offset=-7 * 3600)
    assert made.record.interval.start == "2027-01-01T06:59:50Z"
    assert list(table.time_ns) == [0, 0, 20 * 10**9]


def test_the_prefix_of_kubectl_needs_no_year() -> None:
    text = "".join(f"2026-09-21T19:00:{n:02d}.5Z {line}\n" for n, line in enumerate(GPU_LOG.splitlines()))
    made, _findings, table = imported(text, None, None)
    assert made.record.interval.start == "2026-09-21T19:00:00Z"
    row = table.metric.index("kv_cache_tokens")
    assert (table.time_ns[row], table.subject[row]) == (10_500_000_000, "engine-core-dp0")


@pytest.mark.parametrize(
    ("text", "year", "code"),
    [
        ("", 2026, "empty_file"),
        ("hello\nworld\n", 2026, "not_vllm_log"),
        ("Using max model len 9\n", 2026, "undated_log"),
        (GPU_LOG, None, "value_missing"),
        ("0001-01-01T00:00:00+05:00 Using max model len 9\n", None, "times_implausible"),
        ("1999-01-01T00:00:00Z Using max model len 9\n2026-01-01T00:00:00Z x\n", None, "times_implausible"),
        ("INFO 02-30 00:00:00 [a.py:1] Using max model len 9\n", 2026, "undated_log"),
    ],
)
def test_what_is_no_such_log_is_refused(text: str, year: int | None, code: str) -> None:
    with pytest.raises(InputError) as refused:
        imported(text, year)
    assert refused.value.issues[0].code == code


def test_the_log_is_named_by_digest_and_enclosed_only_where_asked() -> None:
    made, _findings, _table = imported(GPU_LOG)
    assert [(part.role, part.path is None) for part in made.record.attachments] == [("series", False), ("log", True)]
    kept, _findings, _table = imported(GPU_LOG, keep=True)
    path = kept.record.attachments[2].path
    assert path is not None
    text = kept.files[path].decode()
    assert text.count("\n") == GPU_LOG.count("\n")
    assert "12:30:50 [gpu_worker.py:298] Available KV cache memory: 34.38 GiB" in text
    assert "ada" not in text
    assert "10.1.2.3" not in text


@shared
@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "whole", "ready", "fatal"),
    [
        ("serve.log", True, True, 0),
        ("trials/serve.log", True, True, 0),
        ("restart-timeline-kill9-engine.server-after.log", True, True, 0),
        ("serve-log-engine-killed-vllm0.32-cpu.log", True, True, 15),
        ("vllm-enable-eplb-on-cpu.log", True, False, 0),
        ("vllm-enable-return-routed-experts-on-cpu.log", True, False, 0),
    ],
)
def test_recorded_logs(name: str, whole: bool, ready: bool, fatal: int) -> None:
    data = (MADE / name).read_bytes()
    made, _findings, table = imported(data)
    assert payload(made).whole == whole
    assert ("ready" in table.text) == ready
    dead = [line for line in data.decode().splitlines() if "EngineDeadError" in line or "died unexpectedly" in line]
    assert sum(v for m, v in zip(table.metric, table.value, strict=True) if m.startswith("fatal_")) == fatal
    assert fatal >= len(dead)


@shared
@pytest.mark.shared
def test_the_recorded_engine_agrees_with_its_server_info() -> None:
    """GET /server_info of the same version and command names the same values."""
    info = json.loads((MADE / "vllm-server_info-cpu.json").read_text())["vllm_config"]
    _made, _findings, table = imported((MADE / "serve.log").read_bytes())
    told = {metric: found[-1][1:] for metric in set(table.metric) for found in [values(table, metric)]}
    assert told["kv_cache_tokens"] == (info["cache_config"]["kv_cache_size_tokens"], "")
    assert told["available_kv_cache_bytes"] == (info["cache_config"]["kv_cache_memory_bytes"], "")
    assert told["precision"] == (0, info["model_config"]["dtype"].removeprefix("torch."))
    assert told["max_model_len"] == (info["model_config"]["max_model_len"], "")
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        assert told[name] == (info["parallel_config"][name], "")


def observations() -> Iterator[dict[str, object]]:
    if MADE.is_dir():
        yield from json.loads((SHARED / "cases" / "observations.json").read_text())


@shared
@pytest.mark.shared
def test_lines_of_other_peoples_logs_give_the_values_that_were_read_by_hand() -> None:
    seen = 0
    for case in observations():
        lines = case.get("log_excerpt_lines") or []
        assert isinstance(lines, list)
        found = {one.metric: one.value for line in reversed(lines) for one in read_line(line)}
        for name, metric in (
            ("model_loading_gib", "model_loading_bytes"),
            ("available_kv_gib", "available_kv_cache_bytes"),
        ):
            if metric in found and case.get(name) is not None:
                assert found[metric] == round(Decimal(str(case[name])) * 2**30), case["id"]
                seen += 1
        if "kv_cache_tokens" in found and case.get("kv_tokens") is not None:
            assert found["kv_cache_tokens"] == case["kv_tokens"], case["id"]
            seen += 1
    assert seen > 100


def test_lines_keep_their_numbers_and_the_last_time() -> None:
    text = b"plain\nINFO 01-02 03:04:05 [a.py:1] one\ntwo \xff\r\n"
    lines = list(log_lines(text, LogClock(1970, 0)))
    assert [(one.number, one.text) for one in lines] == [(1, "plain"), (2, "one"), (3, "two \ufffd")]
    at = ((24 + 3) * 3600 + 4 * 60 + 5) * 10**9
    assert [one.time_ns for one in lines] == [None, at, at]
