"""A run out of several files: deterministic, listed by digest, refused where the files are no one run."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.importers.enclosing import enclosed_roles
from moeplan.importers.run import GivenFile, ImportedRun, RunInputs, import_run
from moeplan.importers.summary import summarize
from moeplan.importers.table import IMPORTERS
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.evidence import EvidenceRecord, ServingTrial
from moeplan.model.run_manifest import RunManifest
from moeplan.model.tables import table_faults
from moeplan.wire.documents import load_document, require_canonical
from moeplan.wire.tables import load_chunk_gaps, load_requests
from tests.unit.importers.made import encoded, inputs

DIGEST = "sha256:" + "0" * 64


def stated(**changed: Any) -> RunInputs:
    runtime = RuntimeIdentity("serve", "oci_image", DIGEST)
    deployment = Deployment(DIGEST, None, (runtime,), None, None, None, None, None)
    enclose = enclosed_roles("tool-output,metrics")
    return RunInputs(DIGEST, deployment, inputs(**({"warmup_requests": 2} | changed)), enclose)


def content(made: ImportedRun, path: str | None) -> bytes:
    data = made.files[path or ""]
    assert isinstance(data, bytes)
    return data


def trials(count: int = 2) -> list[GivenFile]:
    return [GivenFile(f"trial-{n}.json", encoded(date=f"20261130-17294{n}")) for n in range(1, count + 1)]


def scrape(requests: int, prompt: int, generation: int, start: str = "1796059734.5") -> GivenFile:
    text = (
        f'process_start_time_seconds {start}\nvllm:request_success_total{{finished_reason="length"}} {requests}\n'
        f"vllm:prompt_tokens_total {prompt}\nvllm:generation_tokens_total {generation}\n"
    )
    return GivenFile("page.prom", text.encode())


def run_of(files: list[GivenFile], pages: list[GivenFile] | None = None, given: RunInputs | None = None) -> ImportedRun:
    return import_run(IMPORTERS["vllm-bench"], files, pages or [], given or stated())


def test_names_and_digests_are_those_of_the_bytes() -> None:
    files = trials()
    made = run_of(files, [scrape(0, 0, 0), scrape(5, 60, 17), scrape(10, 120, 34)])
    lines = "".join(f"sha256:{hashlib.sha256(file.data).hexdigest()}\n" for file in files)
    run = "run-" + hashlib.sha256(lines.encode()).hexdigest()[:12]
    endings = (
        "requests.parquet",
        "chunk-gaps.parquet",
        "tool-output.json",
        "metrics-before.prom",
        "metrics-after.prom",
    )
    expected = {f"attachments/{run}/trial-{n}-{ending}" for n in (1, 2) for ending in endings}
    assert set(made.files) == expected | {
        f"evidence/{run}-trial-1.json",
        f"evidence/{run}-trial-2.json",
        f"evidence/{run}.json",
    }
    manifest = load_document(content(made, f"evidence/{run}.json"), RunManifest)
    assert (manifest.planned_trials, manifest.planned_requests, manifest.announced, manifest.state) == (
        2,
        4,
        False,
        "closed",
    )
    for number, trial in enumerate(manifest.trials, 1):
        data = content(made, f"evidence/{run}-trial-{number}.json")
        record = load_document(data, EvidenceRecord)
        require_canonical(data, record)
        assert trial.record == "sha256:" + hashlib.sha256(data).hexdigest()
        assert trial.files == tuple(item.digest for item in record.attachments)
        for item in record.attachments:
            enclosed = content(made, item.path)
            assert item.digest == "sha256:" + hashlib.sha256(enclosed).hexdigest()
            assert item.size == len(enclosed)
    assert made.files[f"attachments/{run}/trial-2-tool-output.json"] == files[1].data


def test_enclosed_tables_read_back_without_faults_and_counters_are_differences() -> None:
    made = run_of(trials(1), [scrape(1, 2, 3), scrape(6, 62, 20)])
    record = made.records[0].record
    assert isinstance(record.payload, ServingTrial)
    assert record.payload.engine_counters is not None
    assert attrs.astuple(record.payload.engine_counters)[:4] == (5, 60, None, 17)
    assert record.engine_start == "2026-11-30T17:28:54Z"
    paths = [item.path for item in record.attachments]
    requests, gaps = load_requests(content(made, paths[0])), load_chunk_gaps(content(made, paths[1]))
    assert list(table_faults(requests, gaps, record.payload.duration_ns)) == []
    assert list(gaps.gap_ns) == list(made.records[0].trial.chunk_gaps.gap_ns)


def test_the_same_files_give_the_same_bytes() -> None:
    assert run_of(trials()).files == run_of(trials()).files
    assert run_of(trials()).manifest.run != run_of(trials()[::-1]).manifest.run


@pytest.mark.parametrize(
    ("words", "open_"),
    [(None, (0, 0, 0)), ("tool-output", (1, 0, 0)), ("metrics", (0, 1, 1)), ("metrics, tool-output", (1, 1, 1))],
)
def test_given_files_are_enclosed_by_name_alone(words: str | None, open_: tuple[int, ...]) -> None:
    pages = [scrape(0, 0, 0), scrape(5, 60, 17)]
    made = run_of(trials(1), pages, attrs.evolve(stated(), enclose=enclosed_roles(words)))
    attachments = made.records[0].record.attachments
    assert tuple(int(item.path is not None) for item in attachments) == (1, 1, *open_)
    names = ["requests.parquet", "chunk-gaps.parquet", "tool-output.json", "metrics-before.prom", "metrics-after.prom"]
    assert [item.name for item in attachments] == names, "a given file's own name can hold a person's"
    assert attachments[2].digest == "sha256:" + hashlib.sha256(trials(1)[0].data).hexdigest()
    assert len(made.files) == 4 + sum(open_)


def test_counter_findings() -> None:
    whole = json.loads(trials(1)[0].data) | {
        "output_lens": [3, 3, 3, 3],
        "itls": [[0.01, 0.03]] * 4,
        "latencies": [0.14, 0.24, 0.34, 0.44],
    }
    file = GivenFile("trial.json", json.dumps(whole).encode())

    def code(pages: list[GivenFile], given: RunInputs) -> str:
        return next(item.code for item in run_of([file], pages, given).findings if item.code.startswith("counters"))

    assert code([scrape(0, 0, 0), scrape(6, 60, 18)], stated()) == "counters_agree"
    assert code([scrape(0, 0, 0), scrape(7, 60, 18)], stated()) == "counters_differ"
    assert code([], stated()) == "counters_not_compared"
    assert code([scrape(0, 0, 0), scrape(6, 60, 18)], stated(warmup_requests=None)) == "counters_not_compared"


def test_counters_under_another_models_name_are_pointed_out() -> None:
    def labelled(page: GivenFile) -> GivenFile:
        text = page.data.replace(b'{finished_reason="length"}', b"").replace(b"_total ", b'_total{model_name="other"} ')
        return GivenFile(page.name, text)

    pages = [labelled(scrape(0, 0, 0)), labelled(scrape(6, 60, 18))]
    codes = [finding.code for finding in run_of(trials(1), pages).findings]
    assert codes.count("model_name_differs") == 1


@pytest.mark.parametrize(
    ("files", "pages", "source", "code"),
    [
        ([], [], None, "no_trial"),
        ([*trials(1), *trials(1)], [], "trial-1.json", "duplicate_trial"),
        (trials(2), [scrape(0, 0, 0), scrape(1, 1, 1)], None, "metrics_count"),
        ([*trials(1), GivenFile("odd.json", encoded(model_id="another"))], [], "odd.json", "trials_differ"),
        ([*trials(1), GivenFile("odd.json", b"{")], [], "odd.json", "invalid_json"),
        (trials(1), [scrape(9, 9, 9), scrape(1, 9, 9)], "page.prom", "counter_reset"),
        (
            trials(1),
            [scrape(0, 0, 0, "1896059734"), scrape(1, 1, 1, "1896059734")],
            "trial-1.json",
            "engine_start_late",
        ),
    ],
)
def test_what_is_no_run_is_refused(
    files: list[GivenFile], pages: list[GivenFile], source: str | None, code: str
) -> None:
    with pytest.raises(InputError) as caught:
        run_of(files, pages)
    assert (caught.value.source, caught.value.issues[0].code) == (source, code)


def test_trials_of_another_size_are_refused() -> None:
    short = json.loads(encoded())
    short = {key: value[:3] if type(value) is list else value for key, value in short.items()} | {"num_prompts": 3}
    with pytest.raises(InputError) as caught:
        run_of([*trials(1), GivenFile("short.json", json.dumps(short).encode())])
    assert caught.value.issues[0].code == "trials_differ"


def test_summary_by_hand() -> None:
    summary = summarize(run_of(trials(1)).records[0].trial)
    # Four requests: rank 4 of the p95 is the truncated one, which has no time to its first token that counts.
    assert summary.ttft_p95_ns is None
    # Seven gaps and one lost: rank 8 is the lost one.
    assert summary.chunk_gap_p95_ns is None
    assert (summary.complete, summary.error, summary.truncated, summary.concurrency_peak) == (3, 0, 1, 2)
    whole = encoded(
        output_lens=[3, 3, 3, 3], total_output_tokens=12, output_throughput=6.0, total_token_throughput=26.0
    )
    summary = summarize(run_of([GivenFile("t", whole)]).records[0].trial)
    assert (summary.ttft_p95_ns, summary.chunk_gap_p95_ns) == (400_000_000, 30_000_000)
    assert summary.tool_ttft_p95_ms == "385.0"
