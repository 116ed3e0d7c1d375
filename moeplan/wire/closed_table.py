"""One closed Parquet schema a table: the same bytes for the same table, and a reader that believes nothing.

Written files hold no compression, no statistics and no key-value metadata; integers are delta encoded, which is
smaller than plain integers under zstd. Read files may be uncompressed or Snappy: a page header of the other codecs can
promise gigabytes that a few kilobytes really hold.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.wire.parquet_footer import check_footer

__all__ = [
    "FLAG",
    "GROUP_ROWS",
    "INTEGER",
    "Names",
    "TableSchema",
    "Words",
    "dump_groups",
    "dump_table",
    "load_table",
    "read_batches",
]

MAX_NAME_CHARACTERS = 400
GROUP_ROWS = 1 << 20
"""Rows of a written row group, and the most that are decoded at a time where a table is read batch by batch."""
_THRIFT_STRING = 1 << 20
_THRIFT_ITEMS = 1 << 20
_INT, _BOOL, _TEXT = "INT64", "BOOLEAN", "BYTE_ARRAY"

Column: TypeAlias = "array[int] | tuple[str, ...]"
T = TypeVar("T")


@attrs.frozen
class Words:
    """A column of text that holds words of a closed list alone; ``noun`` names one of them in messages."""

    words: tuple[str, ...]
    noun: str


@attrs.frozen
class Names:
    """A column of short printable text: at most ``most`` different ones; empty text only where ``blank``."""

    most: int = 100_000
    blank: bool = False


INTEGER = "integer"
"""A column of int64, an ``array('q')`` in memory."""
FLAG = "flag"
"""A column of bool, an ``array('q')`` of 0 and 1 in memory."""

Kind: TypeAlias = "str | Words | Names"


@attrs.frozen
class TableSchema(Generic[T]):
    """The one form of a table: its class, its columns in the class's order, and the most rows accepted."""

    cls: type[T]
    columns: Mapping[str, Kind]
    max_rows: int

    def __attrs_post_init__(self) -> None:
        names = [field.name for field in attrs.fields(self.cls)]  # type: ignore[arg-type]
        if names != list(self.columns):
            raise AssertionError(f"columns of {self.cls.__name__} are {names}")


def _physical(schema: TableSchema[T]) -> dict[str, str]:
    made = {INTEGER: _INT, FLAG: _BOOL}
    return {name: made[kind] if isinstance(kind, str) else _TEXT for name, kind in schema.columns.items()}


def _arrow_types(schema: TableSchema[T]) -> dict[str, Any]:
    import pyarrow as pa

    made = {_INT: pa.int64(), _BOOL: pa.bool_(), _TEXT: pa.dictionary(pa.int32(), pa.string())}
    return {name: made[kind] for name, kind in _physical(schema).items()}


def dump_table(schema: TableSchema[T], table: T) -> bytes:
    """Return the table as Parquet: int64, bool and dictionary text columns, none nullable.

    Deterministic for one pyarrow version (the footer names it).

    Raises:
        InputError: columns of different length, a word that is not of the column's list, or a flag that is none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = _arrow_types(schema)
    rows = len(table)  # type: ignore[arg-type]
    arrays = []
    for name, wanted in types.items():
        column = getattr(table, name)
        if len(column) != rows:
            raise InputError(Issue(f"$.{name}", "row_count", "column of another length", str(rows), str(len(column))))
        arrays.append(_to_arrow(name, schema.columns[name], column, wanted))
    made, sink = pa.table(arrays, schema=_arrow_schema(schema)), pa.BufferOutputStream()
    pq.write_table(made, sink, row_group_size=GROUP_ROWS, **_writing(schema))
    return bytes(sink.getvalue())


def dump_groups(schema: TableSchema[T], groups: Iterable[Sequence[Any]]) -> list[bytes]:
    """Return the Parquet file of a table given group by group, in pieces; the bytes are those of :func:`dump_table`.

    Args:
        schema: of integer columns alone.
        groups: numpy columns of up to ``GROUP_ROWS`` rows each, in the schema's order, at least one group.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow_schema, sink = _arrow_schema(schema), _Pieces()
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), arrow_schema, **_writing(schema)) as writer:
        for columns in groups:
            arrays = [pa.array(column, pa.int64()) for column in columns]
            writer.write_table(pa.table(arrays, schema=arrow_schema), row_group_size=GROUP_ROWS)
    pa.default_memory_pool().release_unused()
    return sink.pieces


class _Pieces:
    """A file that is kept in memory piece by piece, so that it does not move while it grows."""

    closed = False

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: Any) -> int:
        self.pieces.append(bytes(data))
        return len(self.pieces[-1])

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True


def _arrow_schema(schema: TableSchema[T]) -> Any:
    import pyarrow as pa

    return pa.schema([pa.field(name, wanted, nullable=False) for name, wanted in _arrow_types(schema).items()])


def _writing(schema: TableSchema[T]) -> dict[str, Any]:
    physical = _physical(schema)
    return {
        "version": "2.6",
        "data_page_version": "1.0",
        "data_page_size": 1 << 20,
        "compression": "NONE",
        "use_dictionary": [name for name, kind in physical.items() if kind == _TEXT],
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name, kind in physical.items() if kind == _INT},
        "write_statistics": False,
        "store_schema": False,
    }


