"""docs/formats.md names every class with every key in order and its type, and every reason code."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq

from moeplan.evaluation.next_steps import REASONS
from moeplan.signing.statement import EVIDENCE_PREDICATE, INDEX_PREDICATE, VERDICT_PREDICATE
from tests.unit.docs.field_types import documented, rows
from tests.unit.docs.pages import ROOT, sections, table_rows

_PAGE = ROOT / "docs/formats.md"


def test_every_class_has_a_table_of_its_keys_with_their_types() -> None:
    listed = sections(_PAGE, 3)
    assert set(documented()) <= set(listed)
    for name, cls in documented().items():
        told = {row[0].strip("`"): row[1] for row in table_rows(listed[name])}
        assert told == rows(cls), name
        assert list(told) == list(rows(cls)), name
        assert all(row[2] for row in table_rows(listed[name])), name


def test_every_schema_is_of_a_kind_the_page_names() -> None:
    text = _PAGE.read_text("utf-8")
    for path in (ROOT / "schemas").glob("*.schema.json"):
        kind = path.name.rpartition("-")[0]
        assert f"`kind: {kind}`" in text, kind


def test_every_reason_a_criterion_may_give_is_listed() -> None:
    told = re.search(r"Reason codes of criteria: (.*?)\.\n", _PAGE.read_text("utf-8"), re.DOTALL)
    assert told is not None
    assert re.findall("`([a-z_]+)`", told[1]) == sorted({*REASONS, "missing_evidence"})


def test_tables_columns_are_those_of_the_reference_bundle() -> None:
    words = {"int64": pa.int64(), "bool": pa.bool_(), "dictionary text": pa.string()}
    listed = sections(_PAGE, 3)
    for name, ending in (("requests", "requests"), ("chunk_gaps", "chunk-gaps")):
        [path] = (ROOT / "evidence/tiny-moe-cpu/bundle/attachments").glob(f"*/trial-1-{ending}.parquet")
        wanted = [(field.name, field.type, field.nullable) for field in pq.read_schema(path)]
        told = [(row[0].strip("`"), words[row[1]], False) for row in table_rows(listed[name])]
        assert told == wanted, name


def test_predicate_types_are_those_of_the_code() -> None:
    text = sections(_PAGE, 2)["Attestations"]
    assert re.findall(r"\| (?:evidence|index|verdict) \| `(\S+)` \|", text) == [
        EVIDENCE_PREDICATE,
        INDEX_PREDICATE,
        VERDICT_PREDICATE,
    ]
