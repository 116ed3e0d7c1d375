"""SGLang bench_serving: what its file shows, against numpy over the file, its own figures, and figures made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moeplan.catalogue.order_statistics import nearest_rank
from moeplan.errors import InputError
from moeplan.importers.sglang_bench import import_sglang_bench
from moeplan.importers.summary import summarize
from moeplan.importers.trial import ImportedTrial, TrialInputs

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
SAMPLES = SHARED / "samples" / "made" / "sglang-bench_serving-0.5.23"
PUBLIC = SHARED / "samples" / "public"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs the shared samples")


def run(**changed: Any) -> dict[str, Any]:
    """Return three requests on a native backend: two whole, one that the server broke off after two of four tokens."""
    made: dict[str, Any] = {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": float("inf"),
        "max_concurrency": 2,
        "random_range_ratio": 1.0,
        "server_info": {"model_path": "tiny"},
        "duration": 1.0,
        "completed": 3,
        "total_output_tokens": 10,
        "total_output_tokens_retokenized": 11,
        "request_throughput": 3.0,
        "output_throughput": 10.0,
        "mean_ttft_ms": 200.0,
        "median_ttft_ms": 200.0,
        "p95_ttft_ms": 290.0,
        "std_ttft_ms": 81.64965809277261,
        # 10, 20, 20 | 10, 10, 30 | 50
        "mean_itl_ms": 150 / 7,
        "median_itl_ms": 20.0,
        "p99_itl_ms": 48.8,
        "mean_e2e_latency_ms": 251.0,
        "input_lens": [8, 8, 8],
        "output_lens": [4, 4, 2],
        "ttfts": [0.1, 0.2, 0.3],
        "itls": [[0.01, 0.02, 0.02], [0.01, 0.01, 0.03], [0.05]],
        "errors": ["", "", ""],
    }
    return made | changed


def encoded(*runs: dict[str, Any]) -> bytes:
    lines = ({key: value for key, value in made.items() if value != "absent"} for made in runs)
    return "".join(json.dumps(line).replace("Infinity", '"inf"') + "\n" for line in lines).encode()


def stated(**changed: Any) -> TrialInputs:
    made: dict[str, Any] = {
        "requested_input_tokens": 8,
        "requested_output_tokens": 4,
        "ignore_eos": True,
        "started": "2026-11-30T17:00:00Z",
        "ended": "2026-11-30T17:10:00Z",
    }
    return TrialInputs(**(made | changed))


def trial(**changed: Any) -> ImportedTrial:
    (made,) = import_sglang_bench(encoded(run(**changed)), stated())
    return made


def codes(made: ImportedTrial) -> list[str]:
    return [finding.code for finding in made.findings]


def issue(data: bytes, given: TrialInputs | None = None) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        import_sglang_bench(data, given or stated())
    return caught.value.issues[0].code, caught.value.issues[0].path


def test_a_native_run_is_read_to_the_nanosecond_and_a_broken_stream_is_no_success() -> None:
    made = trial()
    assert made.requests.outcome == ("complete", "complete", "truncated")
    assert list(made.requests.ttft_ns) == [100_000_000, 200_000_000, 300_000_000]
    assert list(made.requests.output_tokens) == [4, 4, 2]
    assert list(made.requests.usage) == [1, 1, 0]
    assert (made.model, made.endpoint, made.concurrency, made.schedule) == ("tiny", "sglang", 2, "closed")
    assert (made.interval.start, made.interval.end) == ("2026-11-30T17:00:00Z", "2026-11-30T17:10:00Z")
    assert "claim_mismatch" not in codes(made)
    assert [finding.message for finding in made.findings if finding.code == "truncated_counted_as_success"] == [
        "1 requests ended without the tokens asked for: requests 2"
    ]


def test_equal_neighbours_of_a_native_backend_are_one_chunk() -> None:
    made = trial()
    assert list(made.chunk_gaps.gap_ns) == [10_000_000, 40_000_000, 20_000_000, 30_000_000, 50_000_000]
    assert list(made.requests.chunks) == [3, 3, 2]
    assert list(made.requests.end_ns) == [150_000_000, 250_000_000, 350_000_000]
    other = trial(backend="sglang-oai-chat")
    assert list(other.chunk_gaps.gap_ns)[:3] == [10_000_000, 20_000_000, 20_000_000]


@pytest.mark.parametrize("backend", ["vllm-chat", "sglang-oai-chat", "vllm", "lmdeploy"])
def test_a_backend_without_the_servers_count_shows_no_whole_request(backend: str) -> None:
    made = trial(backend=backend)
    assert made.requests.outcome == ("truncated",) * 3
    assert not any(made.requests.usage)
    assert list(made.requests.output_tokens) == [0, 0, 0]
    assert "completion_not_shown" in codes(made)
    (told,) = import_sglang_bench(encoded(run(backend=backend)), stated(continuous_usage=True))
    assert told.requests.outcome == ("complete", "complete", "truncated")
    assert "completion_not_shown" not in codes(told)


def test_a_success_without_text_holds_the_requested_length_and_is_none() -> None:
    made = trial(ttfts=[0.0, 0.2, 0.3], itls=[[], [0.01, 0.01, 0.03], [0.05]])
    assert made.requests.outcome[0] == "truncated"
    assert (made.requests.chunks[0], made.requests.output_tokens[0], made.requests.usage[0]) == (0, 0, 0)
    assert "no_chunk_counted_as_success" in codes(made)


def test_failed_requests_are_named_by_their_index() -> None:
    made = trial(errors=["", "Bad Request: {}", ""], completed=2)
    assert made.requests.outcome == ("complete", "error", "truncated")
    assert [item.message for item in made.findings if item.code == "failed_requests"] == [
        "1 requests failed: requests 1"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p95_ttft_ms", 291.0),
        ("mean_itl_ms", 21.0),
        ("std_ttft_ms", 100.0),
        ("completed", 2),
        ("output_throughput", 11.0),
        ("mean_e2e_latency_ms", 240.0),
    ],
)
def test_a_claim_that_the_raw_data_do_not_bear_out_is_an_error(name: str, value: float) -> None:
    findings = [item for item in trial(**{name: value}).findings if item.code == "claim_mismatch"]
    assert [(item.severity, item.where) for item in findings] == [("error", name)]


def test_the_summary_of_a_run_without_start_times_claims_no_concurrency() -> None:
    shown = summarize(trial())
    assert (shown.concurrency_peak, shown.cells()[-1]) == (None, "unknown")
    assert (shown.complete, shown.truncated, shown.tool_ttft_p95_ms) == (2, 1, "290.0")


def test_several_runs_of_one_file_are_several_trials() -> None:
    made = import_sglang_bench(encoded(run(), run(ttfts=[0.1, 0.2, 0.31], median_ttft_ms="absent")), stated())
    assert [list(item.requests.ttft_ns)[-1] for item in made] == [300_000_000, 310_000_000]
    (second,) = import_sglang_bench(encoded(run(), run(ttfts=[0.1, 0.2, 0.31])), stated(stage=1))
    assert list(second.requests.ttft_ns)[-1] == 310_000_000
    assert issue(encoded(run()), stated(stage=1)) == ("unknown_stage", "--stage")


@pytest.mark.parametrize(
    ("data", "code", "path"),
    [
        (encoded(run(ttfts="absent")), "raw_data_missing", "line 1: $"),
        (encoded(run(), run(itls=[[], []])), "length_mismatch", "line 2: $.itls"),
        (encoded(run(ttfts=[0.1, -0.2, 0.3])), "invalid_value", "line 1: $.ttfts[1]"),
        (encoded(run(output_lens=[4, 4, 2.5])), "invalid_value", "line 1: $.output_lens[2]"),
        (encoded(run(itls=[[0.1, "x"], [], []])), "invalid_value", "line 1: $.itls[0][1]"),
        (encoded(run(duration="absent")), "invalid_value", "line 1: $.duration"),
        (encoded(run()) + b'{"backend": "sgl', "partial_file", "line 2"),
        (b'{"a": 1}\n{"a": 2}\n', "foreign_file", "line 1: $"),
        (b'{"a": 1}\nnot json\n', "invalid_json", "line 2: $"),
        (b'{"endpoint_type": "vllm", "model_id": "m", "duration": 1}', "foreign_file", "line 1: $"),
        (b"[1]\n", "wrong_type", "line 1"),
        (b"\n", "empty_file", "$"),
    ],
)
def test_another_or_half_a_file_is_refused_by_name(data: bytes, code: str, path: str) -> None:
    assert issue(data) == (code, path)


@pytest.mark.parametrize("option", ["started", "ended"])
def test_a_file_without_a_clock_needs_the_interval(option: str) -> None:
    assert issue(encoded(run()), stated(**{option: None})) == ("not_stated", f"--{option}")


@pytest.mark.shared
@needs_samples
def test_rejected_requests_of_a_real_run_are_failures() -> None:
    data = (SAMPLES / "bench-details-18of30-rejected-400.jsonl").read_bytes()
    (made,) = import_sglang_bench(data, stated(requested_output_tokens=16))
    wrong = [index for index, error in enumerate(json.loads(data)["errors"]) if error]
    assert len(wrong) == 18
    rows = zip(made.requests.request, made.requests.outcome, strict=True)
    assert sorted(request for request, outcome in rows if outcome == "error") == wrong
    told = next(item.message for item in made.findings if item.code == "failed_requests")
    assert told == f"18 requests failed: requests {', '.join(map(str, wrong))}"
    assert "complete" not in made.requests.outcome
    assert "1 requests without text" in next(
        item.message for item in made.findings if item.code == "no_chunk_counted_as_success"
    )


@pytest.mark.shared
@needs_samples
@pytest.mark.parametrize("name", ["bench-details.jsonl", "bench-details-18of30-rejected-400.jsonl"])
def test_ttft_and_gaps_of_a_real_run_are_those_of_numpy_and_of_the_tool(name: str) -> None:
    data = (SAMPLES / name).read_bytes()
    told = json.loads(data)
    (made,) = import_sglang_bench(data, stated(requested_output_tokens=32))
    assert "claim_mismatch" not in codes(made)
    fine = [index for index, error in enumerate(told["errors"]) if not error]
    row = {request: place for place, request in enumerate(made.requests.request)}
    ttft = np.array([made.requests.ttft_ns[row[index]] for index in fine])
    assert ttft.tolist() == [round(told["ttfts"][index] * 1e9) for index in fine]
    raw = np.array([gap for index in fine for gap in told["itls"][index]])
    gaps = np.array(made.chunk_gaps.gap_ns)
    assert np.abs(np.sort(gaps) - np.sort(raw) * 1e9).max() <= 0.5 + 1e-6
    for percent in (95, 99):
        assert np.percentile(ttft, percent) / 1e6 == pytest.approx(told[f"p{percent}_ttft_ms"], rel=1e-6)
        assert np.percentile(gaps, percent) / 1e6 == pytest.approx(told[f"p{percent}_itl_ms"], rel=1e-6)
        ours = sorted(gaps)[nearest_rank(len(gaps), percent) - 1]
        assert ours == round(np.percentile(raw, percent, method="inverted_cdf") * 1e9)
    # The file holds no latencies: TTFT and gaps can only stay below the tool's own E2E figures.
    length = np.array([told["ttfts"][index] + sum(told["itls"][index]) for index in fine])
    for percent in (95, 99):
        assert np.percentile(length, percent) * 1e3 <= told[f"p{percent}_e2e_latency_ms"]


@pytest.mark.shared
@needs_samples
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sglang-bench/b200-dsr1-fp4-conc256.json", "InferenceX runner summary"),
        ("sglang-bench/mi355x-sglang_mtp_tp4_conc64.json", "benchmark_serving (vLLM of 2025, or a fork)"),
        ("inferencex-agg/b200-dsr1-conc256_b200-nb.json", "InferenceX aggregate"),
        ("vllm-bench/h100-chunked_prefill_singlenode-qps-4.json", "vllm bench serve"),
        ("guidellm/guidellm_report_v2-fixture.json", "guidellm"),
    ],
)
def test_a_public_file_of_another_tool_is_named(name: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        import_sglang_bench((PUBLIC / name).read_bytes(), stated())
    assert (caught.value.issues[0].code, caught.value.issues[0].got) == ("foreign_file", found)
