"""aiperf: its records as exact tables, broken streams as failures, its own figures reproduced."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from moeplan.errors import InputError
from moeplan.evaluation.trials import chunk_gap_groups, ttft_groups
from moeplan.importers.aiperf import import_aiperf
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.model.columns import view

SAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "samples"
WHOLE = SAMPLES / "made" / "aiperf-0.13.0"
KILLED = SAMPLES / "made" / "aiperf-0.13.0-engine-killed"
PUBLIC = SAMPLES / "public" / "aiperf"
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared samples do not lie beside the repository"),
]

START = 1_796_056_059_664_528_950


def record(place: int = 0, **changed: Any) -> dict[str, Any]:
    """One record of three tokens in three chunks: 100 ms to the first, then 10 and 30 ms."""
    metadata: dict[str, Any] = {
        "session_num": place,
        "credit_issued_ns": START + place * 1000 - 400,
        "request_start_ns": START + place * 1000,
        "request_end_ns": START + place * 1000 + 150_000_000,
        "benchmark_phase": "profiling",
        "phase_index": 1,
        "was_cancelled": False,
    }
    metrics: dict[str, Any] = {
        "time_to_first_token": {"value": 100.0, "unit": "ms"},
        "inter_chunk_latency": {"value": [10.0, 30.000001], "unit": "ms"},
        "request_latency": {"value": 140.000001, "unit": "ms"},
        "usage_prompt_tokens": {"value": 12, "unit": "tokens"},
        "usage_completion_tokens": {"value": 3, "unit": "tokens"},
        "input_sequence_length": {"value": 10, "unit": "tokens"},
        "output_sequence_length": {"value": 4, "unit": "tokens"},
        "osl_mismatch_diff_pct": {"value": 33.333333333333336, "unit": "%"},
        "inter_token_latency": {"value": 13.333333666666667, "unit": "ms"},
    }
    for key, value in changed.items():
        (metadata if key in metadata or key == "profiling_index" else metrics)[key] = value
    document = {"metadata": metadata, "metrics": {key: value for key, value in metrics.items() if value is not None}}
    return document | ({"error": metrics.pop("error")} if document["metrics"].pop("error", None) else {})


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(item, separators=(",", ":")).encode() + b"\n" for item in records)


def stated(**changed: Any) -> TrialInputs:
    base = {"requested_input_tokens": 10, "requested_output_tokens": 3, "ignore_eos": True}
    return TrialInputs(**(base | {"endpoint": "chat", "model": "tiny"} | changed))


def one(data: bytes, inputs: TrialInputs | None = None) -> ImportedTrial:
    (trial,) = import_aiperf(data, inputs or stated())
    return trial


def codes(trial: ImportedTrial) -> list[str]:
    return [finding.code for finding in trial.findings]


def refusal(data: bytes, inputs: TrialInputs | None = None) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        import_aiperf(data, inputs or stated())
    return caught.value.issues[0].path, caught.value.issues[0].code


def test_rows_by_hand() -> None:
    trial = one(lines(record(1), record(0)))
    table = trial.requests
    assert list(table.request) == [1, 0]
    assert list(table.start_ns) == [0, 1000]
    assert list(table.queue_ns) == [400, 400]
    assert list(table.ttft_ns) == [100_000_000] * 2
    assert list(table.end_ns) == [140_000_001, 140_001_001]
    assert list(table.chunks) == [3, 3]
    assert list(table.input_tokens) == [12, 12]
    assert list(table.output_tokens) == [3, 3]
    assert list(table.usage) == [1, 1]
    assert table.outcome == ("complete", "complete")
    assert list(trial.chunk_gaps.gap_ns) == [10_000_000, 30_000_001] * 2
    assert trial.duration_ns == 150_001_000
    assert (trial.interval.start, trial.interval.end) == ("2026-11-30T16:27:39Z", "2026-11-30T16:27:40Z")
    assert codes(trial) == ["summary_missing"]


def test_a_file_is_read_as_a_stream_too() -> None:
    data = lines(record(0), record(1))
    (streamed,) = import_aiperf(io.BytesIO(data), stated())
    assert attrs.asdict(streamed.requests) == attrs.asdict(one(data).requests)


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({}, "complete"),
        ({"usage_completion_tokens": None}, "truncated"),
        ({"usage_completion_tokens": {"value": 2, "unit": "tokens"}}, "truncated"),
        ({"usage_completion_tokens": {"value": 4, "unit": "tokens"}}, "truncated"),
        ({"error": {"code": 500, "type": "x", "message": "y"}}, "error"),
        ({"was_cancelled": True}, "error"),
    ],
)
def test_outcomes(changed: dict[str, Any], outcome: str) -> None:
    assert one(lines(record(**changed))).requests.outcome == (outcome,)


def test_the_record_s_own_length_counts_and_else_the_stated_one() -> None:
    asked_four = record(
        osl_mismatch_diff_pct={"value": 0.0, "unit": "%"}, usage_completion_tokens={"value": 4, "unit": "tokens"}
    )
    trial = one(lines(asked_four))
    assert trial.requests.outcome == ("complete",)
    assert "requested_output_differs" in codes(trial)
    unknown = lines(record(osl_mismatch_diff_pct=None))
    assert "requested_output_stated" in codes(one(unknown))
    assert one(unknown, stated(requested_output_tokens=4)).requests.outcome == ("truncated",)


def test_an_early_stop_is_complete_only_where_stated_and_counted_by_the_server() -> None:
    short = record(usage_completion_tokens={"value": 2, "unit": "tokens"})
    accepting = stated(ignore_eos=False, accept_early_stop=True)
    assert one(lines(short), accepting).requests.outcome == ("complete",)
    assert one(lines(short), stated(ignore_eos=False)).requests.outcome == ("truncated",)
    assert one(lines(record(usage_completion_tokens=None)), accepting).requests.outcome == ("truncated",)


def test_the_warm_up_is_the_file_s() -> None:
    warm = record(0, benchmark_phase="warmup", phase_index=0)
    trial = one(lines(warm, warm, record(1)), stated(warmup_requests=3))
    assert (trial.warmup_requests, trial.warmup_input_tokens, trial.warmup_output_tokens) == (2, 24, 6)
    assert len(trial.requests) == 1
    assert "stated_warmup_differs" in codes(trial)
    broken = record(0, benchmark_phase="warmup", phase_index=0, usage_completion_tokens=None)
    trial = one(lines(warm, broken, record(1)))
    assert (trial.warmup_requests, trial.warmup_input_tokens, trial.warmup_output_tokens) == (2, None, None)
    assert "warmup_unknown" in codes(trial)


def test_each_profiling_phase_is_a_trial_with_the_warm_up_before_it() -> None:
    warm = [record(0, benchmark_phase="warmup", phase_index=index) for index in (0, 2, 2)]
    first, second = import_aiperf(lines(record(5, phase_index=3), *warm, record(1), record(2)), stated())
    assert (len(first.requests), first.warmup_requests) == (2, 1)
    assert (len(second.requests), second.warmup_requests) == (1, 2)


def test_a_record_without_chunks_is_named() -> None:
    trial = one(lines(record(time_to_first_token=None, inter_chunk_latency=None)))
    assert list(trial.requests.chunks) == [0]
    assert "no_first_chunk" in codes(trial)
    (group,) = ttft_groups(trial.requests)
    assert (list(group.values), group.lost) == ([], 1)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("3.2516749999999996", 3_251_675),
        ("0.0000005", 0),
        ("0.0000015", 2),
        ("1e-6", 1),
        ("7200000.0000005", 7200000000000),
    ],
)
def test_a_time_is_rounded_from_its_decimal(text: str, ns: int) -> None:
    exact = int((Decimal(text) * 10**6).to_integral_value())
    assert exact == ns
    data = lines(record(inter_chunk_latency={"value": [1.0, 1.0], "unit": "ms"}))
    data = data.replace(b"[1.0,1.0]", f"[1.0,{text}]".encode()).replace(b"140.000001", b"8000000.5")
    data = data.replace(
        b'"request_end_ns":' + str(START + 150_000_000).encode(), b'"request_end_ns":' + str(START + 10**13).encode()
    )
    assert list(one(data).chunk_gaps.gap_ns) == [1_000_000, ns]


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (b"", ("$", "no_trial")),
        (lines(record(0, benchmark_phase="warmup")), ("$", "no_trial")),
        (lines(record())[:-20], ("line 1: $", "partial_file")),
        (lines(record(), record())[:-20] + b"\n", ("line 2: $", "invalid_json")),
        (b"[1]\n", ("line 1: $", "wrong_type")),
        (b'{"schema_version":"1.4","aiperf_version":"0.13.0"}\n', ("line 1: $", "wrong_file")),
        (lines(record()).replace(b'"session_num"', b'"was_cancelled"'), ("line 1: $", "duplicate_key")),
        (lines(record()).replace(b":100.0", b":NaN"), ("line 1: $", "not_a_number")),
        (lines(record(benchmark_phase="cooldown")), ("line 1: $.metadata.benchmark_phase", "invalid_value")),
        (lines(record(request_start_ns="1")), ("line 1: $.metadata.request_start_ns", "invalid_value")),
        (lines(record(request_end_ns=START - 1)), ("line 1: $.metadata.request_end_ns", "time_reversed")),
        (
            lines(record(time_to_first_token={"value": 1.0, "unit": "sec"})),
            ("line 1: $.metrics.time_to_first_token.unit", "unknown_unit"),
        ),
        (
            lines(record(inter_chunk_latency={"value": [1.0, -1.0], "unit": "ms"})),
            ("line 1: $.metrics.inter_chunk_latency.value", "invalid_value"),
        ),
        (
            lines(record(), record(inter_chunk_latency={"value": [1.0, 9.0e9, 9.1e9], "unit": "ms"})),
            ("line 2: $.metrics.inter_chunk_latency.value", "invalid_value"),
        ),
        (
            lines(record(inter_chunk_latency={"value": [10**30], "unit": "ms"})),
            ("line 1: $.metrics.inter_chunk_latency.value", "invalid_value"),
        ),
        (
            lines(record(inter_token_latency={"value": "13", "unit": "ms"})),
            ("line 1: $.metrics.inter_token_latency.value", "invalid_value"),
        ),
        (
            lines(record(inter_chunk_latency={"value": 1.0, "unit": "ms"})),
            ("line 1: $.metrics.inter_chunk_latency.value", "invalid_value"),
        ),
        (
            lines(record(inter_chunk_latency={"value": [True], "unit": "ms"})),
            ("line 1: $.metrics.inter_chunk_latency.value", "invalid_value"),
        ),
        (
            lines(record(usage_completion_tokens={"value": 2.5, "unit": "tokens"})),
            ("line 1: $.metrics.usage_completion_tokens.value", "invalid_value"),
        ),
        (
            lines(record(osl_mismatch_diff_pct={"value": 30.0, "unit": "%"})),
            ("line 1: $.metrics.osl_mismatch_diff_pct.value", "invalid_value"),
        ),
    ],
)
def test_refusals(data: bytes, refused: tuple[str, str]) -> None:
    assert refusal(data) == refused


def test_what_no_file_names_is_asked_for() -> None:
    assert refusal(lines(record()), stated(endpoint=None)) == ("--endpoint", "not_stated")
    assert refusal(lines(record()), stated(model=None)) == ("--model", "not_stated")
    assert refusal(lines(record()), stated(summaries=(b"{}",))) == ("--summary: $", "wrong_file")
    assert refusal(lines(record()), stated(summaries=(b"{}", b"{}"))) == ("--summary", "summary_count")


def sample(folder: Path, tokens: int) -> tuple[ImportedTrial, list[dict[str, Any]], dict[str, Any]]:
    raw, summary = folder / "profile_export.jsonl", folder / "profile_export_aiperf.json"
    inputs = stated(requested_output_tokens=tokens, endpoint=None, model=None, summaries=(summary.read_bytes(),))
    records = [json.loads(line) for line in raw.read_text().splitlines()]
    return one(raw.read_bytes(), inputs), records, json.loads(summary.read_text())


def measured(records: list[dict[str, Any]], name: str) -> Iterator[Any]:
    for item in records:
        if item["metadata"]["benchmark_phase"] == "profiling" and name in item["metrics"]:
            yield item["metrics"][name]["value"]


@pytest.mark.parametrize(("folder", "tokens"), [(WHOLE, 32), (KILLED, 200)])
@pytest.mark.parametrize("percent", [50, 95, 99])
class TestFigures:
    """The tool's figures by its definition to 1e-6, and ours by numpy from its records."""

    pytestmark = shared

    def test_the_tool_s_own(self, folder: Path, tokens: int, percent: int) -> None:
        trial, _, summary = sample(folder, tokens)
        good = np.array([outcome != "error" for outcome in trial.requests.outcome])
        table = trial.requests
        by_place = np.argsort(view(table.request))
        kept = np.repeat(good[by_place][view(trial.chunk_gaps.requests)], view(trial.chunk_gaps.counts))
        ours = {
            "time_to_first_token": view(table.ttft_ns)[good],
            "request_latency": (view(table.end_ns) - view(table.start_ns))[good],
            "inter_chunk_latency": view(trial.chunk_gaps.gap_ns)[kept],
        }
        for name, values in ours.items():
            told = summary[name][f"p{percent}"]
            assert np.percentile(values, percent) / 1e6 == pytest.approx(told, rel=1e-6), name
        assert not [finding for finding in trial.findings if finding.severity == "error"]

    def test_ours(self, folder: Path, tokens: int, percent: int) -> None:
        trial, records, _ = sample(folder, tokens)
        told = [item for item in records if item["metadata"]["benchmark_phase"] == "profiling"]
        whole = [item for item in told if "usage_completion_tokens" in item["metrics"]]
        lost = len(told) - len(whole)
        ttft = [item["metrics"]["time_to_first_token"]["value"] for item in whole] + [np.inf] * lost
        expected = np.percentile(ttft, percent, method="inverted_cdf")
        values = [group.values[0] if group.values else np.inf for group in ttft_groups(trial.requests)]
        made = np.percentile(values, percent, method="inverted_cdf")
        assert made / 1e6 == pytest.approx(expected, rel=1e-12)
        pooled = np.concatenate([list(value) for value in measured(records, "inter_chunk_latency")])
        seen = np.concatenate([list(group.values) for group in chunk_gap_groups(trial.requests, trial.chunk_gaps)])
        assert sorted(seen) == sorted(np.rint(pooled * 1e6))


