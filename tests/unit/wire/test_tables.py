"""Parquet tables: values against numpy and pyarrow, forged and hostile files refused by name."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from moeplan.errors import InputError
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.wire import chunk_gaps, closed_table
from moeplan.wire.tables import dump_chunk_gaps, dump_requests, load_chunk_gaps, load_requests

GAP_COLUMNS = ("request", "ordinal", "gap_ns")


def gaps_of(count: int = 300, seed: int = 7) -> tuple[ChunkGapTable, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    values = {
        "request": np.arange(count, dtype=np.int64) // 3,
        "ordinal": np.arange(count, dtype=np.int64) % 3 + 1,
        "gap_ns": rng.integers(0, 2**53, count, dtype=np.int64),
    }
    return ChunkGapTable(**{name: array("q", column.tobytes()) for name, column in values.items()}), values


def requests_of(outcomes: tuple[str, ...] = ("complete", "error", "truncated", "complete")) -> RequestTable:
    count = len(outcomes)
    columns = {
        field.name: array("q", range(count))
        for field in attrs.fields(RequestTable)
        if field.name not in ("usage", "outcome")
    }
    return RequestTable(**columns, usage=array("q", [row % 2 for row in range(count)]), outcome=outcomes)


def arrow_gaps(**changed: Any) -> pa.Table:
    columns: dict[str, Any] = {name: pa.array([0, 0, 1], pa.int64()) for name in GAP_COLUMNS}
    return pa.table({**columns, **changed})


def written(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def refusal(data: bytes, load: Callable[[bytes], object] = load_chunk_gaps) -> tuple[str, str]:
    with pytest.raises(InputError) as caught:
        load(data)
    issue = caught.value.issues[0]
    return issue.path, issue.code


def test_gap_values_survive_and_numpy_agrees() -> None:
    table, values = gaps_of()
    data = dump_chunk_gaps(table)
    again = load_chunk_gaps(data)
    foreign = pq.read_table(pa.BufferReader(data))
    for name in GAP_COLUMNS:
        assert list(getattr(again, name)) == values[name].tolist()
        assert np.array_equal(foreign.column(name).to_numpy(), values[name])
        assert not foreign.schema.field(name).nullable


def test_request_values_survive_and_pyarrow_reads_them() -> None:
    table = requests_of()
    data = dump_requests(table)
    again = load_requests(data)
    assert attrs.asdict(again) == attrs.asdict(table)
    foreign = pq.read_table(pa.BufferReader(data)).to_pydict()
    assert foreign["outcome"] == ["complete", "error", "truncated", "complete"]
    assert foreign["usage"] == [False, True, False, True]
    assert list(foreign) == [field.name for field in attrs.fields(RequestTable)]


def test_same_table_same_bytes_without_statistics_or_metadata() -> None:
    first, second = dump_chunk_gaps(gaps_of()[0]), dump_chunk_gaps(gaps_of()[0])
    assert first == second
    metadata = pq.ParquetFile(pa.BufferReader(first)).metadata
    assert metadata.metadata is None
    assert not any(metadata.row_group(0).column(index).is_stats_set for index in range(3))


def test_no_rows_and_several_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = ChunkGapTable(array("q"), array("q"), array("q"))
    assert len(load_chunk_gaps(dump_chunk_gaps(empty))) == 0
    monkeypatch.setattr(closed_table, "GROUP_ROWS", 100)
    monkeypatch.setattr(chunk_gaps, "GROUP_ROWS", 100)
    table, values = gaps_of()
    data = dump_chunk_gaps(table)
    assert pq.ParquetFile(pa.BufferReader(data)).metadata.num_row_groups == 3
    assert list(load_chunk_gaps(data).gap_ns) == values["gap_ns"].tolist()


def test_another_writers_plain_file_is_read() -> None:
    assert load_chunk_gaps(written(arrow_gaps())).gap_ns == array("q", [0, 0, 1])
    assert load_chunk_gaps(written(arrow_gaps(), compression="none", use_dictionary=False)).request == array(
        "q", [0, 0, 1]
    )


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (pa.array([1.0, 2.0, 3.0]), "wrong_column_type"),
        (pa.array([1, 2, 3], pa.int32()), "wrong_column_type"),
        (pa.array([1, 2, 3], pa.uint64()), "wrong_column_type"),
        (pa.array([1, 2, 3], pa.timestamp("ns")), "wrong_column_type"),
        (pa.array([1, 2, 3], pa.duration("ns")), "wrong_column_type"),
        (pa.array(["1", "2", "3"]), "wrong_column_type"),
        (pa.array([[1], [2], [3]], pa.list_(pa.int64())), "wrong_columns"),
        (pa.array([1, None, 3], pa.int64()), "null_value"),
    ],
)
def test_a_column_of_another_type_or_with_a_null_is_refused(column: pa.Array, code: str) -> None:
    path, got = refusal(written(arrow_gaps(gap_ns=column)))
    assert got == code
    assert path in ("$.gap_ns", "$")


def test_a_null_is_refused_whatever_the_statistics_say() -> None:
    honest = written(arrow_gaps(gap_ns=pa.array([7, None, 7], pa.int64())), compression="none", use_dictionary=False)
    # Statistics, thrift compact: field 3 (null_count) as i64, one null; forged to none.
    one_null, no_null = (low_and_high := (7).to_bytes(8, "little")) + b"\x16\x02", low_and_high + b"\x16\x00"
    assert honest.count(one_null) == 2
    forged = honest.replace(one_null, no_null)
    statistics = pq.ParquetFile(pa.BufferReader(forged)).metadata.row_group(0).column(2).statistics
    assert statistics.null_count == 0
    assert refusal(forged) == ("$.gap_ns", "null_value")


def test_forged_minimum_and_maximum_change_nothing() -> None:
    values = pa.array([1111111111, 2222222222, 3333333333], pa.int64())
    honest = written(arrow_gaps(gap_ns=values), compression="none", use_dictionary=False)
    low, high = (1111111111).to_bytes(8, "little"), (9).to_bytes(8, "little")
    at = honest.rindex(low)
    forged = honest[:at] + high + honest[at + 8 :]
    statistics = pq.ParquetFile(pa.BufferReader(forged)).metadata.row_group(0).column(2).statistics
    assert statistics.min == 9
    assert list(load_chunk_gaps(forged).gap_ns) == values.to_pylist()


@pytest.mark.parametrize(
    "table",
    [
        arrow_gaps().drop_columns(["ordinal"]),
        arrow_gaps(extra=pa.array([1, 2, 3])),
        arrow_gaps().rename_columns(["request", "ordinal", "gapNs"]),
        arrow_gaps().select(["ordinal", "request", "gap_ns"]),
        arrow_gaps().append_column("gap_ns", pa.array([1, 2, 3])),
    ],
)
def test_other_columns_are_refused(table: pa.Table) -> None:
    assert refusal(written(table)) == ("$", "wrong_columns")


@pytest.mark.parametrize("codec", ["zstd", "gzip", "brotli", "lz4"])
def test_codecs_that_can_hide_a_bomb_are_refused(codec: str) -> None:
    assert refusal(written(arrow_gaps(), compression=codec))[1] == "wrong_compression"


def test_many_rows_in_few_bytes_are_refused_before_decoding() -> None:
    count = 6_000_000
    column = pa.array(np.zeros(count, dtype=np.int64))
    bomb = written(pa.table(dict.fromkeys(GAP_COLUMNS, column)), row_group_size=count)
    assert len(bomb) < 100_000
    assert refusal(bomb) == ("$", "decompression_bomb")


def test_more_rows_than_the_cap_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_gaps, "CHUNK_GAPS", attrs.evolve(chunk_gaps.CHUNK_GAPS, max_rows=2))
    assert refusal(written(arrow_gaps())) == ("$", "too_many_rows")


def test_extension_type_is_not_taken_for_what_it_stores() -> None:
    class Odd(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(pa.int32(), "test.odd")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, _storage: Any, _data: bytes) -> Odd:
            return cls()

    column = pa.ExtensionArray.from_storage(Odd(), pa.array([1, 2, 3], pa.int32()))
    assert refusal(written(arrow_gaps(gap_ns=column))) == ("$.gap_ns", "wrong_column_type")


def test_arrow_schema_metadata_that_alters_a_type_is_refused() -> None:
    data = written(arrow_gaps(gap_ns=pa.array([1, 2, 3], pa.duration("ns"))))
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.schema.column(2)
    assert (column.physical_type, column.logical_type.type) == ("INT64", "NONE")
    assert refusal(data) == ("$.gap_ns", "wrong_column_type")


def test_column_chunk_in_another_file_is_refused() -> None:
    metadata = pq.ParquetFile(pa.BufferReader(written(arrow_gaps()))).metadata
    metadata.set_file_path("elsewhere.parquet")
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    body, footer = written(arrow_gaps()), bytes(sink.getvalue())[4:]
    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    assert refusal(body[:start] + footer)[1] == "external_column"


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_columns_are_refused(plaintext_footer: bool) -> None:
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):  # type: ignore[misc,name-defined]
        def __init__(self, _config: Any) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, _name: str) -> bytes:
            return key.hex().encode()

        def unwrap_key(self, key: bytes, _name: str) -> bytes:
            return bytes.fromhex(key.decode())

    factory = encryption.CryptoFactory(Keys)
    config = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["gap_ns"]}, plaintext_footer=plaintext_footer
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), config)
    data = written(arrow_gaps(), encryption_properties=properties)
    assert refusal(data)[1] == "encrypted_column"


def test_joined_and_padded_files_are_refused() -> None:
    one, two = dump_chunk_gaps(gaps_of(seed=1)[0]), dump_chunk_gaps(gaps_of(seed=2)[0])
    assert refusal(one + two) == ("$", "uncovered_bytes")
    start = len(one) - 8 - int.from_bytes(one[-8:-4], "little")
    assert refusal(one[:start] + b"hidden" + one[start:]) == ("$", "uncovered_bytes")
    assert refusal(one + b"\n") == ("$", "not_parquet")


def test_every_truncation_is_refused() -> None:
    data = dump_chunk_gaps(gaps_of()[0])
    for length in [0, 1, 4, 8, 11, 12, *range(13, len(data), 37)]:
        assert refusal(data[:length])[1] in ("not_parquet", "uncovered_bytes")


def test_flipped_bytes_never_escape_as_another_error() -> None:
    rng = random.Random(3)
    for data, load in (
        (dump_chunk_gaps(gaps_of()[0]), load_chunk_gaps),
        (dump_requests(requests_of()), load_requests),
    ):
        for _ in range(400):
            at = rng.randrange(len(data))
            flipped = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
            with suppress(InputError):
                load(flipped)


def test_unknown_outcomes_and_dictionaries_are_refused() -> None:
    table = pq.read_table(pa.BufferReader(dump_requests(requests_of())))
    position = table.column_names.index("outcome")
    for values in (["complete", "error", "fine", "error"], [f"v{n}" for n in range(4)]):
        forged = table.set_column(position, "outcome", pa.array(values))
        assert refusal(written(forged), load_requests) == ("$.outcome", "invalid_value")
    spare = pa.DictionaryArray.from_arrays(
        pa.array([0, 0, 0, 0], pa.int32()), pa.array(["complete", "secret"], pa.string())
    )
    hidden = written(table.set_column(position, "outcome", spare))
    assert refusal(hidden, load_requests) == ("$.outcome", "invalid_value")
    nothing = table.set_column(position, "outcome", pa.array(["complete", None, "error", "error"]))
    assert refusal(written(nothing), load_requests) == ("$.outcome", "null_value")


def test_usage_must_be_boolean() -> None:
    table = pq.read_table(pa.BufferReader(dump_requests(requests_of())))
    forged = table.set_column(table.column_names.index("usage"), "usage", pa.array([0, 1, 0, 1]))
    assert refusal(written(forged), load_requests) == ("$.usage", "wrong_column_type")


def test_dump_refuses_what_it_could_not_read_back() -> None:
    with pytest.raises(InputError, match="not an outcome"):
        dump_requests(requests_of(("fine",)))
    table, _ = gaps_of()
    with pytest.raises(InputError, match="another length"):
        ChunkGapTable(table.request, array("q", [1]), table.gap_ns)
    with pytest.raises(InputError, match="not a flag"):
        dump_requests(attrs.evolve(requests_of(), usage=array("q", [0, 1, 2, 0])))
    with pytest.raises(InputError, match="another type"):
        ChunkGapTable(table.request, table.ordinal, array("h", range(300)))
