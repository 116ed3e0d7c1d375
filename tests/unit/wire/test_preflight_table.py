"""The preflight table: open text columns are bounded and printable, closed ones hold their words only."""

from __future__ import annotations

from array import array
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moeplan.errors import InputError
from moeplan.model.tables import PreflightTable, preflight_faults
from moeplan.wire import tables
from moeplan.wire.closed_table import Names
from moeplan.wire.tables import dump_preflight, load_preflight

TABLE = PreflightTable(
    host=("n1", "n2"),
    probe=("netperf", "netperf"),
    item=("a -> b", "gpu3 \u2194"),
    metric=("bandwidth", "lit"),
    unit=("bytes_per_second", "boolean"),
    value=array("q", [48_000_000_000, 1]),
    state=("measured", "measured"),
)


def refusal(table: PreflightTable) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        dump_preflight(table)
    return caught.value.issues[0].path, caught.value.issues[0].code


def written(**changed: Any) -> bytes:
    columns: dict[str, Any] = {
        field.name: pa.array(list(getattr(TABLE, field.name))) for field in attrs.fields(PreflightTable)
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns | changed), sink)
    return bytes(sink.getvalue())


def test_a_table_comes_back_and_is_the_same_bytes_each_time() -> None:
    data = dump_preflight(TABLE)
    assert data == dump_preflight(TABLE)
    back = load_preflight(data)
    assert {field.name: getattr(back, field.name) for field in attrs.fields(PreflightTable)} == {
        field.name: getattr(TABLE, field.name) for field in attrs.fields(PreflightTable)
    }
    assert dump_preflight(back) == data
    assert list(preflight_faults(back)) == []


def test_an_empty_table_comes_back() -> None:
    empty = PreflightTable((), (), (), (), (), array("q"), ())
    assert len(load_preflight(dump_preflight(empty))) == 0


@pytest.mark.parametrize(
    ("column", "values", "code"),
    [
        ("unit", ("lumen", "boolean"), "invalid_value"),
        ("state", ("measured", "guessed"), "invalid_value"),
        ("host", ("n1", "n\n2"), "invalid_value"),
        ("item", ("x" * 401, "y"), "invalid_value"),
        ("metric", ("", "lit"), "invalid_value"),
        ("host", ("n1",), "row_count"),
    ],
)
def test_texts_that_are_refused_when_written(column: str, values: Any, code: str) -> None:
    assert refusal(attrs.evolve(TABLE, **{column: values})) == (f"$.{column}", code)


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"unit": pa.array(["lumen", "boolean"])}, "$.unit"),
        ({"host": pa.array(["n1", "\x1b[2J"])}, "$.host"),
        ({"host": pa.array(["n1", "x" * 401])}, "$.host"),
        ({"host": pa.array(["n1", None])}, "$.host"),
        ({"value": pa.array([1.0, 2.0])}, "$.value"),
        ({"value": pa.array([1, None], pa.int64())}, "$.value"),
    ],
)
def test_foreign_tables_are_refused_when_read(changed: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        load_preflight(written(**changed))
    assert caught.value.issues[0].path == path


def test_too_many_different_texts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dump_preflight(TABLE)
    columns = dict(tables.PREFLIGHT.columns) | {"host": Names(most=1)}
    monkeypatch.setattr(tables, "PREFLIGHT", attrs.evolve(tables.PREFLIGHT, columns=columns))
    with pytest.raises(InputError, match="2 different values"):
        load_preflight(data)


@pytest.mark.parametrize(
    ("changed", "path", "code"),
    [
        ({"value": array("q", [1, 2])}, "preflight[1].value", "out_of_range"),
        ({"value": array("q", [2**53, 1])}, "preflight[0].value", "out_of_range"),
        ({"state": ("failed", "measured")}, "preflight[0].value", "not_measured"),
        ({"unit": ("lumen", "boolean")}, "preflight[0].unit", "invalid_value"),
        ({"state": ("lost", "measured"), "value": array("q", [0, 1])}, "preflight[0].state", "invalid_value"),
    ],
)
def test_rows_that_break_the_rules_are_named(changed: dict[str, Any], path: str, code: str) -> None:
    assert [(issue.path, issue.code) for issue in preflight_faults(attrs.evolve(TABLE, **changed))] == [(path, code)]
