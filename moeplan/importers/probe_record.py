"""Records of an in-engine probe: JSON Lines by the format that ``moeplan-vllm-probe`` publishes, read strictly.

Source: ``plugins/moeplan-vllm-probe/moeplan_vllm_probe/schema/probe-record-1.schema.json``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.tool_json import parse_tool_json
from moeplan.units import NS_PER_S

__all__ = ["FORMAT", "KINDS", "MAX_RECORD_BYTES", "ProbeRecord", "check_group", "looks_like_probe", "read_probe_record"]

FORMAT = "moeplan-probe-record"
KINDS = ("weights", "experts", "memory")
MAX_RECORD_BYTES = 2 << 30
_VERSION = 1
_MOST_EXPERTS = 100_000
_MOST_RANKS = 100_000
_CLOCK_STEP_NS = NS_PER_S
"""How far the wall clock may move against the monotonic one within a record."""
_PARTS = (("dataParallel", "dp"), ("pipelineParallel", "pp"), ("tensorParallel", "tp"))
_INSTANT = re.compile(r"[0-9]{1,19}")


@attrs.frozen
class ProbeRecord:
    """One process's record of one kind.

    Attributes:
        name: the file's name, for messages.
        kind: one of :data:`KINDS`.
        header: the header line.
        lines: the lines after it, in order.
        origin_ns: instant of the lines' ``timeNs`` 0, nanoseconds since 1970.
        engine_start_ns: when the engine's first process started, nanoseconds since 1970; None where it is not known.
        rank: the process's place in the engine, such as ``tp0`` or ``dp1-tp3``.
    """

    name: str
    kind: str
    header: dict[str, Any]
    lines: tuple[dict[str, Any], ...]
    origin_ns: int
    engine_start_ns: int | None
    rank: str

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Return the lines of a type."""
        return [line for line in self.lines if line["type"] == kind]

    def refused(self, code: str, message: str, expected: str | None = None, step: str | None = None) -> InputError:
        """Return the error that this record cannot be taken."""
        return InputError(Issue(escape(self.name, 200), code, message, expected, None, step))


