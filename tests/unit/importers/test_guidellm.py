"""guidellm reports: outcomes, times and claims against numpy over the file, the tool's figures, and figures by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moeplan.catalogue.order_statistics import nearest_rank
from moeplan.errors import InputError
from moeplan.evaluation.quantiles import judge_quantile
from moeplan.evaluation.trials import chunk_gap_groups
from moeplan.importers.guidellm import import_guidellm
from moeplan.importers.trial import ImportedTrial, TrialInputs

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
MADE = SHARED / "samples" / "made"
REPORTS = [("guidellm.json", 32), ("guidellm-0.8.1-engine-killed.json", 200)]
needs_samples = pytest.mark.skipif(not MADE.is_dir(), reason="needs the shared samples")
EPOCH = 1796055600


def request(start: float, *, first: float = 0.5, length: float = 1.0, **changed: Any) -> dict[str, Any]:
    """Return a request of 5 tokens: sent at ``start``, first token after ``first``, last after ``length`` seconds."""
    timings = {
        "targeted_start": EPOCH + start - 0.25,
        "request_start": EPOCH + start,
        "first_token_iteration": EPOCH + start + first,
        "last_token_iteration": EPOCH + start + length,
        "request_end": EPOCH + start + length + 0.5,
        "resolve_end": EPOCH + start + length + 0.5,
        "request_iterations": 7,
        "token_iterations": 5,
    }
    made: dict[str, Any] = {"input_metrics": {"text_tokens": 9}, "output_metrics": {"text_tokens": 5}}
    for key in ("input", "output"):
        if key in changed:
            made[f"{key}_metrics"] = {"text_tokens": changed.pop(key)}
    return made | {"info": {"timings": timings | changed}}


def benchmark(**changed: Any) -> dict[str, Any]:
    """Return two requests, at 0 s and 4 s, of a run that the tool measures for 8 s."""
    lists: dict[str, Any] = {"successful": [request(4, first=0.25), request(0)], "errored": [], "incomplete": []}
    lists |= {key: changed.pop(key) for key in lists if key in changed}
    counts = {"successful": 2, "errored": 0, "incomplete": 0, "total": 2} | changed.pop("made", {})
    metrics = {
        "request_totals": counts,
        "time_to_first_token_ms": summary(375.0, 250.0, 500.0),
        "inter_token_latency_ms": summary(156.25, 125.0, 187.5),
        "time_per_output_token_ms": summary(200.0, 200.0, 200.0),
        "request_latency": summary(1.5, 1.5, 1.5),
        "output_token_count": summary(5.0, 5.0, 5.0),
    } | changed.pop("metrics", {})
    made: dict[str, Any] = {
        "config": {
            "strategy": {"type_": "constant"},
            "prefer_response_metrics": True,
            "backend": {"model": "tiny", "request_format": "/v1/chat/completions"},
        },
        "scheduler_metrics": {"requests_made": counts},
        "metrics": metrics,
        "requests": lists,
        "start_time": EPOCH,
        "end_time": EPOCH + 8,
        "duration": 8.0,
    }
    return made | changed


def summary(mean: float, low: float, high: float) -> dict[str, Any]:
    return {"successful": {"mean": mean, "percentiles": {"p50": low, "p90": high, "p95": high, "p99": high}}}


def report(*benchmarks: dict[str, Any], **changed: Any) -> bytes:
    data = [{"kind": "synthetic_text", "turns": 1, "prompt_tokens": 8} | changed.pop("data", {})]
    made = {
        "metadata": {"guidellm_version": "0.8.1"},
        "config": {"spec": {"data": data}},
        "benchmarks": list(benchmarks),
    } | changed
    return json.dumps({key: value for key, value in made.items() if value != "absent"}).encode()


def stated(**changed: Any) -> TrialInputs:
    made: dict[str, Any] = {"requested_input_tokens": 8, "requested_output_tokens": 5, "ignore_eos": True}
    return TrialInputs(**(made | changed))


def trial(given: TrialInputs | None = None, *, data: dict[str, Any] | None = None, **changed: Any) -> ImportedTrial:
    (made,) = import_guidellm(report(benchmark(**changed), data=data or {}), given or stated())
    return made


def found(made: ImportedTrial) -> dict[str, str]:
    return {finding.code: finding.message for finding in made.findings}


def test_times_tokens_and_interval_of_a_report() -> None:
    made = trial()
    table = made.requests
    assert list(table.start_ns) == [0, 4 * 10**9]
    assert list(table.queue_ns) == [250_000_000] * 2
    assert list(table.ttft_ns) == [500_000_000, 250_000_000]
    assert list(table.end_ns) == [10**9, 5 * 10**9], "a request ends with its last token"
    assert (list(table.output_tokens), list(table.input_tokens), list(table.usage)) == ([5, 5], [9, 9], [1, 1])
    assert table.outcome == ("complete", "complete")
    assert (made.duration_ns, made.schedule, made.concurrency) == (8 * 10**9, "constant", None)
    assert (made.interval.start, made.interval.end) == ("2026-11-30T16:20:00Z", "2026-11-30T16:20:09Z")
    assert (made.model, made.endpoint, made.tool_version) == ("tiny", "/v1/chat/completions", "0.8.1")
    assert set(found(made)) == {"chunk_times_missing"}


def test_without_chunk_times_the_gap_metric_decides_nothing() -> None:
    made = trial()
    assert len(made.chunk_gaps) == 0
    assert list(made.requests.chunks) == [1, 1]
    result = judge_quantile(chunk_gap_groups(made.requests, made.chunk_gaps), 95, 10**12)
    assert (result.outcome, result.reason) == ("inconclusive", "no_values")


@pytest.mark.parametrize("strategy", [{"type_": "concurrent", "streams": 3}, {"type_": "synchronous"}])
def test_a_closed_loop_holds_nothing_back_and_names_its_streams(strategy: dict[str, Any]) -> None:
    made = trial(config={"strategy": strategy})
    assert list(made.requests.queue_ns) == [0, 0]
    assert (made.schedule, made.concurrency) == ("closed", strategy.get("streams", 1))


def test_errors_cancelled_and_short_streams_are_failures_named_by_index() -> None:
    broken = request(1, output=None, request_end=None)
    made = trial(
        successful=[request(0), request(3, output=4)],
        errored=[broken],
        incomplete=[request(2, output=None)],
        made={"errored": 1, "incomplete": 1},
        metrics={
            "output_token_count": {},
            **{key: {} for key in ("inter_token_latency_ms", "time_per_output_token_ms")},
        },
    )
    assert made.requests.outcome == ("complete", "error", "truncated", "truncated")
    assert list(made.requests.usage) == [1, 0, 0, 0]
    told = found(made)
    assert told["failed_requests"] == "1 requests failed: requests 1"
    assert told["cancelled_requests"] == "1 requests were cancelled by the tool: requests 2"
    assert told["truncated_counted_as_success"] == "1 requests ended without the tokens asked for: requests 3"


def test_a_count_that_may_be_the_one_asked_for_is_not_believed() -> None:
    # The prompt's length is the one asked for and fewer lines with text than tokens came: there may be no usage. A role
    # line and [DONE] are lines too: guidellm 0.8.1 wrote 9, 7 of text, for 7 of 8 tokens and no usage.
    silent = [request(0, input=8, token_iterations=4), request(4, first=0.25, input=8)]
    made = trial(successful=silent)
    assert made.requests.outcome == ("truncated", "complete")
    assert list(made.requests.output_tokens) == [4, 5]
    assert "requests 0" in found(made)["completion_not_shown"]
    assert trial(stated(continuous_usage=True), successful=silent).requests.outcome == ("complete", "complete")
    vague = [request(0, token_iterations=4), request(4, first=0.25)]
    assert trial(successful=vague).requests.outcome == ("complete", "complete")
    assert trial(successful=vague, data={"prompt_tokens_stdev": 2}).requests.outcome == ("truncated", "complete")
    config = {"strategy": {"type_": "constant"}, "prefer_response_metrics": False}
    assert trial(config=config).requests.outcome == ("truncated", "truncated")


def test_an_early_stop_is_accepted_only_where_stated() -> None:
    short = [request(0, output=3), request(4)]
    assert trial(successful=short).requests.outcome == ("truncated", "complete")
    made = trial(stated(ignore_eos=False, accept_early_stop=True), successful=short)
    assert made.requests.outcome == ("complete", "complete")
    assert list(made.requests.usage) == [0, 1]


def test_requests_that_are_counted_and_not_listed_are_failures() -> None:
    made = trial(made={"successful": 3, "errored": 2})
    assert sorted(made.requests.outcome) == ["complete", "complete", "error", "error", "truncated"]
    finding = next(item for item in made.findings if item.code == "requests_not_listed")
    assert (finding.severity, finding.message[:26]) == ("error", "the tool counts 3 requests")


def test_requests_outside_the_measured_window_count_here_and_not_in_the_tools_figures() -> None:
    made = trial(successful=[request(-2), request(0), request(4, first=0.25)], made={"successful": 3})
    assert len(made.requests) == 3
    assert found(made)["warmup_included"].startswith("1 requests")
    assert "claim_mismatch" not in found(made)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("time_to_first_token_ms", "p95", 501.0),
        ("inter_token_latency_ms", "p50", 150.0),
        ("time_per_output_token_ms", "p99", 201.0),
        ("request_latency", "p95", 1.500003),
        ("output_token_count", "p50", 6.0),
    ],
)
def test_a_claim_that_the_requests_do_not_bear_out_is_an_error(name: str, key: str, value: float) -> None:
    told = benchmark()["metrics"][name]
    told["successful"]["percentiles"][key] = value
    findings = [item for item in trial(metrics={name: told}).findings if item.code == "claim_mismatch"]
    assert [(item.severity, item.where) for item in findings] == [("error", f"{name}.successful.{key}")]


def test_figures_of_either_version_are_borne_out_where_the_window_cuts_a_request() -> None:
    # The request of -0.9 s ends in the window, its first token of -0.4 s does not: 0.8 leaves it out of TTFT.
    early = [request(-0.9), request(0), request(4, first=0.25)]

    def mismatched(mean: float, median: float) -> bool:
        told = {"time_to_first_token_ms": summary(mean, median, 500.0)}
        told |= {key: {} for key in ("inter_token_latency_ms", "time_per_output_token_ms")}
        return "claim_mismatch" in found(trial(successful=early, made={"successful": 3}, metrics=told))

    assert not mismatched(375.0, 250.0)
    assert not mismatched(1250 / 3, 500.0)
    assert mismatched(400.0, 500.0)
    assert "claim_mismatch" in found(trial(metrics={"request_latency": summary(0.0, 0.0, 0.0)}))


def test_each_benchmark_of_a_report_is_a_trial_and_one_can_be_taken_alone() -> None:
    data = report(benchmark(), benchmark(made={"errored": 1}))
    assert [len(item.requests) for item in import_guidellm(data, stated())] == [2, 3]
    assert [len(item.requests) for item in import_guidellm(data, stated(stage=1))] == [3]
    with pytest.raises(InputError) as caught:
        import_guidellm(data, stated(stage=2))
    assert (caught.value.issues[0].code, caught.value.issues[0].expected) == ("unknown_stage", "0 to 1")


def test_a_report_of_0_5_names_its_model_among_the_arguments() -> None:
    config = {"strategy": {"type_": "constant"}, "prefer_response_metrics": True}
    (made,) = import_guidellm(report(benchmark(config=config), config="absent", args={"model": "old"}), stated())
    assert (made.model, made.endpoint) == ("old", "guidellm")
    assert made.requests.outcome == ("complete", "complete"), "as many lines with text came as tokens"


@pytest.mark.parametrize(
    ("data", "code", "path"),
    [
        (report(), "empty_file", "$.benchmarks"),
        (report(benchmark(successful=[])), "raw_data_missing", "$.benchmarks[0].requests"),
        (report(benchmark(successful={})), "invalid_value", "$.benchmarks[0].requests.successful"),
        (report(benchmark(end_time="now")), "invalid_value", "$.benchmarks[0].end_time"),
        (
            report(benchmark(successful=[request(0, request_start=None)])),
            "invalid_value",
            "$.benchmarks[0].requests.successful[0].info.timings",
        ),
        (
            report(benchmark(successful=[request(0, first=2.0)])),
            "times_reversed",
            "$.benchmarks[0].requests.successful[0].info.timings",
        ),
        (
            report(benchmark(successful=[request(0, output=-1)])),
            "invalid_value",
            "$.benchmarks[0].requests.successful[0].output_metrics.text_tokens",
        ),
        (report(benchmark(), metadata="absent"), "unsupported_version", "$"),
        (b'{"endpoint_type": "vllm", "model_id": "m", "duration": 1}', "foreign_file", "$"),
        (b'{"metadata": {', "invalid_json", "$"),
    ],
)
def test_another_or_half_a_report_is_refused_by_name(data: bytes, code: str, path: str) -> None:
    with pytest.raises(InputError) as caught:
        import_guidellm(data, stated())
    assert (caught.value.issues[0].code, caught.value.issues[0].path) == (code, path)


@pytest.mark.shared
@needs_samples
@pytest.mark.parametrize(("name", "tokens"), REPORTS)
def test_a_real_report_bears_out_its_own_figures_and_numpy_ours(name: str, tokens: int) -> None:
    data = (MADE / name).read_bytes()
    told = json.loads(data)["benchmarks"][0]
    (made,) = import_guidellm(data, stated(requested_output_tokens=tokens))
    assert "claim_mismatch" not in found(made)
    fine = [item["info"]["timings"] for item in told["requests"]["successful"]]
    ttft = np.sort([row["first_token_iteration"] - row["request_start"] for row in fine])
    e2e = np.sort([row["last_token_iteration"] - row["request_start"] for row in fine])
    latency = np.array([row["request_end"] - row["request_start"] for row in fine])
    table = made.requests
    rows = [row for row, outcome in enumerate(table.outcome) if outcome == "complete"]
    assert len(rows) == len(fine)
    ours = {
        "ttft": sorted(table.ttft_ns[row] for row in rows),
        "e2e": sorted(table.end_ns[row] - table.start_ns[row] for row in rows),
    }
    for values, raw in ((ours["ttft"], ttft), (ours["e2e"], e2e)):
        assert values == pytest.approx((raw * 1e9).tolist(), abs=0.51)
        for percent in (50, 95, 99):
            assert values[nearest_rank(len(values), percent) - 1] == pytest.approx(
                np.percentile(raw, percent, method="inverted_cdf") * 1e9, abs=0.51
            )
    for percent in (95, 99):
        rank = nearest_rank(len(fine), percent) - 1
        assert ours["ttft"][rank] / 1e6 == pytest.approx(
            told["metrics"]["time_to_first_token_ms"]["successful"]["percentiles"][f"p{percent}"], rel=1e-6
        )
        assert np.sort(latency)[rank] == pytest.approx(
            told["metrics"]["request_latency"]["successful"]["percentiles"][f"p{percent}"], rel=1e-6
        )


@pytest.mark.shared
@needs_samples
def test_no_broken_stream_of_the_killed_engine_is_a_success() -> None:
    data = (MADE / "guidellm-0.8.1-engine-killed.json").read_bytes()
    (made,) = import_guidellm(data, stated(requested_output_tokens=200))
    assert [made.requests.outcome.count(outcome) for outcome in ("complete", "error", "truncated")] == [15, 46, 0]
    assert found(made)["failed_requests"].endswith(", ".join(str(index) for index in range(15, 39)))
    assert "22 requests" in found(made)["requests_not_listed"]


@pytest.mark.shared
@needs_samples
def test_a_report_without_requests_is_named() -> None:
    with pytest.raises(InputError) as caught:
        import_guidellm((SHARED / "samples/public/guidellm/guidellm_report_v2-fixture.json").read_bytes(), stated())
    assert caught.value.issues[0].code == "raw_data_missing"
