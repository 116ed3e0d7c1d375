"""A preflight as evidence: the record, its table read by pyarrow, and what is refused."""

from __future__ import annotations

import hashlib
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moeplan.errors import InputError
from moeplan.importers.preflight import ImportedPreflight, PreflightInputs, import_preflight
from moeplan.importers.run import GivenFile
from moeplan.model.evidence import EvidenceRecord, Preflight
from moeplan.model.preflight import Imported, ImportedClaim, ImportedHost, ImportedRow, ImportedSection
from moeplan.wire.documents import load_document, require_canonical
from moeplan.wire.tables import load_preflight
from tests.build import make_deployment

FILES = (GivenFile("n2.json", b"two"), GivenFile("n1.json", b"one"))
DIGEST = "sha256:" + "0" * 64


def row(host: str = "n1", item: str = "gpu0", value: int = 48, **more: Any) -> ImportedRow:
    made: dict[str, Any] = {"probe": "links", "metric": "bandwidth", "unit": "bytes_per_second", "state": "measured"}
    return ImportedRow(**({**made, "host": host, "item": item, "value": value} | more))


def host(name: str, generated: str) -> ImportedHost:
    return ImportedHost(name, f"{name}.json", None, generated, (ImportedSection("links", "ok", "ok"),))


IMPORTED = Imported(
    hosts=(host("n2", "2026-11-30 10:01:00"), host("n1", "2026-11-30 10:00:30")),
    rows=(row(), row("n2", "gpu1", 0, state="failed"), row("n2", "gpu0", 2**53 - 1, unit="count")),
    claims=(ImportedClaim("n1.links.info", "3"),),
)


def inputs(**changed: Any) -> PreflightInputs:
    stated: dict[str, Any] = {
        "format": "lamps", "plugin": "amd", "plugin_version": "1.2", "plan": DIGEST, "deployment": make_deployment(),
        "started": "2026-11-30T17:00:00Z", "utc_offset_seconds": -7 * 3600,
    }  # fmt: skip
    return PreflightInputs(**(stated | changed))


def made(imported: Imported = IMPORTED, **changed: Any) -> ImportedPreflight:
    return import_preflight(FILES, imported, inputs(**changed))


def test_the_record_is_a_document_that_binds_nothing() -> None:
    result = made()
    data = result.files[result.path]
    record = load_document(data, EvidenceRecord)
    require_canonical(data, record)
    assert record == result.record
    assert result.digest == "sha256:" + hashlib.sha256(data).hexdigest()
    payload = record.payload
    assert isinstance(payload, Preflight)
    assert (payload.format, payload.read_by, payload.row_count) == ("lamps", "amd@1.2", 3)
    # 10:00:30 at UTC-7 is 17:00:30 UTC
    assert [(one.name, one.generated) for one in payload.hosts] == [
        ("n1", "2026-11-30T17:00:30Z"),
        ("n2", "2026-11-30T17:01:00Z"),
    ]
    assert (record.interval.start, record.interval.end) == ("2026-11-30T17:00:00Z", "2026-11-30T17:01:00Z")
    assert record.engine_start is None


def test_names_come_from_the_files_and_every_file_is_named_by_digest() -> None:
    result = made(enclose=frozenset({"tool_output"}))
    lines = "".join("sha256:" + hashlib.sha256(file.data).hexdigest() + "\n" for file in FILES)
    name = "preflight-" + hashlib.sha256(lines.encode()).hexdigest()[:12]
    assert set(result.files) == {
        f"evidence/{name}.json",
        f"attachments/{name}/preflight.parquet",
        f"attachments/{name}/tool-output-1.json",
        f"attachments/{name}/tool-output-2.json",
    }
    told = {part.path: (part.role, part.name, part.digest) for part in result.record.attachments}
    assert told[f"attachments/{name}/tool-output-1.json"] == (
        "tool_output", "tool-output-1.json", "sha256:" + hashlib.sha256(b"two").hexdigest(),
    )  # fmt: skip
    for path, (_, _, digest) in told.items():
        assert path is not None
        assert digest == "sha256:" + hashlib.sha256(result.files[path]).hexdigest()


def test_the_tools_files_are_not_enclosed_unless_allowed() -> None:
    result = made()
    assert [part.role for part in result.record.attachments if part.path is not None] == ["preflight"]
    assert not any("tool-output" in path for path in result.files)


def test_the_table_is_what_pyarrow_reads_and_comes_back() -> None:
    result = made()
    [data] = [data for path, data in result.files.items() if path.endswith(".parquet")]
    read = pq.read_table(pa.BufferReader(data))
    assert read.column_names == ["host", "probe", "item", "metric", "unit", "value", "state"]
    assert read.column("value").to_pylist() == [48, 0, 2**53 - 1]
    assert read.column("host").to_pylist() == ["n1", "n2", "n2"]
    assert read.column("state").to_pylist() == ["measured", "failed", "measured"]
    assert [field.nullable for field in read.schema] == [False] * 7
    back = load_preflight(data)
    assert list(back.value) == [48, 0, 2**53 - 1]
    assert back.unit == ("bytes_per_second", "bytes_per_second", "count")


def test_a_file_older_than_the_start_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        made(started="2026-11-30T17:00:31Z")
    issue = caught.value.issues[0]
    assert (issue.path, issue.code, issue.got) == ("--started", "older_file", "2026-11-30T17:00:30Z")


@pytest.mark.parametrize(
    ("imported", "code"),
    [
        (Imported(), "no_host"),
        (attrs.evolve(IMPORTED, hosts=(host("n1", "2026-02-30 10:00:00"),)), "invalid_instant"),
        (attrs.evolve(IMPORTED, rows=(row(unit="boolean", value=2),)), "out_of_range"),
        (attrs.evolve(IMPORTED, rows=(row(state="failed", value=7),)), "not_measured"),
    ],
)
def test_what_is_no_preflight_is_refused(imported: Imported, code: str) -> None:
    with pytest.raises(InputError) as caught:
        made(imported)
    assert caught.value.issues[0].code == code


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda record: attrs.evolve(record, type="serving_trial"), "type_mismatch"),
        (lambda record: attrs.evolve(record, attachments=record.attachments[1:]), "attachment_missing"),
        (lambda record: _with_hosts(record, record.payload.hosts[::-1]), "not_sorted"),
        (lambda record: _with_hosts(record, record.payload.hosts[:1] * 2), "not_sorted"),
        (lambda record: _with_hosts(record, (attrs.evolve(record.payload.hosts[0], generated="2026-12-01T00:00:00Z"),)),
         "outside_interval"),
    ],
)  # fmt: skip
def test_a_record_that_contradicts_itself_is_refused(change: Any, code: str) -> None:
    assert [issue.code for issue in change(made().record).faults()] == [code]


def _with_hosts(record: EvidenceRecord, hosts: Any) -> EvidenceRecord:
    assert isinstance(record.payload, Preflight)
    return attrs.evolve(record, payload=attrs.evolve(record.payload, hosts=hosts))
