"""Summaries without raw data: their figures as they stand in the file, and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.importers.reported import Reported, ReportedFile, import_reported, record_reported
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.evidence import EvidenceRecord, Interval, ReportedSummary
from moeplan.wire.documents import load_document
from moeplan.wire.observation import ObservationContext

PUBLIC = Path(__file__).resolve().parents[3].parent / "shared" / "samples" / "public"
needs_samples = pytest.mark.skipif(not PUBLIC.is_dir(), reason="needs the shared samples")

OLD = {"endpoint_type": "openai", "model_id": "org/m", "duration": 2.5, "num_prompts": 4, "completed": 4}
FORK = {"backend": "vllm", "model_id": "/models/M", "duration": 2, "max_concurrency": 8, "p99.9_ttft_ms": 1.25}


def one(document: dict[str, Any]) -> Reported:
    (made,) = import_reported(json.dumps(document).encode())
    return made


def claims(made: Reported) -> dict[str, str]:
    return {claim.name: claim.value for claim in made.payload.claims}


def codes(made: Reported) -> list[str]:
    return [finding.code for finding in made.findings]


def test_figures_keep_the_files_names_and_digits() -> None:
    made = one(FORK | {"input_lens": [1, 2], "request_goodput:": None, "date": "20260101-000000"})
    assert claims(made) == {"duration": "2", "max_concurrency": "8", "p99.9_ttft_ms": "1.25"}
    assert (made.payload.format, made.payload.model, made.payload.concurrency) == ("benchmark-serving", "M", 8)
    assert codes(made) == ["aggregate_only"]


def test_a_summary_says_what_it_leaves_out() -> None:
    assert codes(one(OLD)) == ["aggregate_only", "completion_not_shown"]
    assert codes(one(OLD | {"failed": 0})) == ["aggregate_only"]
    made = one(OLD | {"completed": 3})
    assert codes(made) == ["aggregate_only", "requests_left_out"]
    assert made.findings[1].message.startswith("the figures are those of 3 of 4 requests")


def test_nested_figures_are_named_by_their_place_and_addresses_are_left_out() -> None:
    document = {"infmax_model_prefix": "k", "request_metrics": {"latency": {"ttft": {"p95": 60.5}}}, "conc": 16}
    hidden = {"http://10.0.0.1:8000/metrics": {"x": 1}, "/home/someone": 2}
    assert claims(one(document | hidden)) == {"conc": "16", "request_metrics.latency.ttft.p95": "60.5"}


def test_of_an_aiperf_summary_only_metrics_are_figures() -> None:
    document = {
        "aiperf_version": "0.13.0",
        "input_config": {"seed": 3},
        "request_count": {"unit": "requests", "avg": 7},
    }
    assert claims(one(document)) == {"request_count.avg": "7"}


def test_each_line_and_each_benchmark_is_a_summary_of_its_own() -> None:
    lines = "".join(json.dumps(FORK | {"duration": value}) + "\n" for value in (1, 2))
    assert [claims(made)["duration"] for made in import_reported(lines.encode())] == ["1", "2"]
    benchmark = {"config": {"backend": {"model": "m"}}, "metrics": {}, "duration": 1.5, "requests": {"successful": []}}
    report = {"metadata": {}, "benchmarks": [benchmark, benchmark | {"duration": 2.5}]}
    assert [claims(made) for made in import_reported(json.dumps(report).encode())] == [
        {"duration": "1.5"},
        {"duration": "2.5"},
    ]


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"kind": "List"}, "foreign_file"),
        (OLD | {"ttfts": [0.1], "itls": [[]], "errors": [""]}, "raw_data_present"),
        ({"metadata": {}, "benchmarks": [{"requests": {"successful": [{}]}, "metrics": {}}]}, "raw_data_present"),
        ({"metadata": {}, "benchmarks": [{"metrics": {}}]}, "no_claim"),
        ({"metadata": {}, "benchmarks": [3]}, "invalid_value"),
        (FORK | {f"figure_{number}": number for number in range(1000)}, "too_many"),
    ],
)
def test_what_is_no_summary_is_refused_by_name(document: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        one(document)
    assert caught.value.issues[0].code == code


@pytest.mark.shared
@needs_samples
@pytest.mark.parametrize(
    ("name", "form", "path"),
    [
        ("vllm-bench/fixed-ar-mtp-8k1k-conc64.json", "benchmark-serving", ("p99.9_itl_ms",)),
        ("vllm-bench/h100-chunked_prefill_singlenode-qps-4.json", "vllm-bench", ("p99_ttft_ms",)),
        ("sglang-bench/mi355x-sglang_mtp_tp4_conc64.json", "benchmark-serving", ("mean_tpot_ms",)),
        ("sglang-bench/b200-dsr1-fp4-conc256.json", "inferencex-runner", ("metrics", "p99_e2el_ms")),
        (
            "inferencex-agg/agentic-conc16_kvdram-d6b7.json",
            "inferencex-aggregate",
            ("request_metrics", "latency", "ttft", "p95"),
        ),
        ("inferencex-agg/b200-dsr1-conc256_b200-nb.json", "inferencex-aggregate", ("p99_ttft",)),
        ("aiperf/mi355x-kimik2.7-conc8-profile_export_aiperf.json", "aiperf", ("time_to_first_token", "p95")),
    ],
)
def test_public_summaries_keep_their_figures(name: str, form: str, path: tuple[str, ...]) -> None:
    data = (PUBLIC / name).read_bytes()
    made = import_reported(data)[0]
    told = json.loads(data, parse_float=Decimal)
    for key in path:
        told = told[key]
    assert (made.payload.format, claims(made)[".".join(path)]) == (form, str(told))
    assert "aggregate_only" in codes(made)


DIGEST = "sha256:" + "0" * 64


def context() -> ObservationContext:
    runtime = RuntimeIdentity("serve", "oci_image", DIGEST)
    return ObservationContext(DIGEST, Deployment(DIGEST, None, (runtime,), None, None, None, None, None))


def given(data: bytes, **changed: Any) -> ReportedFile:
    made = ReportedFile("agg.json", data, Interval("2026-11-30T16:00:00Z", "2026-11-30T17:00:00Z"), "0.21.0")
    return attrs.evolve(made, **changed)


def test_each_run_becomes_a_record_with_the_file_beside_it() -> None:
    data = "".join(json.dumps(FORK | {"duration": value}) + "\n" for value in (1, 2)).encode()
    made, findings = record_reported(given(data, enclosed=True), context())
    assert [finding.where for finding in findings] == ["run 1", "run 2"]
    for one_made, value in zip(made, ("1", "2"), strict=True):
        record = load_document(one_made.files[one_made.path], EvidenceRecord)
        assert isinstance(record.payload, ReportedSummary)
        assert {claim.name: claim.value for claim in record.payload.claims}["duration"] == value
        assert (record.collector.tool, record.collector.tool_version) == ("benchmark-serving", "0.21.0")
        (attachment,) = record.attachments
        assert attachment.path is not None
        assert one_made.files[attachment.path] == data
    bare, _ = record_reported(given(data), context())
    assert (bare[0].record.attachments[0].path, bare[0].record.attachments[0].name) == (None, "tool-output.json")
    assert len(bare[0].files) == 1


def test_the_same_run_twice_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        record_reported(given((json.dumps(FORK) + "\n").encode() * 2), context())
    assert (caught.value.issues[0].code, caught.value.issues[0].path) == ("record_repeated", "line 2")
