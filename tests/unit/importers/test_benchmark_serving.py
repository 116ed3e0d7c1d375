"""Detailed files of vLLM's older benchmark_serving.py: made by hand, checked by numpy and on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moeplan.errors import InputError
from moeplan.importers.benchmark_serving import import_benchmark_serving
from moeplan.importers.trial import ImportedTrial, TrialInputs

PUBLIC = Path(__file__).resolve().parents[3].parent / "shared" / "samples" / "public"
needs_samples = pytest.mark.skipif(not PUBLIC.is_dir(), reason="needs the shared samples")
TTFTS, ITLS = [0.1, 0.2, 0.25, 0.0], [[0.01, 0.03], [0.01, 0.02], [0.05], []]


def document(**changed: Any) -> dict[str, Any]:
    """Return four requests of three tokens: two whole, one broken off after two, one refused without a reason."""
    pooled = np.concatenate(ITLS) * 1e3
    ttfts = np.array(TTFTS[:3]) * 1e3
    made: dict[str, Any] = {
        "date": "20250814-162820",
        "backend": "vllm",
        "model_id": "org/m",
        "num_prompts": 4,
        "max_concurrency": 2,
        "duration": 2.0,
        "completed": 3,
        "total_output_tokens": 8,
        "request_throughput": 1.5,
        "request_goodput:": None,
        "input_lens": [5, 5, 5, 5],
        "output_lens": [3, 3, 2, 0],
        "ttfts": TTFTS,
        "itls": ITLS,
        "errors": ["", "", "", ""],
        "p99_ttft_ms": float(np.percentile(ttfts, 99)),
        "std_ttft_ms": float(np.std(ttfts)),
        "p99.9_itl_ms": float(np.percentile(pooled, 99.9)),
        "median_itl_ms": float(np.median(pooled)),
        "mean_e2el_ms": 250.0,
    }
    return made | changed


def stated(**changed: Any) -> TrialInputs:
    made: dict[str, Any] = {"requested_input_tokens": 5, "requested_output_tokens": 3, "ignore_eos": True}
    interval = {"started": "2025-08-14T20:00:00Z", "ended": "2025-08-14T21:00:00Z"}
    return TrialInputs(**(made | interval | changed))


def trial(given: TrialInputs | None = None, **changed: Any) -> ImportedTrial:
    told = {key: value for key, value in document(**changed).items() if value != "absent"}
    return import_benchmark_serving(json.dumps(told).encode(), given or stated(continuous_usage=True))


def codes(made: ImportedTrial) -> list[str]:
    return [finding.code for finding in made.findings]


def test_raw_data_are_read_to_the_nanosecond_and_the_tools_figures_borne_out() -> None:
    made = trial()
    assert made.requests.outcome == ("complete", "complete", "truncated", "error")
    assert list(made.requests.ttft_ns) == [100_000_000, 200_000_000, 250_000_000, 0]
    assert list(made.requests.end_ns) == [140_000_000, 230_000_000, 300_000_000, 0]
    assert list(made.chunk_gaps.gap_ns) == [10_000_000, 30_000_000, 10_000_000, 20_000_000, 50_000_000]
    assert (made.model, made.endpoint, made.concurrency, made.duration_ns) == ("org/m", "vllm", 2, 2 * 10**9)
    assert codes(made) == ["failed_requests", "truncated_counted_as_success", "start_times_missing"]


def test_without_a_statement_no_request_is_shown_to_be_whole() -> None:
    made = trial(stated())
    assert made.requests.outcome == ("truncated", "truncated", "truncated", "error")
    assert not any(made.requests.usage)
    assert "completion_not_shown" in codes(made)


@pytest.mark.parametrize("name", ["p99_ttft_ms", "std_ttft_ms", "p99.9_itl_ms", "request_throughput"])
def test_a_claim_that_the_raw_data_do_not_bear_out_is_an_error(name: str) -> None:
    findings = [item for item in trial(**{name: 1.01 * document()[name]}).findings if item.code == "claim_mismatch"]
    assert [(item.severity, item.where) for item in findings] == [("error", name)]


def test_an_e2e_figure_below_ttft_and_gaps_is_an_error() -> None:
    # (140 + 230 + 300) / 3 = 223.3 ms
    assert "claim_mismatch" in codes(trial(mean_e2el_ms=223.0))
    assert "claim_mismatch" not in codes(trial(mean_e2el_ms=224.0))


def test_requests_the_tool_was_to_send_and_does_not_list_are_named() -> None:
    finding = next(item for item in trial(num_prompts=5).findings if item.code == "requests_not_listed")
    assert finding.severity == "error"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"ttfts": "absent"}, "raw_data_missing"),
        ({"latencies": [1], "start_times": [1]}, "newer_file"),
        ({"itls": [[]]}, "length_mismatch"),
        ({"model_id": "absent"}, "foreign_file"),
        ({"random_range_ratio": 1, "total_output_tokens_retokenized": 1}, "foreign_file"),
    ],
)
def test_another_or_half_a_file_is_refused_by_name(changed: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        trial(**changed)
    assert caught.value.issues[0].code == code


@pytest.mark.shared
@needs_samples
@pytest.mark.parametrize(
    "name", ["vllm-bench/fixed-ar-mtp-8k1k-conc64.json", "sglang-bench/mi355x-sglang_mtp_tp4_conc64.json"]
)
def test_public_files_without_lists_are_named(name: str) -> None:
    with pytest.raises(InputError) as caught:
        import_benchmark_serving((PUBLIC / name).read_bytes(), stated())
    assert caught.value.issues[0].code == "raw_data_missing"