def looks_like_probe(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a probe's record."""
    return head.startswith(b'{"type":"header","format":"moeplan-probe-record"')


def read_probe_record(name: str, data: bytes) -> ProbeRecord:
    """Return a record. A last line without its line feed is what a killed process left, and is no line.

    Raises:
        InputError: no record, of another version, lines missing or moved, a fault that the probe wrote of itself, or
            a wall clock that was set while it wrote.
    """
    if len(data) > MAX_RECORD_BYTES:
        got = f"{len(data)} bytes"
        raise InputError(Issue(escape(name, 200), "too_large", "record too large", f"{MAX_RECORD_BYTES} bytes", got))
    rows = data.split(b"\n")[:-1]
    lines = [_line(name, number, row) for number, row in enumerate(rows, 1)]
    if not lines or lines[0]["type"] != "header" or lines[0].get("format") != FORMAT:
        raise _error(name, 1, "not_a_probe_record", "no header of a probe's record", f'"format": "{FORMAT}"')
    header = lines[0]
    if header.get("formatVersion") != _VERSION or header.get("kind") not in KINDS:
        raise _error(name, 1, "unsupported_version", "a record of another version", f"version {_VERSION}, a known kind")
    _check_sequence(name, lines)
    _check_header(name, header)
    origin = _instant(name, header, "origin", "wallNs")
    record = ProbeRecord(
        name=name,
        kind=header["kind"],
        header=header,
        lines=tuple(lines[1:]),
        origin_ns=origin,
        engine_start_ns=_instant(name, header, "engineProcess", "startedWallNs", optional=True) or None,
        rank=_rank(name, header),
    )
    _check_lines(record)
    return record


def check_group(records: Iterable[ProbeRecord], kind: str) -> tuple[ProbeRecord, ...]:
    """Return the records of one kind in order of rank, after a look that they are all those of one engine start.

    Raises:
        InputError: none, of several engine starts, a rank twice, or a rank of the engine that is not there.
    """
    found = sorted((record for record in records if record.kind == kind), key=lambda record: record.rank)
    if not found:
        raise InputError(Issue("$", "missing_record", f"no record of kind {kind}", "one of each rank"))
    first = found[0]
    if any(_engine(record) != _engine(first) for record in found):
        raise first.refused("engines_differ", "records of several engine starts", "those of one", "import them apart")
    ranks = [record.rank for record in found]
    if len(set(ranks)) != len(ranks):
        raise first.refused("rank_twice", "two records of one rank", "one of each rank")
    world = 1
    for part, _short in _PARTS:
        world *= (first.header["rank"].get(part) or {}).get("size", 1)
    if len(found) != world:
        message = f"{len(found)} of the engine's {world} ranks"
        raise first.refused("rank_missing", message, f"{world} records", "give every record of the probe's directory")
    return tuple(found)


def _engine(record: ProbeRecord) -> tuple[object, ...]:
    sizes = tuple((record.header["rank"].get(part) or {}).get("size", 1) for part, _short in _PARTS)
    return record.engine_start_ns, record.header["engine"].get("version"), sizes


def _line(name: str, number: int, row: bytes) -> dict[str, Any]:
    try:
        value = parse_tool_json(row)
    except InputError as error:
        raise InputError(*(issue.under(f"{escape(name, 200)}: line {number}: $") for issue in error.issues)) from None
    if type(value) is not dict or type(value.get("type")) is not str:
        raise _error(name, number, "wrong_type", "no line of a record", "an object with a type")
    return value


def _check_header(name: str, header: dict[str, Any]) -> None:
    """Refuse parts of a header that are not what the format says; parts that may be missing become empty."""
    for key in ("engine", "rank", "loader", "switches", "probe"):
        if type(header.setdefault(key, {})) is not dict:
            raise _error(name, 1, "wrong_type", f"{key} is no object", "the published format")
    layers = header.setdefault("layers", [])
    if type(layers) is not list or not all(_is_layer(layer) for layer in layers):
        step = "name, experts, topK, draft and hashRouted of each"
        raise _error(name, 1, "wrong_type", "layers are not those of the published format", step)
    if len({layer["layer"] for layer in layers}) != len(layers) or len({layer["name"] for layer in layers}) < len(
        layers
    ):
        raise _error(name, 1, "layer_twice", "two layers of one number or name", "each once")


def _is_layer(value: Any) -> bool:
    if type(value) is not dict or type(value.get("name")) is not str or not 0 < len(value["name"]) <= 200:
        return False
    counts = [value.get(key) for key in ("layer", "experts", "topK")]
    if not all(type(count) is int and 0 <= count <= _MOST_EXPERTS for count in counts) or 0 in counts[1:]:
        return False
    dropped = value.get("dropped")
    return dropped is None or (
        type(dropped) is dict
        and type(dropped.get("count")) is int
        and dropped["count"] >= 0
        and type(dropped.get("basis")) is str
        and 0 < len(dropped["basis"]) <= 200
    )


def _check_sequence(name: str, lines: list[dict[str, Any]]) -> None:
    for number, line in enumerate(lines[1:]):
        if line.get("seq") != number:
            raise _error(name, number + 2, "lines_missing", "lines are missing or moved", f"line with seq {number}")


def _check_lines(record: ProbeRecord) -> None:
    for number, line in enumerate(record.lines, 2):
        if type(line.get("timeNs")) is not int or line["timeNs"] < 0:
            raise _error(record.name, number, "wrong_type", "no time", "timeNs, nanoseconds from the origin")
        wall = _instant(record.name, line, "wallNs")
        if abs(wall - record.origin_ns - line["timeNs"]) > _CLOCK_STEP_NS:
            raise _error(
                record.name, number, "clock_stepped", "the wall clock was set meanwhile", "at most 1 s of drift"
            )
        if line["type"] == "fault":
            code, message = escape(str(line.get("code")), 80), escape(str(line.get("message")), 300)
            step = "put right what it names and start the engine again"
            raise _error(
                record.name, number, "probe_fault", f"the probe could not see all: {code}: {message}", None, step
            )


def _rank(name: str, header: dict[str, Any]) -> str:
    parts = []
    for part, short in _PARTS:
        group = header["rank"].get(part) or {"rank": 0, "size": 1}
        whole = type(group) is dict and all(type(group.get(key)) is int for key in ("rank", "size"))
        if not whole or not 0 <= group["rank"] < group["size"] <= _MOST_RANKS:
            raise _error(name, 1, "out_of_range", f"no rank of {part}", "rank below size")
        if group["size"] > 1 or short == "tp":
            parts.append(f"{short}{group['rank']}")
    return "-".join(parts)


def _instant(name: str, value: dict[str, Any], *path: str, optional: bool = False) -> int:
    found: Any = value
    for key in path:
        found = found.get(key) if type(found) is dict else None
    if found is None and optional:
        return 0
    if type(found) is not str or _INSTANT.fullmatch(found) is None:
        raise _error(name, 1, "invalid_instant", f"{'.'.join(path)} is no instant", "nanoseconds since 1970, as text")
    return int(found)


def _error(
    name: str, number: int, code: str, message: str, expected: str | None = None, step: str | None = None
) -> InputError:
    return InputError(Issue(f"{escape(name, 200)}: line {number}", code, message, expected, None, step))
