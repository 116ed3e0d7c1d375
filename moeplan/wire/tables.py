"""Raw observations <-> Parquet: closed schemas, the same bytes for the same table, and a reader that believes nothing.

Written files hold no compression, no statistics and no key-value metadata; integers are delta encoded, which is
smaller than plain integers under zstd. Read files may be uncompressed or Snappy: a page header of the other codecs can
promise gigabytes that a few kilobytes really hold.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.tables import REQUEST_OUTCOMES, ChunkGapTable, RequestTable
from moeplan.wire.parquet_footer import check_footer

__all__ = [
    "MAX_GAPS",
    "MAX_REQUESTS",
    "dump_chunk_gaps",
    "dump_requests",
    "load_chunk_gaps",
    "load_requests",
]

MAX_REQUESTS = 10_000_000
MAX_GAPS = 100_000_000
_GROUP_ROWS = 1 << 20
_THRIFT_STRING = 1 << 20
_THRIFT_ITEMS = 1 << 20
_INT, _BOOL, _TEXT = "INT64", "BOOLEAN", "BYTE_ARRAY"

Column: TypeAlias = "array[int] | tuple[str, ...]"
T = TypeVar("T", RequestTable, ChunkGapTable)


def dump_requests(table: RequestTable) -> bytes:
    """Return the table as Parquet: int64 columns, ``usage`` bool, ``outcome`` dictionary text, none nullable.

    Deterministic for one pyarrow version (the footer names it).

    Raises:
        InputError: columns of different length, an outcome that is none, or a usage that is no flag.
    """
    return _dump(table)


def load_requests(data: bytes) -> RequestTable:
    """Return the request table in ``data``, or refuse it; cross-row rules are ``model.tables.table_faults``'.

    Raises:
        InputError: not one whole Parquet file, other columns or types, nulls, outcomes that are none, too many rows.
    """
    return _load(data, RequestTable, MAX_REQUESTS)


def dump_chunk_gaps(table: ChunkGapTable) -> bytes:
    """Return the table as Parquet, three int64 columns; otherwise as :func:`dump_requests`."""
    return _dump(table)


def load_chunk_gaps(data: bytes) -> ChunkGapTable:
    """Return the chunk-gap table in ``data``, or refuse it as :func:`load_requests` does."""
    return _load(data, ChunkGapTable, MAX_GAPS)


def _columns(cls: type) -> dict[str, str]:
    special = {"usage": _BOOL, "outcome": _TEXT}
    return {field.name: special.get(field.name, _INT) for field in attrs.fields(cls)}


def _arrow_types(cls: type) -> dict[str, Any]:
    import pyarrow as pa

    made = {_INT: pa.int64(), _BOOL: pa.bool_(), _TEXT: pa.dictionary(pa.int32(), pa.string())}
    return {name: made[kind] for name, kind in _columns(cls).items()}


def _dump(table: RequestTable | ChunkGapTable) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = _arrow_types(type(table))
    arrays = []
    for name, wanted in types.items():
        column = getattr(table, name)
        if len(column) != len(table):
            raise InputError(
                Issue(f"$.{name}", "row_count", "column of another length", str(len(table)), str(len(column)))
            )
        arrays.append(_to_arrow(name, column, wanted))
    schema = pa.schema([pa.field(name, wanted, nullable=False) for name, wanted in types.items()])
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(arrays, schema=schema),
        sink,
        row_group_size=_GROUP_ROWS,
        version="2.6",
        data_page_version="1.0",
        data_page_size=1 << 20,
        compression="NONE",
        use_dictionary=[name for name, kind in _columns(type(table)).items() if kind == _TEXT],
        column_encoding={name: "DELTA_BINARY_PACKED" for name, kind in _columns(type(table)).items() if kind == _INT},
        write_statistics=False,
        store_schema=False,
    )
    return bytes(sink.getvalue())


def _to_arrow(name: str, column: Column, wanted: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, tuple):
        codes = {outcome: code for code, outcome in enumerate(REQUEST_OUTCOMES)}
        unknown = next((value for value in column if value not in codes), None)
        if unknown is not None:
            raise _outcome_error(unknown)
        indices = pa.array([codes[value] for value in column], pa.int32())
        return pa.DictionaryArray.from_arrays(indices, pa.array(REQUEST_OUTCOMES, pa.string()))
    if column.typecode != "q":
        raise InputError(
            Issue(f"$.{name}", "wrong_column_type", "column of another type", "array('q')", column.typecode)
        )
    integers = pa.Array.from_buffers(pa.int64(), len(column), [None, pa.py_buffer(column)])
    if wanted == pa.int64():
        return integers
    if set(column) - {0, 1}:
        raise InputError(Issue(f"$.{name}", "invalid_value", "not a flag", "0 or 1"))
    return integers.cast(wanted)


def _load(data: bytes, cls: type[T], max_rows: int) -> T:
    rows = check_footer(data, _columns(cls), max_rows)
    reader = _guarded(lambda: _open(data, cls))
    types = _arrow_types(cls)
    _check_arrow_schema(_guarded(lambda: reader.schema_arrow), types)
    table = _guarded(lambda: reader.read(use_threads=False))
    _guarded(lambda: table.validate(full=True))
    if table.num_rows != rows:
        expected = f"{rows} rows"
        raise InputError(Issue("$", "row_count", "rows are not those promised", expected, f"{table.num_rows} rows"))
    columns: dict[str, Any] = {name: _from_arrow(name, table.column(name)) for name in types}
    return cls(**columns)


def _open(data: bytes, cls: type) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        pa.BufferReader(data),
        read_dictionary=[name for name, kind in _columns(cls).items() if kind == _TEXT],
        pre_buffer=False,
        thrift_string_size_limit=_THRIFT_STRING,
        thrift_container_size_limit=_THRIFT_ITEMS,
        arrow_extensions_enabled=False,
    )


def _guarded(step: Callable[[], Any]) -> Any:
    """Run one pyarrow step; whatever it raises becomes one named error."""
    import pyarrow as pa

    try:
        return step()
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        got = escape((str(error) or type(error).__name__).splitlines()[0], 120)
        raise InputError(Issue("$", "not_parquet", "not a readable table", "one whole Parquet file", got)) from None


def _check_arrow_schema(schema: Any, types: dict[str, Any]) -> None:
    for name, wanted in types.items():
        got = schema.field(name).type
        if got != wanted:
            shown = escape(str(got), 80)
            raise InputError(Issue(f"$.{name}", "wrong_column_type", "column of another type", str(wanted), shown))


def _from_arrow(name: str, column: Any) -> Column:
    import pyarrow as pa

    # The decoded arrays are asked, not the footer's null_count, which anyone can write.
    if any(chunk.null_count for chunk in column.chunks):
        raise InputError(Issue(f"$.{name}", "null_value", "null in a column that has none", "a value in every row"))
    if pa.types.is_dictionary(column.type):
        return tuple(value for chunk in column.chunks for value in _outcomes(chunk))
    values = array("q")
    for chunk in column.cast(pa.int64()).chunks:
        buffer = chunk.buffers()[1]
        if len(chunk):
            values.frombytes(memoryview(buffer)[8 * chunk.offset : 8 * (chunk.offset + len(chunk))])
    return values


def _outcomes(chunk: Any) -> list[str]:
    if len(chunk.dictionary) > len(REQUEST_OUTCOMES):
        raise _outcome_error(f"{len(chunk.dictionary)} different values")
    names = _guarded(chunk.dictionary.to_pylist)
    for name in names:
        if name not in REQUEST_OUTCOMES:
            raise _outcome_error(name)
    return [names[code] for code in chunk.indices.to_pylist()]


def _outcome_error(got: object) -> InputError:
    expected = ", ".join(REQUEST_OUTCOMES)
    return InputError(Issue("$.outcome", "invalid_value", "not an outcome", expected, escape(str(got), 80)))
