"""Many scenarios, one a line: each line gives a plan or a named error with the line's number, and the rest goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import BinaryIO

import attrs

from moeplan.errors import InputError, Issue, MoeplanError
from moeplan.model.plan import Plan, Scenario
from moeplan.model.registry import Registry
from moeplan.planning.builder import plan
from moeplan.planning.export import plan_bytes
from moeplan.planning.scenario import in_scenario_keys, parse_scenario
from moeplan.wire.strict_json import parse_strict

__all__ = ["MAX_LINE_BYTES", "Batch", "Chunk", "plan_chunk", "read_chunks"]

MAX_LINE_BYTES = 64 << 10
"""Longest line accepted, in bytes; a scenario takes about 300."""

_CHUNK_LINES = 512


@attrs.frozen
class Chunk:
    """Consecutive lines of the input; None stands for one that was too long."""

    first_line: int
    lines: tuple[bytes | None, ...]


@attrs.frozen
class Batch:
    """What a chunk became: output lines, and how many of them are errors."""

    data: bytes
    errors: int


def read_chunks(stream: BinaryIO) -> Iterator[Chunk]:
    """Yield the lines of a stream in chunks, in bounded memory."""
    number, lines = 1, list[bytes | None]()
    while line := stream.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            while (rest := stream.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
                pass
            lines.append(None)
        else:
            lines.append(line)
        if len(lines) == _CHUNK_LINES:
            yield Chunk(number, tuple(lines))
            number, lines = number + len(lines), []
    if lines:
        yield Chunk(number, tuple(lines))


def plan_chunk(registry: Registry, chunk: Chunk, form: str, envelope: bool = False, *, alone: bool = False) -> Batch:
    """Return one output line for each line of ``chunk``: a plan in ``form``, or an error; none raises.

    Args:
        registry: the registry to plan with.
        chunk: the lines and the number of the first.
        form: as in :func:`moeplan.planning.export.plan_bytes`.
        envelope: as there.
        alone: this process runs no other thread. A plan's parts are then not validated one by one, a third of the
            work: they are made of a scenario and a registry that were. The plans are the same.
    """
    make = _plan_unchecked if alone else plan
    results = [_plan_line(make, registry, line, form, envelope) for line in chunk.lines]
    errors = 0
    parts: list[bytes] = []
    for number, result in enumerate(results, chunk.first_line):
        if isinstance(result, bytes):
            parts.append(result)
        else:
            errors += 1
            parts.append(_error_line(result, number))
    return Batch(b"".join(parts), errors)


def _plan_unchecked(registry: Registry, scenario: Scenario) -> Plan:
    """Return the plan without validating its parts; attrs' switch holds for the whole process."""
    attrs.validators.set_disabled(True)
    try:
        return plan(registry, scenario)
    finally:
        attrs.validators.set_disabled(False)


def _plan_line(
    make: Callable[[Registry, Scenario], Plan], registry: Registry, line: bytes | None, form: str, envelope: bool
) -> bytes | MoeplanError:
    try:
        if line is None:
            raise InputError(Issue("$", "too_large", "line too long", f"at most {MAX_LINE_BYTES} bytes"))
        if not line.strip():
            raise InputError(Issue("$", "empty_line", "line is empty", "one JSON object"))
        scenario = parse_scenario(parse_strict(line, max_bytes=MAX_LINE_BYTES + 1))
        return plan_bytes(make(registry, scenario), form, envelope=envelope)
    except MoeplanError as error:
        return in_scenario_keys(error)


def _error_line(error: MoeplanError, number: int) -> bytes:
    value = error.to_json()
    value["error"]["line"] = number
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "backslashreplace") + b"\n"
