"""A probe's digests of the weights as loaded -> ``loaded_bytes``."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from typing import Any

import attrs

from moeplan.errors import InputError, escape
from moeplan.importers.probe_record import ProbeRecord, check_group
from moeplan.model.observations import LoadedBytes
from moeplan.model.series import TensorDigestTable

__all__ = ["LoadedWeights", "loaded_weights"]

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@attrs.frozen
class LoadedWeights:
    """What an evidence record of the loaded bytes is made of.

    Attributes:
        payload: the record's payload.
        table: a row a tensor and rank.
        start_ns: when the first tensor was hashed, nanoseconds since 1970.
        end_ns: when the last rank had its model.
        engine_start_ns: when the engine's first process started; None where it is not known.
        engine_version: the engine's own word.
        probe_version: the probe's own word.
    """

    payload: LoadedBytes
    table: TensorDigestTable
    start_ns: int
    end_ns: int
    engine_start_ns: int | None
    engine_version: str
    probe_version: str


def loaded_weights(records: Iterable[ProbeRecord]) -> LoadedWeights:
    """Return the tensors of all ranks of one engine start.

    Raises:
        InputError: ranks are missing (see :func:`check_group`), a record is incomplete, a tensor was hashed twice with
            two digests, or the loader yields no tensors of the checkpoint.
    """
    found = check_group(records, "weights")
    rows = [row for record in found for row in _tensors(record)]
    first = found[0].header
    return LoadedWeights(
        payload=LoadedBytes(
            loader=_loader(found[0]),
            ranks=tuple(record.rank for record in found),
            row_count=len(rows),
            counting=any(record.header["switches"].get("count") is not False for record in found),
        ),
        table=TensorDigestTable(
            rank=tuple(row[0] for row in rows),
            tensor=tuple(row[1] for row in rows),
            bytes=array("q", [row[2] for row in rows]),
            digest=tuple(row[3] for row in rows),
        ),
        start_ns=min(record.origin_ns for record in found),
        end_ns=max(record.origin_ns + record.lines[-1]["timeNs"] for record in found),
        engine_start_ns=found[0].engine_start_ns,
        engine_version=str(first["engine"].get("version", "")),
        probe_version=str(first["probe"].get("version", "")),
    )


def _loader(record: ProbeRecord) -> str:
    loader = record.header["loader"]
    name = str(loader.get("format") or loader.get("class") or "unknown").lower()
    if _IDENTIFIER.fullmatch(name) is None:
        raise record.refused("wrong_type", "the loader's name is none", "letters, digits, '.', '_' and '-'")
    return name


def _tensors(record: ProbeRecord) -> list[tuple[str, str, int, str]]:
    """Return rank, name, bytes and digest of each tensor of a record, in order of name."""
    ends, tensors = record.of_type("end"), record.of_type("tensor")
    if len(ends) != 1 or not tensors:
        raise record.refused("incomplete_record", "the model was not loaded to its end", "a line of type end")
    if ends[0].get("tensors") != len(tensors) or ends[0].get("bytes") != sum(_bytes(record, line) for line in tensors):
        raise record.refused("totals_differ", "the tensors are not those of the totals", "tensors and bytes of the end")
    passes, closed = record.of_type("pass"), record.of_type("passEnd")
    if len(passes) != len(closed) or any(line.get("complete") is not True for line in closed):
        step = "the loader took only a part of the files; load the whole checkpoint"
        raise record.refused("incomplete_record", "an iterator of weights did not come to its end", None, step)
    by_name: dict[str, tuple[str, str, int, str]] = {}
    for line in tensors:
        name = line.get("name")
        digest = line.get("sha256")
        if type(name) is not str or type(digest) is not str or _SHA256.fullmatch(digest) is None:
            raise record.refused("wrong_type", f"a tensor without name or digest, seq {line['seq']}", "both, as text")
        row = (record.rank, name, _bytes(record, line), f"sha256:{digest}")
        if by_name.setdefault(name, row) != row:
            raise _twice(record, line)
    return [by_name[name] for name in sorted(by_name)]


def _bytes(record: ProbeRecord, line: dict[str, Any]) -> int:
    size = line.get("bytes")
    if type(size) is not int or size < 0:
        raise record.refused("wrong_type", f"a tensor without a size, seq {line['seq']}", "bytes, 0 or more")
    return size


def _twice(record: ProbeRecord, line: dict[str, Any]) -> InputError:
    name = escape(repr(line.get("name")), 200)
    message = f"tensor {name} was loaded twice, with two contents"
    return record.refused("tensor_differs", message, "one checkpoint", "hash an engine without a separate draft model")
