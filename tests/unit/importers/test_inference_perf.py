"""inference-perf: exact tables, streams that broke as failures, its reports reproduced stage by stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moeplan.errors import InputError
from moeplan.evaluation.trials import chunk_gap_groups, ttft_groups
from moeplan.importers.inference_perf import import_inference_perf
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.model.columns import view

MADE = Path(__file__).resolve().parents[3].parent / "shared" / "samples" / "made"
WHOLE = MADE / "inference-perf-0.7.0"
KILLED = MADE / "inference-perf-0.7.0-engine-killed"
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not MADE.is_dir(), reason="the shared samples do not lie beside the repository"),
]

REQUEST = '{"model": "tiny", "prompt": "x", "max_tokens": 3, "ignore_eos": true}'
EVENTS = 'data: {"choices":[{"text":"a \\"error\\""}]}\n\ndata: [DONE]\n\n'


def request(start: float = 100.0, **changed: Any) -> dict[str, Any]:
    """Three tokens in two chunks, 0.25 s and 0.5 s after the sending; the stream ends after 0.75 s."""
    metrics: dict[str, Any] | None = {
        "output_tokens": 4,
        "server_usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        "response_chunks": ["{}", "{}"],
        "chunk_times": [start + 0.25, start + 0.5],
        "output_token_times": [start + 0.25, start + 0.5, start + 0.5],
    }
    record: dict[str, Any] = {
        "start_time": start,
        "end_time": start + 0.75,
        "request": REQUEST,
        "response": EVENTS,
        "info": {"response_metrics": metrics, "input_tokens": 10},
        "error": None,
    }
    for key, value in changed.items():
        if key in record:
            record[key] = value
        elif key == "metrics":
            record["info"]["response_metrics"] = value
        else:
            assert metrics is not None
            metrics[key] = value
    return record


def encoded(*requests: Any) -> bytes:
    return json.dumps(requests).encode()


def report(count: int, **changed: Any) -> bytes:
    document: dict[str, Any] = {
        "load_summary": {"count": count},
        "successes": {"count": count, "latency": {}},
        "failures": {"count": 0},
    }
    document["load_summary"] |= changed
    return json.dumps(document).encode()


def stated(**changed: Any) -> TrialInputs:
    base = {"requested_input_tokens": 10, "requested_output_tokens": 3, "ignore_eos": True}
    return TrialInputs(**(base | {"started": "2026-11-30T16:30:00Z", "ended": "2026-11-30T16:31:00Z"} | changed))


def one(data: bytes, inputs: TrialInputs | None = None) -> ImportedTrial:
    (trial,) = import_inference_perf(data, inputs or stated())
    return trial


def codes(trial: ImportedTrial) -> list[str]:
    return [finding.code for finding in trial.findings]


def refusal(data: bytes, inputs: TrialInputs | None = None) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        import_inference_perf(data, inputs or stated())
    return caught.value.issues[0].path, caught.value.issues[0].code


def test_rows_by_hand() -> None:
    trial = one(encoded(request(100.125), request(100.0)))
    table = trial.requests
    assert list(table.request) == [1, 0]
    assert list(table.start_ns) == [0, 125_000_000]
    assert list(table.ttft_ns) == [250_000_000] * 2
    assert list(table.end_ns) == [750_000_000, 875_000_000]
    assert list(table.chunks) == [2, 2]
    assert list(table.input_tokens) == [12, 12]
    assert list(table.output_tokens) == [3, 3]
    assert list(table.usage) == [1, 1]
    assert table.outcome == ("complete", "complete")
    assert list(trial.chunk_gaps.gap_ns) == [250_000_000] * 2
    assert (trial.duration_ns, trial.endpoint, trial.model) == (875_000_000, "completion", "tiny")
    assert (trial.interval.start, trial.interval.end) == ("2026-11-30T16:30:00Z", "2026-11-30T16:31:00Z")
    assert codes(trial) == ["summary_missing", "queue_times_missing"]


IN_STREAM = 'data: {"choices":[]}\n\ndata: {"error": {"message": "m", "code": 500}}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("changed", "outcome", "code"),
    [
        ({}, "complete", None),
        ({"server_usage": None}, "truncated", "truncated_counted_as_success"),
        ({"response": IN_STREAM}, "error", "truncated_counted_as_success"),
        ({"response": 'data: {"error": {"message": "cut'}, "error", "truncated_counted_as_success"),
        ({"server_usage": {"prompt_tokens": 12, "completion_tokens": 2}}, "truncated", "output_length_differs"),
        ({"server_usage": {"prompt_tokens": 12}}, "truncated", "truncated_counted_as_success"),
        ({"error": {"error_type": "HTTP Error 500"}, "metrics": None}, "error", "failures_left_out"),
    ],
)
def test_outcomes(changed: dict[str, Any], outcome: str, code: str | None) -> None:
    trial = one(encoded(request(), request(1.0, **changed)))
    assert trial.requests.outcome == (outcome, "complete")
    named = [finding for finding in trial.findings if finding.code == code]
    assert [finding.message.rsplit(": ", 1)[1] for finding in named] == (["requests 1"] if code else [])


def test_a_cut_text_leaves_the_stated_length_or_a_stated_variation() -> None:
    cut = encoded(request(request="[trimmed here]"))
    named = {"endpoint": "completion", "model": "tiny"}
    assert one(cut, stated(**named)).requests.outcome == ("complete",)
    assert one(cut, stated(**named, requested_output_tokens=4)).requests.outcome == ("truncated",)
    varied = one(cut, stated(**named, requested_output_tokens=4, output_varies=True))
    assert varied.requests.outcome == ("complete",)
    assert "requested_output_varies" in codes(varied)
    loose = stated(**named, requested_output_tokens=4, output_varies=True, ignore_eos=False)
    assert one(cut, loose).requests.outcome == ("truncated",)
    assert one(encoded(request(server_usage=None)), stated(output_varies=True)).requests.outcome == ("truncated",)


def test_the_request_s_own_length_wins_over_a_stated_variation() -> None:
    short = encoded(request(server_usage={"prompt_tokens": 12, "completion_tokens": 2}))
    assert one(short, stated(output_varies=True)).requests.outcome == ("truncated",)
    accepting = stated(ignore_eos=False, accept_early_stop=True)
    assert one(short, accepting).requests.outcome == ("complete",)


def test_a_hand_made_report_recomputes_and_a_false_one_is_an_error() -> None:
    document = json.loads(report(2))
    document["successes"]["latency"] = {
        "request_latency": {"mean": 0.75, "p95": 0.75},
        "time_to_first_token": {"median": 0.25},
        "inter_token_latency": {"mean": 0.125, "min": 0.0, "p99": 0.25},
        "time_per_output_token": {"max": 0.25 / 3},
        "normalized_time_per_output_token": {"p99.9": 0.1875},
    }
    document["benchmark_time_seconds"] = 1.75
    data = encoded(request(1.0), request(2.0))
    right = one(data, stated(summaries=(json.dumps(document).encode(),)))
    assert len(right.claims) == 11
    assert codes(right) == ["queue_times_missing"]
    document["successes"]["latency"]["inter_token_latency"]["mean"] = 0.25
    wrong = one(data, stated(summaries=(json.dumps(document).encode(),)))
    assert [(f.code, f.where) for f in wrong.findings if f.severity == "error"] == [
        ("claim_mismatch", "inter_token_latency.mean")
    ]


def test_stages_cut_the_file_and_their_intervals_lie_within_the_stated_one() -> None:
    data = encoded(request(100.0), request(101.0), request(110.0))
    stages = (report(2, send_duration=1.0), report(1, send_duration=0.0))
    first, second = import_inference_perf(data, stated(summaries=stages))
    assert (len(first.requests), len(second.requests)) == (2, 1)
    assert list(second.requests.start_ns) == [0]
    assert (first.interval.start, first.interval.end) == ("2026-11-30T16:30:00Z", "2026-11-30T16:30:51Z")
    assert (second.interval.start, second.interval.end) == ("2026-11-30T16:30:10Z", "2026-11-30T16:31:00Z")
    assert len(one(data, stated(summaries=stages, stage=1)).requests) == 1
    assert refusal(data, stated(summaries=stages, stage=2)) == ("--stage", "unknown_stage")
    assert refusal(data, stated(stage=0)) == ("--stage", "unknown_stage")
    assert refusal(data, stated(summaries=stages[:1])) == ("--summary", "stages_differ")
    assert refusal(data, stated(summaries=(report(3), report(3)))) == ("--summary", "stages_differ")


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (b"[]", ("$", "wrong_file")),
        (report(1), ("$", "wrong_file")),
        (encoded({"start_time": 1.0}), ("$[0]", "wrong_file")),
        (encoded(request(), request(end_time=1.0)), ("$[1].end_time", "time_reversed")),
        (encoded(request(start_time="1")), ("$[0].start_time", "invalid_value")),
        (
            encoded(request(chunk_times=[100.5, 100.25])),
            ("$[0].info.response_metrics.chunk_times", "time_reversed"),
        ),
        (
            encoded(request(server_usage={"prompt_tokens": 1, "completion_tokens": -1})),
            ("$[0].info.response_metrics.server_usage.completion_tokens", "invalid_value"),
        ),
        (encoded(request())[:-9], ("$", "invalid_json")),
    ],
)
def test_refusals(data: bytes, refused: tuple[str, str]) -> None:
    assert refusal(data) == refused


def test_what_the_file_does_not_hold_is_asked_for() -> None:
    assert refusal(encoded(request()), stated(started=None)) == ("--started", "not_stated")
    assert refusal(encoded(request(request=""))) == ("--endpoint", "not_stated")
    other = request(request=REQUEST.replace("tiny", "other"))
    assert refusal(encoded(request(), other)) == ("--model", "not_stated")
    assert refusal(encoded(request()), stated(summaries=(b"{}",))) == ("--summary 1: $", "wrong_file")


def sample(folder: Path, *names: str, **changed: Any) -> tuple[tuple[ImportedTrial, ...], list[dict[str, Any]]]:
    raw = folder / "per_request_lifecycle_metrics.trimmed.json"
    summaries = tuple((folder / f"{name}_lifecycle_metrics.json").read_bytes() for name in names)
    base = {"endpoint": "completion", "model": "tiny-moe", "output_varies": True, "summaries": summaries}
    return import_inference_perf(raw.read_bytes(), stated(**(base | changed))), json.loads(raw.read_text())


class TestSamples:
    """What the recorded runs are, and the tool's own figures."""

    pytestmark = shared

    @pytest.mark.parametrize("names", [("summary",), ("stage_0", "stage_1")])
    def test_every_claim_recomputes(self, names: tuple[str, ...]) -> None:
        trials, _ = sample(WHOLE, *names)
        assert [len(trial.claims) for trial in trials] == [38] * len(names)
        assert not [finding for trial in trials for finding in trial.findings if finding.severity == "error"]

    @pytest.mark.parametrize(("place", "percent"), [(0, 50), (0, 95), (1, 99), (1, 50)])
    def test_latency_and_ttft_of_the_tables_are_the_tool_s(self, place: int, percent: int) -> None:
        trials, _ = sample(WHOLE, "stage_0", "stage_1")
        told = json.loads((WHOLE / f"stage_{place}_lifecycle_metrics.json").read_text())["successes"]["latency"]
        table, key = trials[place].requests, "median" if percent == 50 else f"p{percent}"
        latency = np.percentile(view(table.end_ns) - view(table.start_ns), percent) / 1e9
        assert latency == pytest.approx(told["request_latency"][key], rel=1e-6)
        ttft = np.percentile(view(table.ttft_ns), percent) / 1e9
        assert ttft == pytest.approx(told["time_to_first_token"][key], rel=1e-6)

    @pytest.mark.parametrize("percent", [50, 95, 99])
    def test_ours_by_numpy(self, percent: int) -> None:
        (trial,), records = sample(KILLED, requested_output_tokens=200)
        whole = [item for item in records if item["error"] is None and item["info"]["response_metrics"]["server_usage"]]
        ttft = [item["info"]["response_metrics"]["chunk_times"][0] - item["start_time"] for item in whole]
        expected = np.percentile(ttft + [np.inf] * (len(records) - len(whole)), percent, method="inverted_cdf")
        values = [group.values[0] if len(group.values) else np.inf for group in ttft_groups(trial.requests)]
        assert np.percentile(values, percent, method="inverted_cdf") / 1e9 == pytest.approx(expected, rel=1e-6)

    def test_chunk_gaps_are_differences_of_arrivals(self) -> None:
        (trial,), records = sample(WHOLE)
        seen = np.concatenate([list(group.values) for group in chunk_gap_groups(trial.requests, trial.chunk_gaps)])
        expected = np.concatenate([np.diff(item["info"]["response_metrics"]["chunk_times"]) for item in records])
        assert np.sort(seen) / 1e9 == pytest.approx(np.sort(expected), abs=1e-12)

    def test_the_killed_engine_s_broken_streams_are_failures(self) -> None:
        (trial,), _ = sample(KILLED, "summary", requested_output_tokens=200)
        outcomes = [outcome for _, outcome in sorted(zip(trial.requests.request, trial.requests.outcome, strict=True))]
        assert outcomes == ["complete"] * 20 + ["error"] * 40
        messages = {finding.code: finding.message for finding in trial.findings}
        assert messages["truncated_counted_as_success"].endswith("requests 20-22")
        assert messages["failures_left_out"].endswith("requests 23-59")
        assert "records_missing" in messages
