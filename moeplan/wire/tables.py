"""Raw observations <-> Parquet: closed schemas, the same bytes for the same table, and a reader that believes nothing.

Written files hold no compression, no statistics and no key-value metadata; integers are delta encoded, which is
smaller than plain integers under zstd. Read files may be uncompressed or Snappy: a page header of the other codecs can
promise gigabytes that a few kilobytes really hold.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.model.tables import (
    PREFLIGHT_STATES,
    PREFLIGHT_UNITS,
    REQUEST_OUTCOMES,
    ChunkGapTable,
    PreflightTable,
    RequestTable,
)
from moeplan.wire.parquet_footer import check_footer

__all__ = [
    "MAX_GAPS",
    "MAX_PREFLIGHT_ROWS",
    "MAX_REQUESTS",
    "dump_chunk_gaps",
    "dump_preflight",
    "dump_requests",
    "load_chunk_gaps",
    "load_preflight",
    "load_requests",
]

MAX_REQUESTS = 10_000_000
MAX_GAPS = 100_000_000
MAX_PREFLIGHT_ROWS = 1_000_000
MAX_NAMES = 100_000
"""Most different texts of one column, where they are not words of a closed list."""
MAX_NAME_CHARACTERS = 400
_GROUP_ROWS = 1 << 20
_THRIFT_STRING = 1 << 20
_THRIFT_ITEMS = 1 << 20
_INT, _BOOL, _TEXT = "INT64", "BOOLEAN", "BYTE_ARRAY"

Column: TypeAlias = "array[int] | tuple[str, ...]"
T = TypeVar("T", RequestTable, ChunkGapTable, PreflightTable)

_FLAGS = frozenset({"usage"})
_WORDS: dict[str, tuple[str, ...] | None] = {
    "outcome": REQUEST_OUTCOMES,
    "host": None,
    "probe": None,
    "item": None,
    "metric": None,
    "unit": PREFLIGHT_UNITS,
    "state": PREFLIGHT_STATES,
}
"""Columns of text: the words of a closed list, or None where any short printable text may stand."""


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


def dump_preflight(table: PreflightTable) -> bytes:
    """Return the table as Parquet: ``value`` int64, all else dictionary text; otherwise as :func:`dump_requests`."""
    return _dump(table)


def load_preflight(data: bytes) -> PreflightTable:
    """Return the preflight table in ``data``, or refuse it as :func:`load_requests` does."""
    return _load(data, PreflightTable, MAX_PREFLIGHT_ROWS)


def _columns(cls: type) -> dict[str, str]:
    return {
        field.name: _BOOL if field.name in _FLAGS else _TEXT if field.name in _WORDS else _INT
        for field in attrs.fields(cls)
    }


def _arrow_types(cls: type) -> dict[str, Any]:
    import pyarrow as pa

    made = {_INT: pa.int64(), _BOOL: pa.bool_(), _TEXT: pa.dictionary(pa.int32(), pa.string())}
    return {name: made[kind] for name, kind in _columns(cls).items()}


def _dump(table: RequestTable | ChunkGapTable | PreflightTable) -> bytes:
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
        words = _WORDS[name] or tuple(dict.fromkeys(column))
        codes = {word: code for code, word in enumerate(words)}
        unknown = next((value for value in column if value not in codes), None)
        if unknown is not None:
            raise _word_error(name, unknown)
        _check_names(name, words)
        indices = pa.array([codes[value] for value in column], pa.int32())
        return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))
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
        return tuple(value for chunk in column.chunks for value in _texts(name, chunk))
    values = array("q")
    for chunk in column.cast(pa.int64()).chunks:
        buffer = chunk.buffers()[1]
        if len(chunk):
            values.frombytes(memoryview(buffer)[8 * chunk.offset : 8 * (chunk.offset + len(chunk))])
    return values


def _texts(column: str, chunk: Any) -> list[str]:
    most = len(_WORDS[column] or ()) or MAX_NAMES
    if len(chunk.dictionary) > most:
        raise _word_error(column, f"{len(chunk.dictionary)} different values")
    words = _guarded(chunk.dictionary.to_pylist)
    _check_names(column, words)
    return [words[code] for code in chunk.indices.to_pylist()]


def _check_names(column: str, words: Sequence[str]) -> None:
    """Refuse words that are not of the column's list, and names that are too many, too long or not printable."""
    known = _WORDS[column]
    if len(words) > (len(known) if known else MAX_NAMES):
        raise _word_error(column, f"{len(words)} different values")
    for word in words:
        if known:
            fits = word in known
        else:
            fits = type(word) is str and 1 <= len(word) <= MAX_NAME_CHARACTERS and word.isprintable()
        if not fits:
            raise _word_error(column, word)


def _word_error(column: str, got: object) -> InputError:
    known = _WORDS[column]
    message = "text refused" if known is None else "not an outcome" if column == "outcome" else f"not a {column}"
    expected = ", ".join(known) if known else f"printable text of 1 to {MAX_NAME_CHARACTERS} characters"
    return InputError(Issue(f"$.{column}", "invalid_value", message, expected, escape(str(got), 80)))