def _to_arrow(name: str, kind: Kind, column: Column, wanted: Any) -> Any:
    import pyarrow as pa

    if isinstance(column, tuple):
        words = kind.words if isinstance(kind, Words) else tuple(dict.fromkeys(column))
        codes = {word: code for code, word in enumerate(words)}
        unknown = next((value for value in column if value not in codes), None)
        if unknown is not None:
            raise _word_error(name, kind, unknown)
        _check_names(name, kind, words)
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


def load_table(schema: TableSchema[T], data: bytes) -> T:
    """Return the table in ``data``, or refuse it; rules across rows are the model's.

    Raises:
        InputError: not one whole Parquet file, other columns or types, nulls, words that are none, too many rows.
    """
    rows = check_footer(data, _physical(schema), schema.max_rows)
    reader = _guarded(lambda: _open(data, schema))
    types = _arrow_types(schema)
    _check_arrow_schema(_guarded(lambda: reader.schema_arrow), types)
    table = _guarded(lambda: reader.read(use_threads=False))
    _guarded(lambda: table.validate(full=True))
    _require_rows(rows, table.num_rows)
    columns = {name: _from_arrow(name, kind, table.column(name)) for name, kind in schema.columns.items()}
    return schema.cls(**columns)


def read_batches(schema: TableSchema[T], data: bytes) -> Iterator[Any]:
    """Yield the table in ``data`` as Arrow record batches of up to ``GROUP_ROWS`` rows, each checked, none with a null.

    Raises:
        InputError: as :func:`load_table`; the number of rows is only known to be right after the last batch.
    """
    rows = check_footer(data, _physical(schema), schema.max_rows)
    reader = _guarded(lambda: _open(data, schema))
    _check_arrow_schema(_guarded(lambda: reader.schema_arrow), _arrow_types(schema))
    batches = _guarded(lambda: reader.iter_batches(batch_size=GROUP_ROWS, use_threads=False))
    seen = 0
    while (batch := _guarded(lambda: next(batches, None))) is not None:
        _guarded(lambda checked=batch: checked.validate(full=True))  # type: ignore[misc]
        for name in schema.columns:
            _refuse_nulls(name, batch.column(name))
        seen += batch.num_rows
        yield batch
    _require_rows(rows, seen)


def _require_rows(promised: int, seen: int) -> None:
    if seen != promised:
        message = "rows are not those promised"
        raise InputError(Issue("$", "row_count", message, f"{promised} rows", f"{seen} rows"))


def _open(data: bytes, schema: TableSchema[T]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        pa.BufferReader(data),
        read_dictionary=[name for name, kind in _physical(schema).items() if kind == _TEXT],
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


def _from_arrow(name: str, kind: Kind, column: Any) -> Column:
    import pyarrow as pa

    for chunk in column.chunks:
        _refuse_nulls(name, chunk)
    if pa.types.is_dictionary(column.type):
        return tuple(value for chunk in column.chunks for value in _texts(name, kind, chunk))
    values = array("q")
    for chunk in column.cast(pa.int64()).chunks:
        buffer = chunk.buffers()[1]
        if len(chunk):
            values.frombytes(memoryview(buffer)[8 * chunk.offset : 8 * (chunk.offset + len(chunk))])
    return values


def _refuse_nulls(name: str, values: Any) -> None:
    # The decoded arrays are asked, not the footer's null_count, which anyone can write.
    if values.null_count:
        raise InputError(Issue(f"$.{name}", "null_value", "null in a column that has none", "a value in every row"))


def _texts(column: str, kind: Kind, chunk: Any) -> list[str]:
    if len(chunk.dictionary) > _most(kind):
        raise _word_error(column, kind, f"{len(chunk.dictionary)} different values")
    words = _guarded(chunk.dictionary.to_pylist)
    _check_names(column, kind, words)
    return [words[code] for code in chunk.indices.to_pylist()]


def _most(kind: Kind) -> int:
    return len(kind.words) if isinstance(kind, Words) else kind.most if isinstance(kind, Names) else 0


def _check_names(column: str, kind: Kind, words: Sequence[str]) -> None:
    """Refuse words that are not of the column's list, and names that are too many, too long or not printable."""
    if len(words) > _most(kind):
        raise _word_error(column, kind, f"{len(words)} different values")
    for word in words:
        if isinstance(kind, Words):
            fits = word in kind.words
        else:
            least = 0 if isinstance(kind, Names) and kind.blank else 1
            fits = type(word) is str and least <= len(word) <= MAX_NAME_CHARACTERS and word.isprintable()
        if not fits:
            raise _word_error(column, kind, word)


def _word_error(column: str, kind: Kind, got: object) -> InputError:
    message = f"not {kind.noun}" if isinstance(kind, Words) else "text refused"
    expected = (
        ", ".join(kind.words) if isinstance(kind, Words) else f"printable text of 1 to {MAX_NAME_CHARACTERS} characters"
    )
    return InputError(Issue(f"$.{column}", "invalid_value", message, expected, escape(str(got), 80)))
