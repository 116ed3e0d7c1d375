"""A recorded probe of a real engine: digests are those of the files, counts close with the engine's counters."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from moeplan.errors import InputError
from moeplan.importers.given import GivenFile
from moeplan.importers.probe import import_probe
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.finding import Finding
from moeplan.model.observations import ExpertCounts, LoadedBytes
from moeplan.units import NS_PER_S
from moeplan.wire.closed_table import load_table
from moeplan.wire.documents import dump_document, load_document
from moeplan.wire.observation import MadeObservation, ObservationContext
from moeplan.wire.series import EXPERTS, TENSORS
from tests.build import build_plan, digest_of, make_deployment

REPOSITORY = Path(__file__).parents[3]
DATA = REPOSITORY / "tests/data/probe-vllm-cpu"
BUNDLE = REPOSITORY / "evidence/tiny-moe-cpu/bundle"
SCRAPES = ((DATA / "before.prom").read_bytes(), (DATA / "after.prom").read_bytes())
OTHERS = tuple(data.replace(b"1.79608782497e+09", b"1.79608782e+09") for data in SCRAPES)
CONTEXT = ObservationContext(digest_of("plan"), make_deployment())
NAMES = ("weights", "experts", "memory")


def imported(*names: str, **options: Any) -> tuple[list[MadeObservation], tuple[Finding, ...]]:
    files = [GivenFile(f"{name}.jsonl", (DATA / f"{name}.jsonl").read_bytes()) for name in names]
    return import_probe(files, CONTEXT, **options)


def table_of(made: MadeObservation, role: str, schema: Any) -> Any:
    (path,) = [part.path for part in made.record.attachments if part.role == role]
    assert path is not None
    return load_table(schema, made.files[path])


def test_the_loaded_bytes_are_those_of_the_checkpoints_files() -> None:
    (made,), _findings = imported("weights")
    table = table_of(made, "tensors", TENSORS)
    wanted = {}
    for path in (REPOSITORY / "demo/tiny-moe").glob("*.safetensors"):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + at for at in entry["data_offsets"])
                wanted[name] = (end - begin, "sha256:" + hashlib.sha256(data[begin:end]).hexdigest())
    assert dict(zip(table.tensor, zip(table.bytes, table.digest, strict=True), strict=True)) == wanted
    payload = made.record.payload
    assert isinstance(payload, LoadedBytes)
    assert (payload.loader, payload.ranks, payload.row_count, payload.counting) == ("auto", ("tp0",), 231, True)


def test_the_selections_close_with_the_engines_counters() -> None:
    (made,), findings = imported("experts", scrapes=SCRAPES)
    table, payload = table_of(made, "experts", EXPERTS), made.record.payload
    assert isinstance(payload, ExpertCounts)
    assert payload.counters is not None
    counters = payload.counters
    assert counters.cached_prompt_tokens is not None
    # 528 prompt tokens of 24 requests, none cached; 12 requests of one token and 12 of twenty.
    computed = counters.prompt_tokens - counters.cached_prompt_tokens + counters.generation_tokens - counters.requests
    assert computed == 528 - 0 + (12 + 12 * 20) - 24
    by_layer = dict.fromkeys(range(4), 0)
    for layer, count in zip(table.layer, table.selections, strict=True):
        by_layer[layer] += count
    assert by_layer == dict.fromkeys(range(4), 4 * computed)
    assert [(layer.number, layer.experts, layer.top_k, layer.dropped_tokens) for layer in payload.layers] == [
        (number, 16, 4, 0) for number in range(4)
    ]
    assert [finding.code for finding in findings] == ["tokens_counted"]


def test_the_engine_start_is_that_of_the_scrapes_and_the_files_stay_outside() -> None:
    made, findings = imported(*NAMES, scrapes=SCRAPES)
    assert [one.record.type for one in made] == ["loaded_bytes", "expert_counts"]
    # process_start_time_seconds 1.79608782497e+09
    assert {one.record.engine_start for one in made} == {"2026-12-01T01:17:04Z"}
    enclosed = [part for one in made for part in one.record.attachments if part.role == "tool_output" and part.path]
    assert enclosed == []
    assert (made[0].record.collector.tool, made[0].record.collector.tool_version) == ("moeplan-vllm-probe", "0.1.0")
    assert "memory_passed_over" in [finding.code for finding in findings]


def test_counts_without_scrapes_are_said_to_be_unbelieved() -> None:
    (made,), findings = imported("experts")
    assert isinstance(made.record.payload, ExpertCounts)
    assert made.record.payload.counters is None
    assert findings[0].code == "no_counters"


@pytest.mark.parametrize(
    ("names", "options", "code"),
    [
        (("memory",), {}, "nothing_to_import"),
        (("weights", "weights"), {}, "rank_twice"),
        (("experts",), {"scrapes": OTHERS}, "engines_differ"),
        (("experts",), {"scrapes": SCRAPES[::-1]}, "counter_reset"),
        (("experts",), {"between": (0, NS_PER_S)}, "no_intervals"),
    ],
    ids=["memory alone", "a rank twice", "another engine", "scrapes swapped", "an empty span"],
)
def test_what_does_not_belong_together_is_refused(names: tuple[str, ...], options: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(*names, **options)
    assert caught.value.issues[0].code == code


@pytest.fixture
def stated(tmp_path: Path) -> list[str]:
    """Return the options that say what was served, with their files, and where to write."""
    (tmp_path / "plan.json").write_bytes(dump_document(build_plan()))
    words = ["--plan", str(tmp_path / "plan.json"), "--checkpoint", str(BUNDLE / "checkpoint.json")]
    return [*words, "--runtime-packages", str(REPOSITORY / "demo/runtime-packages.txt"), "-o", str(tmp_path / "out")]


def test_the_command_writes_both_records(tmp_path: Path, stated: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    scrapes = ["--metrics", str(DATA / "before.prom"), str(DATA / "after.prom")]
    assert main(["import", "probe", str(DATA), *scrapes, *stated, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [record["type"] for record in told["records"]] == ["loaded_bytes", "expert_counts"]
    for record in told["records"]:
        written = load_document((tmp_path / "out" / record["path"]).read_bytes(), EvidenceRecord)
        assert written.type == record["type"]


def test_the_command_takes_a_span_and_names_an_empty_directory(
    tmp_path: Path, stated: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["import", "probe", str(tmp_path / "empty"), *stated]) == 2
    assert "no record of a probe" in capsys.readouterr().err
    assert main(["import", "probe", str(DATA), "--from", "2027-01-01T00:00:00Z", *stated]) == 2
    assert "no interval lies in the span" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
