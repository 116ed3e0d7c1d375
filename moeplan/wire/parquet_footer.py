"""What a Parquet file promises, checked before anything of it is decoded: shape, sizes, coverage; never statistics.

Source: Apache Parquet format, ``parquet.thrift``; the numbers below are its field numbers and enumerators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.wire.thrift_compact import parse_struct

__all__ = ["MAX_FILE_BYTES", "check_footer"]

MAX_FILE_BYTES = 1 << 30
"""Cap on a table's file in bytes."""
MAX_FOOTER_BYTES = 1 << 20
MAX_EXPANSION = 100
"""Most bytes a file may decode to for each byte it has, where it is more than :data:`FREE_BYTES`.

Honest nanosecond columns do not shrink below a tenth; run lengths can stand for 10^9 rows in ten bytes.
"""
FREE_BYTES = 64 << 20
BYTES_PER_VALUE = 8

_MAGIC = b"PAR1"
_TYPES = {0: "BOOLEAN", 1: "INT32", 2: "INT64", 3: "INT96", 4: "FLOAT", 5: "DOUBLE", 6: "BYTE_ARRAY"}
_REQUIRED, _OPTIONAL = 0, 1
_UTF8, _INT_64 = 0, 18
_LOGICAL_STRING, _LOGICAL_INTEGER = 1, 10
_CODECS = {0: "UNCOMPRESSED", 1: "SNAPPY"}
_AGAIN = "write it again with moeplan, or leave the file out"

T = TypeVar("T")


@attrs.frozen
class _Chunk:
    start: int
    size: int


def _error(path: str, code: str, message: str, expected: object, got: object) -> InputError:
    return InputError(Issue(path, code, message, str(expected), escape(str(got), 80), _AGAIN))


def check_footer(data: bytes, columns: Mapping[str, str], max_rows: int) -> int:
    """Refuse a file whose footer is not that of exactly one table of ``columns``, or promises more than it may.

    Every byte of the file must belong to the magic words, a column chunk or the footer.

    Args:
        data: the whole file.
        columns: name → physical type (``INT64``, ``BOOLEAN``, ``BYTE_ARRAY``), in order.
        max_rows: most rows accepted.

    Returns:
        The number of rows promised.

    Raises:
        InputError: with the first fault.
    """
    start = _footer_start(data)
    footer, length = parse_struct(data[start:-8])
    if {8, 9} & set(footer):
        raise _error("$", "encrypted_column", "encrypted Parquet", "a file without encryption", "encryption algorithm")
    if start + length + 8 != len(data):
        raise _error("$", "uncovered_bytes", "bytes after the footer's end", f"{length} bytes", len(data) - start - 8)
    _check_schema(_get("$", footer, 2, list), columns)
    rows = _get("$", footer, 3, int)
    _check_rows(rows, BYTES_PER_VALUE * len(columns), start, max_rows)
    chunks: list[_Chunk] = []
    total = 0
    for group in _get("$", footer, 4, list):
        count, found = _row_group(group, columns)
        total += count
        chunks += found
    if total != rows:
        raise _error("$", "row_count", "row groups do not add up", f"{rows} rows", f"{total} rows")
    _check_coverage(sorted(chunks, key=lambda chunk: chunk.start), start)
    return rows


def _footer_start(data: bytes) -> int:
    if len(data) > MAX_FILE_BYTES:
        raise _error("$", "too_large", "table file too large", f"at most {MAX_FILE_BYTES} bytes", f"{len(data)} bytes")
    if b"PARE" in (data[:4], data[-4:]):
        raise _error("$", "encrypted_column", "encrypted Parquet", "a file without encryption", "PARE")
    if len(data) < 12 or data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise _error("$", "not_parquet", "not a whole Parquet file", "PAR1 at both ends", f"{len(data)} bytes")
    length = int.from_bytes(data[-8:-4], "little")
    most = min(len(data) - 12, MAX_FOOTER_BYTES)
    if not 0 < length <= most:
        raise _error("$", "not_parquet", "footer does not fit", f"1 to {most} bytes", f"{length} bytes")
    return len(data) - 8 - length


def _get(path: str, struct: Any, number: int, wanted: type[T]) -> T:
    value = struct.get(number) if type(struct) is dict else None
    if type(value) is not wanted:
        got = f"field {number} {'missing' if value is None else 'of another type'}"
        raise _error(path, "not_parquet", "malformed footer", f"field {number}", got)
    return value


