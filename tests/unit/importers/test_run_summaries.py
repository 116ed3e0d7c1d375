"""The tool's own summaries: each beside its own raw file, attached by digest; stages and warm-up as told."""

from __future__ import annotations

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.importers.run import GivenFile, ImportedRun, RunInputs, import_run
from moeplan.importers.table import IMPORTERS
from moeplan.importers.trial import TrialInputs
from moeplan.model.evidence import ServingTrial
from tests.unit.importers import test_aiperf as aiperf
from tests.unit.importers import test_inference_perf as inference_perf
from tests.unit.importers.test_run import stated


def given(inputs: TrialInputs, *summaries: bytes) -> RunInputs:
    files = tuple(GivenFile(f"summary-{place}.json", data) for place, data in enumerate(summaries))
    return attrs.evolve(stated(), trial=inputs, summaries=files, enclose=frozenset({"tool_summary"}))


def aiperf_run(*summaries: bytes, files: int = 1) -> ImportedRun:
    warm = aiperf.record(0, benchmark_phase="warmup", phase_index=0)
    raw = [
        GivenFile(f"{place}.jsonl", aiperf.lines(warm, aiperf.record(place), aiperf.record(place + 7)))
        for place in range(files)
    ]
    return import_run(IMPORTERS["aiperf"], raw, [], given(aiperf.stated(warmup_requests=9), *summaries))


def summary(concurrency: int) -> bytes:
    text = (
        '{"aiperf_version": "0.13.0", "request_count": {"unit": "requests", "avg": 2.0}, "input_config": {"phases": '
        '[{"kind": "profiling", "type": "poisson", "concurrency": %d}]}}'
    )
    return (text % concurrency).encode()


def test_the_warm_up_in_the_file_is_the_record_s_and_the_manifest_s() -> None:
    made = aiperf_run()
    payload = made.records[0].record.payload
    assert isinstance(payload, ServingTrial)
    assert (payload.warmup_requests, payload.warmup_input_tokens, payload.warmup_output_tokens) == (1, 12, 3)
    assert made.manifest.warmup_requests == 1


def test_each_file_has_its_own_summary() -> None:
    made = aiperf_run(summary(4), summary(4) + b"\n", files=2)
    for record, told in zip(made.records, (summary(4), summary(4) + b"\n"), strict=True):
        payload = record.record.payload
        assert isinstance(payload, ServingTrial)
        assert (payload.schedule, payload.declared_concurrency) == ("poisson", 4)
        assert [(claim.name, claim.value) for claim in payload.claims] == [("request_count", "2.0")]
        (attached,) = [part for part in record.record.attachments if part.role == "tool_summary"]
        assert attached.path is not None
        assert made.files[attached.path] == told
        assert record.record.collector.tool_version == "0.13.0"
    with pytest.raises(InputError) as caught:
        aiperf_run(summary(4), files=2)
    assert caught.value.issues[0].code == "summary_count"


def test_stages_imported_alone_are_runs_of_their_own() -> None:
    data = inference_perf.encoded(*(inference_perf.request(start) for start in (100.0, 101.0, 110.0)))
    stages = (inference_perf.report(2, send_duration=1.0), inference_perf.report(1, send_duration=0.0))
    file = GivenFile("per_request_lifecycle_metrics.json", data)

    def run(stage: int | None) -> ImportedRun:
        inputs = inference_perf.stated(stage=stage)
        return import_run(IMPORTERS["inference-perf"], [file], [], given(inputs, *stages))

    assert len({run(0).manifest.run, run(1).manifest.run}) == 2
    assert [run(stage).manifest.planned_requests for stage in (0, 1)] == [2, 1]
    with pytest.raises(InputError) as caught:
        run(None)
    assert caught.value.issues[0].code == "trials_differ"
