"""``vllm bench serve``: exact tables, honest outcomes, named refusals."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moeplan.errors import InputError
from moeplan.evaluation.trials import concurrency_peak
from moeplan.importers.recompute import Recomputation
from moeplan.importers.trial import ImportedTrial, TrialInputs, parse_utc_offset
from moeplan.importers.vllm_bench import import_vllm_bench
from tests.unit.importers.made import encoded, inputs, result

MADE = Path(__file__).resolve().parents[3].parent / "shared" / "samples" / "made"
TRIALS = [MADE / "trials" / f"trial-{number}.json" for number in (1, 2, 3)]
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not MADE.is_dir(), reason="the shared samples do not lie beside the repository"),
]


def codes(trial: ImportedTrial) -> list[str]:
    return [finding.code for finding in trial.findings]


def refusal(data: bytes, stated: TrialInputs | None = None) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        import_vllm_bench(data, stated or inputs())
    return caught.value.issues[0].path, caught.value.issues[0].code


def test_rows_by_hand() -> None:
    trial = import_vllm_bench(encoded(), inputs(warmup_requests=2))
    table = trial.requests
    assert list(table.start_ns) == [0, 100_000_000, 500_000_000, 1_000_000_000]
    assert list(table.ttft_ns) == [100_000_000, 200_000_000, 300_000_000, 400_000_000]
    assert list(table.end_ns) == [140_000_000, 340_000_000, 840_000_000, 1_420_000_000]
    assert list(table.queue_ns) == [0, 1_000_000, 0, 0]
    assert list(table.chunks) == [3, 3, 3, 2]
    assert table.outcome == ("complete", "complete", "complete", "truncated")
    assert list(table.usage) == [1, 1, 1, 0]
    assert list(trial.chunk_gaps.request) == [0, 0, 1, 1, 2, 2, 3]
    assert list(trial.chunk_gaps.ordinal) == [1, 2, 1, 2, 1, 2, 1]
    assert list(trial.chunk_gaps.gap_ns)[-3:] == [10_000_000, 30_000_000, 20_000_000]
    assert (trial.warmup_input_tokens, trial.warmup_output_tokens) == (20, 6)
    assert trial.duration_ns == 2_000_000_000
    assert (trial.interval.start, trial.interval.end) == ("2026-11-30T17:29:46Z", "2026-11-30T17:29:50Z")
    assert codes(trial) == ["truncated_counted_as_success", "concurrency_from_file"]


def test_rows_stand_in_start_order_whatever_the_file_s() -> None:
    trial = import_vllm_bench(encoded(start_times=[101.0, 100.1, 100.5, 100.0]), inputs())
    assert list(trial.requests.request) == [3, 1, 2, 0]
    assert list(trial.chunk_gaps.request) == [0, 0, 1, 1, 2, 2, 3]
    # The row that comes first is the file's last request.
    short = next(finding for finding in trial.findings if finding.code == "truncated_counted_as_success")
    assert short.message.endswith("here they are failures: requests 3")


def test_offset_moves_the_interval() -> None:
    trial = import_vllm_bench(encoded(), inputs(utc_offset_seconds=parse_utc_offset("-07:30")))
    assert trial.interval.end == "2026-12-01T00:59:50Z"


@pytest.mark.parametrize("text", ["+7:00", "7", "+15:00", "+01:60", "", "+01:00:00"])
def test_other_offsets_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="offset"):
        parse_utc_offset(text)


def test_a_failure_keeps_its_chunks_and_is_none_without_them() -> None:
    data = encoded(
        errors=["", "Traceback …", "Internal Server Error", ""],
        latencies=[0.14, 0.0, 0.0, 0.42],
        ttfts=[0.1, 0.2, 0.0, 0.4],
        itls=[[0.01, 0.03], [0.01, 0.03], [], [0.02]],
        output_lens=[3, 0, 0, 2],
    )
    trial = import_vllm_bench(data, inputs())
    assert trial.requests.outcome == ("complete", "error", "error", "truncated")
    assert list(trial.requests.chunks) == [3, 3, 0, 2]
    assert list(trial.requests.end_ns) == [140_000_000, 340_000_000, 500_000_000, 1_420_000_000]
    failed = next(finding for finding in trial.findings if finding.code == "failed_requests")
    assert "2 of 4 requests failed (1 of them after their first chunk)" in failed.message
    assert failed.message.endswith("whole duration: requests 1-2")


def test_an_http_error_without_a_reason_is_a_failure() -> None:
    data = encoded(latencies=[0.14, 0.24, 0.34, 0.0], ttfts=[0.1, 0.2, 0.3, 0.0], itls=[[0.01, 0.03]] * 3 + [[]])
    assert import_vllm_bench(data, inputs()).requests.outcome[3] == "error"


def test_early_stops_need_to_be_stated() -> None:
    unknown = import_vllm_bench(encoded(), inputs(ignore_eos=False))
    assert unknown.requests.outcome[3] == "truncated"
    assert "early_stop_unknown" in codes(unknown)
    accepted = import_vllm_bench(encoded(), inputs(ignore_eos=False, accept_early_stop=True, warmup_requests=2))
    assert accepted.requests.outcome[3] == "complete"
    assert accepted.requests.usage[3] == 0
    assert accepted.warmup_output_tokens is None
    assert "early_stops_accepted" in codes(accepted)
    ignored = import_vllm_bench(encoded(), inputs(ignore_eos=True, accept_early_stop=True))
    assert ignored.requests.outcome[3] == "truncated"
    more = import_vllm_bench(encoded(output_lens=[3, 3, 3, 4]), inputs(ignore_eos=False, accept_early_stop=True))
    assert more.requests.outcome[3] == "truncated"


def test_findings_on_lengths_concurrency_usage_and_queue() -> None:
    assert "requested_output_differs" in codes(import_vllm_bench(encoded(), inputs(requested_output_tokens=64)))
    assert "stated_concurrency_differs" in codes(import_vllm_bench(encoded(), inputs(concurrency=3)))
    assert import_vllm_bench(encoded(), inputs(concurrency=3)).concurrency == 3
    assert "concurrency_claim_differs" in codes(import_vllm_bench(encoded(max_concurrent_requests=32), inputs()))
    other = import_vllm_bench(encoded(endpoint_type="tgi"), inputs())
    assert "no_server_usage" in codes(other)
    assert sum(other.requests.usage) == 0
    assert "queue_times_missing" in codes(import_vllm_bench(encoded(queue_times="absent"), inputs()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("completed", 3),
        ("failed", 1),
        ("total_input_tokens", 41),
        ("total_output_tokens", 12),
        ("request_throughput", 2.00001),
        ("output_throughput", 5.6),
        ("duration", 1.4),
        ("mean_ttft_ms", 250.001),
        ("p95_ttft_ms", 400.0),
        ("mean_itl_ms", 20.5),
        ("mean_tpot_ms", 19.0),
        ("p99.9_e2el_ms", 420.0),
        ("std_ttft_ms", 1.0),
    ],
)
def test_a_claim_that_the_raw_data_do_not_bear_out_is_an_error(name: str, value: float) -> None:
    assert "claim_mismatch" not in codes(import_vllm_bench(encoded(), inputs()))
    found = [item for item in import_vllm_bench(encoded(**{name: value}), inputs()).findings if item.where == name]
    assert [(item.code, item.severity) for item in found] == [("claim_mismatch", "error")]


def test_claims_keep_the_tool_s_figures() -> None:
    claims = {claim.name: claim.value for claim in import_vllm_bench(encoded(), inputs()).claims}
    assert claims["p95_ttft_ms"] == "385.0"
    assert claims["completed"] == "4"
    assert set(claims) <= set(result())


@pytest.mark.parametrize(
    ("changed", "path", "code"),
    [
        ({"latencies": "absent"}, "$", "raw_data_missing"),
        ({"start_times": "absent", "ttfts": "absent"}, "$", "raw_data_missing"),
        ({"itls": None}, "$.itls", "wrong_type"),
        ({"ttfts": [0.1, 0.2, 0.3]}, "$.ttfts", "length_mismatch"),
        ({"num_prompts": 5}, "$.num_prompts", "length_mismatch"),
        ({"ttfts": [0.1, -0.2, 0.3, 0.4]}, "$.ttfts[1]", "invalid_value"),
        ({"ttfts": [0.1, "0.2", 0.3, 0.4]}, "$.ttfts[1]", "invalid_value"),
        ({"latencies": [0.14, True, 0.34, 0.42]}, "$.latencies[1]", "invalid_value"),
        ({"latencies": [0.14, 1e9, 0.34, 0.42]}, "$.latencies[1]", "invalid_value"),
        ({"itls": [[0.01, 0.03], [0.01, None], [0.01, 0.03], [0.02]]}, "$.itls[1]", "invalid_value"),
        ({"itls": [[0.01, 0.03], "x", [0.01, 0.03], [0.02]]}, "$.itls[1]", "invalid_value"),
        ({"output_lens": [3, 3.0, 3, 2]}, "$.output_lens[1]", "invalid_value"),
        ({"input_lens": [10, None, 10, 10]}, "$.input_lens[1]", "invalid_value"),
        ({"errors": ["", None, "", ""]}, "$.errors[1]", "invalid_value"),
        ({"start_times": [100.0, 100.1, 0.0, 101.0]}, "$.start_times[0]", "outside_interval"),
        ({"duration": 0}, "$.duration", "invalid_value"),
        ({"duration": "2"}, "$.duration", "invalid_value"),
        ({"date": "2026-11-30"}, "$.date", "invalid_instant"),
        ({"date": "20261330-172949"}, "$.date", "invalid_instant"),
        ({"date": "00010101-000000"}, "$.date", "invalid_instant"),
        ({"model_id": "\x1b[2J"}, "$.model_id", "invalid_value"),
        ({"p95_ttft_ms": "385"}, "$.p95_ttft_ms", "invalid_value"),
    ],
)
def test_malformed_files_are_refused_with_their_path(changed: dict[str, Any], path: str, code: str) -> None:
    assert refusal(encoded(**changed)) == (path, code)


@pytest.mark.parametrize("data", [b"[]", b"7", b'"x"', b"null"])
def test_what_is_no_result_is_refused(data: bytes) -> None:
    assert refusal(data) == ("$", "wrong_type")


def test_no_requests_are_refused() -> None:
    empty: dict[str, Any] = {key: [] for key, value in result().items() if type(value) is list}
    assert refusal(encoded(**empty, num_prompts=0)) == ("$.num_prompts", "length_mismatch")


def test_missing_keys_are_named_with_the_way_out() -> None:
    with pytest.raises(InputError, match=r"no latencies, start_times; run .*--save-detailed"):
        import_vllm_bench(encoded(latencies="absent", start_times="absent"), inputs())


class TestRecorded:
    """The three recorded trials and the killed runs, against numpy and the tool's own figures."""

    pytestmark = shared

    @pytest.fixture(params=TRIALS, ids=lambda path: path.stem)
    def recorded(self, request: pytest.FixtureRequest) -> tuple[dict[str, Any], ImportedTrial]:
        data = request.param.read_bytes()
        return json.loads(data), import_vllm_bench(data, TrialInputs(128, 64, True, concurrency=4, warmup_requests=16))

    def test_every_figure_of_the_tool_is_recomputed(self, recorded: tuple[dict[str, Any], ImportedTrial]) -> None:
        document, trial = recorded
        made = Recomputation(trial.requests, trial.chunk_gaps, Decimal(repr(document["duration"])))
        names = [name for name in document if name.endswith("_ms")]
        assert len(names) == 24
        for name in [*names, "request_throughput", "output_throughput", "total_token_throughput"]:
            figure = made.figure(name)
            assert figure is not None
            assert abs(float(figure) - document[name]) <= 1e-6 * document[name]
        assert "claim_mismatch" not in codes(trial)

    def test_percentiles_equal_numpy_s(self, recorded: tuple[dict[str, Any], ImportedTrial]) -> None:
        document, trial = recorded
        ttft = np.rint(np.array(document["ttfts"]) * 1e9).astype(np.int64)
        gaps = np.rint(np.concatenate([np.array(row) for row in document["itls"]]) * 1e9).astype(np.int64)
        assert sorted(trial.requests.ttft_ns) == sorted(ttft.tolist())
        assert list(trial.chunk_gaps.gap_ns) == gaps.tolist()
        made = Recomputation(trial.requests, trial.chunk_gaps)
        for percent in (50, 95, 99):
            for name, values in (("ttft", ttft), ("itl", gaps)):
                figure = made.figure(f"p{percent}_{name}_ms")
                assert figure is not None
                assert float(figure) == pytest.approx(np.percentile(values, percent) / 1e6, rel=1e-12)

    def test_concurrency_is_four_and_not_what_the_tool_says(
        self, recorded: tuple[dict[str, Any], ImportedTrial]
    ) -> None:
        document, trial = recorded
        start = np.array(document["start_times"])
        end = start + np.array(document["latencies"])
        overlap = max(int(((start <= moment) & (end > moment)).sum()) for moment in start)
        assert concurrency_peak(trial.requests) == overlap == 4
        assert document["max_concurrent_requests"] > 4
        assert "concurrency_claim_differs" in codes(trial)

    def test_totals_and_warm_up(self, recorded: tuple[dict[str, Any], ImportedTrial]) -> None:
        _, trial = recorded
        assert sum(trial.requests.output_tokens) == 15_360
        assert (trial.warmup_input_tokens, trial.warmup_output_tokens) == (2256, 1024)
        assert set(trial.requests.outcome) == {"complete"}
        assert sum(trial.requests.usage) == 240

    def test_an_engine_killed_mid_stream_leaves_two_truncated(self) -> None:
        data = (MADE / "vllm-bench-killed-engine.json").read_bytes()
        trial = import_vllm_bench(data, TrialInputs(128, 64, True))
        outcomes = trial.requests.outcome
        assert (outcomes.count("complete"), outcomes.count("truncated"), outcomes.count("error")) == (31, 2, 47)
        short = [
            tokens
            for tokens, outcome in zip(trial.requests.output_tokens, outcomes, strict=True)
            if outcome == "truncated"
        ]
        assert sorted(short) == [13, 60]
        document = json.loads(data)
        silent = [place for place, error in enumerate(document["errors"]) if not error]
        assert [place for place in silent if document["output_lens"][place] != 64] == [31, 32]
        named = next(finding for finding in trial.findings if finding.code == "truncated_counted_as_success")
        assert named.message.endswith(": requests 31-32")
        assert "claim_mismatch" not in codes(trial)

    def test_a_server_killed_mid_stream_leaves_failures_with_chunks(self) -> None:
        data = (MADE / "vllm-bench-killed-all.json").read_bytes()
        trial = import_vllm_bench(data, TrialInputs(128, 400, True))
        table = trial.requests
        assert table.outcome.count("error") == 39
        kept = [row for row, outcome in enumerate(table.outcome) if outcome == "error" and table.ttft_ns[row] > 0]
        assert len(kept) == 21
        assert all(table.chunks[row] > 0 and table.end_ns[row] > table.start_ns[row] for row in kept)
        assert "claim_mismatch" not in codes(trial)

    def test_public_results_without_raw_data_are_refused(self) -> None:
        files = sorted((MADE.parent / "public" / "vllm-bench").glob("*.json"))
        assert files
        for path in files:
            assert refusal(path.read_bytes()) == ("$", "raw_data_missing")