def _check_schema(elements: Sequence[Any], columns: Mapping[str, str]) -> None:
    if not elements or _get("$", elements[0], 5, int) != len(elements) - 1:
        raise _error("$", "wrong_columns", "not a flat table", ", ".join(columns), f"{len(elements)} schema elements")
    names = [_get("$", element, 4, bytes).decode("utf-8", "replace") for element in elements[1:]]
    if names != list(columns):
        raise _error("$", "wrong_columns", "not the table's columns", ", ".join(columns), ", ".join(names)[:400])
    for element, (name, physical) in zip(elements[1:], columns.items(), strict=True):
        at = f"$.{name}"
        if element.get(5, 0) != 0 or element.get(3) not in (_REQUIRED, _OPTIONAL):
            raise _error(at, "wrong_column_type", "nested column", "a flat column", "a group or a repeated column")
        got = _TYPES.get(_get(at, element, 1, int), "another type")
        logical = _get(at, element, 10, dict) if 10 in element else None
        if got != physical or not _annotation_fits(element.get(6), logical, physical):
            shown = f"{got}, converted {element.get(6)}, logical {sorted(logical or ())}"
            raise _error(at, "wrong_column_type", "column of another type", physical, shown)


def _annotation_fits(converted: object, logical: Mapping[int, Any] | None, physical: str) -> bool:
    if physical == "BYTE_ARRAY":
        return converted in (None, _UTF8) and (logical is None or list(logical) == [_LOGICAL_STRING])
    if physical == "INT64" and logical is not None:
        integer = logical.get(_LOGICAL_INTEGER) if list(logical) == [_LOGICAL_INTEGER] else None
        return converted in (None, _INT_64) and integer == {1: b"\x40", 2: True}
    return converted in ((None, _INT_64) if physical == "INT64" else (None,)) and logical is None


def _check_rows(rows: int, width: int, size: int, max_rows: int) -> None:
    if not 0 <= rows <= max_rows:
        raise _error("$", "too_many_rows", "too many rows", f"at most {max_rows}", rows)
    most = max(FREE_BYTES, MAX_EXPANSION * size) // width
    if rows > most:
        raise _error("$", "decompression_bomb", "far more rows than bytes", f"at most {most} rows", rows)


def _row_group(group: Any, columns: Mapping[str, str]) -> tuple[int, list[_Chunk]]:
    rows, found = _get("$", group, 3, int), _get("$", group, 1, list)
    if rows < 0 or len(found) != len(columns):
        got = f"{len(found)} columns, {rows} rows"
        raise _error("$", "wrong_columns", "malformed row group", f"{len(columns)} columns", got)
    return rows, [_chunk(chunk, name, columns[name], rows) for chunk, name in zip(found, columns, strict=True)]


def _chunk(chunk: Any, name: str, physical: str, rows: int) -> _Chunk:
    at = f"$.{name}"
    if type(chunk) is dict and {8, 9} & set(chunk):
        raise _error(at, "encrypted_column", "encrypted column", "a column without encryption", "crypto metadata")
    metadata = _get(at, chunk, 3, dict)
    if 1 in chunk:
        raise _error(at, "external_column", "column in another file", "no file_path", chunk[1])
    if metadata.get(3) != [name.encode()] or _TYPES.get(_get(at, metadata, 1, int)) != physical:
        raise _error(at, "wrong_columns", "chunk of another column", name, metadata.get(3))
    codec = _get(at, metadata, 4, int)
    if codec not in _CODECS:
        raise _error(at, "wrong_compression", "codec not accepted", " or ".join(_CODECS.values()), f"codec {codec}")
    if _get(at, metadata, 5, int) != rows:
        raise _error(at, "row_count", "values are not the rows", rows, metadata[5])
    first, size = _get(at, metadata, 9, int), _get(at, metadata, 7, int)
    # A dictionary page, where there is one, comes before the data pages.
    return _Chunk(_get(at, metadata, 11, int) if 11 in metadata else first, size)


def _check_coverage(chunks: Sequence[_Chunk], end: int) -> None:
    position = len(_MAGIC)
    for chunk in chunks:
        if chunk.size == 0:
            continue
        if chunk.start != position or chunk.size < 0:
            raise _error(
                "$", "uncovered_bytes", "bytes that belong to no column", f"a chunk at {position}", chunk.start
            )
        position += chunk.size
    if position != end:
        raise _error("$", "uncovered_bytes", "bytes that belong to no column", f"a footer at {position}", end)
