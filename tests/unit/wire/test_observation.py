from __future__ import annotations

import hashlib
import json
from array import array

import pytest

from moeplan.errors import InputError
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.evidence import Collector, EvidenceRecord, Interval
from moeplan.model.observations import EngineLog, MemoryDevice, MemoryPhase, MemorySeries
from moeplan.model.series import SeriesTable, series_faults
from moeplan.model.series_rows import SeriesRows
from moeplan.wire.closed_table import load_table
from moeplan.wire.documents import load_document
from moeplan.wire.observation import ObservationContext, SideFile, enclosing_interval, made_run, make_observation
from moeplan.wire.series import SERIES

DIGEST = "sha256:" + "5" * 64
CONTEXT = ObservationContext(
    DIGEST,
    Deployment(DIGEST, None, (RuntimeIdentity("serve", "oci_image", DIGEST),), None, None, None, ("node-1",), None),
)
COLLECTOR = Collector("vllm", "0.32.0", "vllm-log", "1")
INTERVAL = Interval("2026-11-30T16:16:52Z", "2026-11-30T16:17:38Z")


def rows() -> SeriesRows:
    made = SeriesRows("vllm-log")
    made.add(45_000_000_000, "engine", "kv_cache_tokens", 524_288, "tokens")
    made.word(0, "engine", "engine_state", "starting")
    made.unread(1, "engine", "cuda_graph_bytes", "bytes", "not_exposed")
    made.reset(2, "engine", "requests", 3, "requests")
    return made


def payload(count: int = 4) -> EngineLog:
    return EngineLog(role="serve", engine="vllm", engine_version="0.32.0", whole=True, line_count=151, row_count=count)


def test_a_record_and_its_files_lie_where_the_record_says() -> None:
    log = SideFile("log", "a\nb.log", b"text", "log", "text/plain", enclosed=False)
    made = make_observation(
        payload(), {"series": rows().table()}, context=CONTEXT, collector=COLLECTOR, interval=INTERVAL, side_files=[log]
    )
    table, side = made.record.attachments
    assert table.path is not None
    assert set(made.files) == {made.path, table.path}
    assert made.path.startswith("evidence/engine-log-")
    assert table.path == f"attachments/{made.path[9:-5]}/series.parquet"
    assert (side.path, side.name, side.digest) == (None, "a_b.log", "sha256:" + hashlib.sha256(b"text").hexdigest())
    assert made.digest == "sha256:" + hashlib.sha256(made.files[made.path]).hexdigest()
    assert load_document(made.files[made.path], EvidenceRecord) == made.record
    read = load_table(SERIES, made.files[table.path])
    assert read.metric == ("engine_state", "cuda_graph_bytes", "requests", "kv_cache_tokens")
    assert read.time_ns == array("q", (0, 1, 2, 45_000_000_000))
    assert read.state == ("measured", "not_exposed", "reset", "measured")
    assert list(series_faults(read, made.record.duration_ns)) == []


def test_names_differ_where_what_was_seen_differs_and_nowhere_else() -> None:
    def path(count: int, table: SeriesTable) -> str:
        return make_observation(
            payload(count), {"series": table}, context=CONTEXT, collector=COLLECTOR, interval=INTERVAL
        ).path

    other = rows()
    other.add(3, "engine", "x", 1, "count")
    assert path(4, rows().table()) == path(4, rows().table())
    assert path(4, rows().table()) != path(4, other.table())
    assert path(4, rows().table()) != path(5, rows().table())


def test_a_record_that_contradicts_itself_is_refused() -> None:
    memory = MemorySeries(
        poll_interval_ns=1,
        phases=(MemoryPhase("idle", 0, 47_000_000_000),),
        devices=(MemoryDevice("host", "host", None),),
        row_count=4,
    )
    with pytest.raises(InputError) as refused:
        make_observation(memory, {"series": rows().table()}, context=CONTEXT, collector=COLLECTOR, interval=INTERVAL)
    assert refused.value.issues[0].code == "outside_interval"
    with pytest.raises(InputError) as refused:
        make_observation(payload(), {}, context=CONTEXT, collector=COLLECTOR, interval=INTERVAL)
    assert refused.value.issues[0].code == "attachment_missing"


def test_a_run_lists_what_it_made() -> None:
    made = make_observation(
        payload(), {"series": rows().table()}, context=CONTEXT, collector=COLLECTOR, interval=INTERVAL
    )
    manifest, path, data = made_run("run-1", CONTEXT, [made.listed()], announced=True)
    assert path == "evidence/run-1.json"
    written = json.loads(data)
    assert written["observations"] == [
        {"type": "engine_log", "record": made.digest, "files": [made.record.attachments[0].digest]}
    ]
    assert (written["announced"], written["state"], written["plannedTrials"]) == (True, "closed", 0)
    assert list(manifest.faults()) == []


@pytest.mark.parametrize(
    ("first", "last", "start", "end", "origin"),
    [
        (1_500_000_000, 2_000_000_000, "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z", 1_000_000_000),
        (1_000_000_000, 1_000_000_000, "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z", 1_000_000_000),
        (0, 2_000_000_001, "1970-01-01T00:00:00Z", "1970-01-01T00:00:03Z", 0),
    ],
)
def test_intervals_enclose(first: int, last: int, start: str, end: str, origin: int) -> None:
    assert enclosing_interval(first, last) == (Interval(start, end), origin)


@pytest.mark.parametrize(
    ("first", "last"), [(-1, 0), (2, 1), (0, 3700 * 86_400 * 10**9), (253_370_764_800 * 10**9, 253_370_764_801 * 10**9)]
)
def test_times_that_are_of_no_one_observation_are_refused(first: int, last: int) -> None:
    with pytest.raises(InputError) as refused:
        enclosing_interval(first, last)
    assert refused.value.issues[0].code == "times_implausible"