class TestSamples:
    """What the recorded runs are."""

    pytestmark = shared

    def test_the_killed_engine_s_broken_streams_are_failures(self) -> None:
        trial, records, summary = sample(KILLED, 200)
        outcomes = dict(zip(trial.requests.request, trial.requests.outcome, strict=True))
        assert [place for place, outcome in sorted(outcomes.items()) if outcome == "truncated"] == list(range(12, 26))
        assert sum(outcome == "error" for outcome in outcomes.values()) == 34
        assert summary["request_count"]["avg"] == 26
        sessions = [records[place]["metadata"]["session_num"] for place in range(12, 26)]
        assert sorted(sessions) == list(range(12, 26))
        messages = {finding.code: finding.message for finding in trial.findings}
        assert messages["truncated_counted_as_success"].endswith("requests 12-25")
        assert messages["failures_left_out"].endswith("requests 26-59")

    def test_the_warm_up_is_counted_apart(self) -> None:
        trial, records, summary = sample(WHOLE, 32)
        warm = [item["metrics"] for item in records if item["metadata"]["benchmark_phase"] == "warmup"]
        told = [sum(item[f"usage_{side}_tokens"]["value"] for item in warm) for side in ("prompt", "completion")]
        assert (trial.warmup_requests, trial.warmup_input_tokens, trial.warmup_output_tokens) == (4, *told)
        assert len(trial.requests) == 40
        assert (trial.endpoint, trial.model, trial.concurrency, trial.schedule) == ("chat", "tiny-moe", 4, "closed")
        assert trial.tool_version == summary["aiperf_version"] == "0.13.0"
        assert set(trial.requests.outcome) == {"complete"}

    def test_a_cut_public_file_is_no_whole_run(self) -> None:
        raw = PUBLIC / "mi355x-kimik2.7-conc1-profile_export.first.jsonl"
        summary = PUBLIC / "mi355x-kimik2.7-conc1-profile_export_aiperf.json"
        trial = one(raw.read_bytes(), stated(summaries=(summary.read_bytes(),), endpoint=None, model=None))
        assert len(trial.requests) == 37
        assert (trial.tool_version, trial.concurrency) == ("0.8.0", 1)
        assert [finding.code for finding in trial.findings if finding.severity == "error"] == [
            "claim_mismatch",
            "records_missing",
        ]

    def test_a_changed_summary_is_an_error(self) -> None:
        summary = json.loads((WHOLE / "profile_export_aiperf.json").read_text())
        summary["inter_chunk_latency"]["p95"] *= 1.00001
        raw = (WHOLE / "profile_export.jsonl").read_bytes()
        trial = one(raw, stated(summaries=(json.dumps(summary).encode(),)))
        assert [(f.code, f.where) for f in trial.findings if f.severity == "error"] == [
            ("claim_mismatch", "inter_chunk_latency.p95")
        ]
