"""Thrift's compact protocol, read only and bounded: enough for a Parquet footer.

pyarrow ends the whole process on some malformed footers (a column chunk without metadata, for one), so none reaches it
unread.
"""

from __future__ import annotations

from typing import Any

from moeplan.errors import InputError, Issue

__all__ = ["parse_struct"]

_MAX_DEPTH = 16
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


def parse_struct(data: bytes) -> tuple[dict[int, Any], int]:
    """Return the struct at the head of ``data``, and its length in bytes.

    The struct maps field numbers to int, bool, bytes (also for doubles, 8, and single bytes, 1), list or dict.

    Source: Apache Thrift, "Thrift Compact protocol encoding".

    Raises:
        InputError: code ``not_parquet``: truncated, too deep, a repeated field, or an unknown type.
    """
    reader = _Reader(data)
    return reader.struct(0), reader.position


def _error(message: str, got: str) -> InputError:
    return InputError(Issue("$", "not_parquet", message, "one Thrift struct", got, "the file is damaged or forged"))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.data):
            raise _error("footer is cut short", f"{len(self.data)} bytes")
        part = self.data[self.position : end]
        self.position = end
        return part

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _error("integer too long in the footer", f"at byte {self.position}")

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while (head := self.take(1)[0]) != 0:
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            if number in fields:
                raise _error("field given twice in the footer", str(number))
            kind = head & 0x0F
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self.value(kind, depth + 1)
        return fields

    def value(self, kind: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _error("footer nested too deep", f"{depth} levels")
        if kind in (_TRUE, _FALSE):
            return self.take(1)[0] == _TRUE
        if kind in (_BYTE, _DOUBLE):
            return self.take(1 if kind == _BYTE else 8)
        if kind in (_I16, _I32, _I64):
            return self.zigzag()
        if kind == _BINARY:
            return self.take(self.varint())
        if kind in (_LIST, _SET):
            return self.sequence(depth)
        if kind == _MAP:
            return self.mapping(depth)
        if kind == _STRUCT:
            return self.struct(depth)
        raise _error("unknown type in the footer", str(kind))

    def sequence(self, depth: int) -> list[Any]:
        head = self.take(1)[0]
        count = head >> 4 if head >> 4 != 15 else self.varint()
        self.check_count(count)
        return [self.value(head & 0x0F, depth + 1) for _ in range(count)]

    def mapping(self, depth: int) -> list[tuple[Any, Any]]:
        count = self.varint()
        self.check_count(count)
        kinds = self.take(1)[0] if count else 0
        return [(self.value(kinds >> 4, depth + 1), self.value(kinds & 0x0F, depth + 1)) for _ in range(count)]

    def check_count(self, count: int) -> None:
        if count > len(self.data) - self.position:
            raise _error("more items than bytes in the footer", str(count))
