"""A probe's counts of expert selections -> ``expert_counts``: ranks added up, each token once."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import attrs

from moeplan.errors import InputError, escape
from moeplan.importers.probe_record import ProbeRecord, check_group
from moeplan.model.observations import EngineCounters, ExpertCounts, ExpertLayer
from moeplan.model.series import ExpertCountTable
from moeplan.units import MAX_SAFE_INTEGER, NS_PER_S

__all__ = ["CountedExperts", "counted_experts"]

_NUMBER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.([0-9]{1,5})(?:\.|$)")
"""Where a layer's number stands in its name."""


@attrs.frozen
class CountedExperts:
    """What an evidence record of expert selections is made of.

    Attributes:
        payload: the record's payload.
        table: a row an interval, layer and expert that was selected; times from the whole second of ``start_ns``.
        start_ns: start of the first interval, nanoseconds since 1970.
        end_ns: end of the last.
        tokens: tokens that the scheduler gave to the counted steps, once for each data-parallel rank.
        strays: ids that named no expert: shared experts of some kernels, or rows that could not be attributed.
        engine_start_ns: when the engine's first process started; None where it is not known.
        engine_version: the engine's own word.
        probe_version: the probe's own word.
    """

    payload: ExpertCounts
    table: ExpertCountTable
    start_ns: int
    end_ns: int
    tokens: int
    strays: int
    engine_start_ns: int | None
    engine_version: str
    probe_version: str


@attrs.frozen
class _Span:
    """The whole intervals of one rank."""

    start_ns: int
    end_ns: int
    tokens: int
    layers: dict[int, list[int]]
    strays: int


def counted_experts(
    records: Iterable[ProbeRecord],
    counters: EngineCounters | None = None,
    between: tuple[int, int] | None = None,
) -> CountedExperts:
    """Return the selections of one engine start.

    Args:
        records: the records of all ranks.
        counters: growth of the engine's own counters over the same span.
        between: take only intervals within these instants, nanoseconds since 1970; None takes all.

    Raises:
        InputError: ranks are missing (see :func:`check_group`) or their layers differ, no self-test, counts do
            not add up, an interval with selections lies across an end of the span, or none lies within.
    """
    found = check_group(records, "experts")
    layers, numbers = _layers(found)
    taken = _once_each_token(found)
    spans = {record.rank: _spans(record, numbers, layers, between) for record in taken}
    grid = next(iter(spans.values()))
    if not grid:
        raise found[0].refused("no_intervals", "no interval lies in the span", "one or more")
    origin = min(span.start_ns for each in spans.values() for span in each)
    end = max(span.end_ns for each in spans.values() for span in each)
    selections = _merged(grid, spans.values())
    if any(count > MAX_SAFE_INTEGER for each in selections for counts in each.values() for count in counts):
        raise found[0].refused("out_of_range", "more selections than a count holds", f"at most {MAX_SAFE_INTEGER}")
    table = _table(grid, selections, origin // NS_PER_S * NS_PER_S)
    every = [span for each in spans.values() for span in each]
    return CountedExperts(
        payload=ExpertCounts(
            layers=layers,
            ranks=tuple(record.rank for record in taken),
            interval_count=len(grid),
            counters=counters,
            row_count=len(table),
        ),
        table=table,
        start_ns=origin,
        end_ns=end,
        tokens=_tokens(taken, spans),
        strays=sum(span.strays for span in every),
        engine_start_ns=found[0].engine_start_ns,
        engine_version=str(found[0].header["engine"].get("version", "")),
        probe_version=str(found[0].header["probe"].get("version", "")),
    )


def _tokens(taken: list[ProbeRecord], spans: dict[str, list[_Span]]) -> int:
    """Return the scheduler's tokens: every rank of a data-parallel rank is given the same ones."""
    firsts = {_part(record, "dataParallel"): record.rank for record in reversed(taken)}
    return sum(span.tokens for rank in firsts.values() for span in spans[rank])


def _part(record: ProbeRecord, part: str) -> int:
    group = record.header["rank"].get(part)
    return int(group["rank"]) if group else 0


def _once_each_token(found: tuple[ProbeRecord, ...]) -> list[ProbeRecord]:
    """Return the records whose counts add up to each token once: ranks of one tensor group see the same tokens."""
    if found[0].header.get("tokens") == "shard":
        return list(found)
    for record in found:
        twin = next(
            other
            for other in found
            if all(_part(other, part) == _part(record, part) for part in ("dataParallel", "pipelineParallel"))
        )
        if _total_tokens(twin) != _total_tokens(record):
            raise record.refused("ranks_differ", "ranks of one group counted different tokens", "the same tokens")
    return [record for record in found if _part(record, "tensorParallel") == 0]


def _total_tokens(record: ProbeRecord) -> int:
    return sum(_count(record, line, "tokens") for line in record.of_type("counts"))


def _layers(found: tuple[ProbeRecord, ...]) -> tuple[tuple[ExpertLayer, ...], dict[str, int]]:
    """Return all layers in order of number, and the number of each by its name."""
    by_name: dict[str, dict[str, Any]] = {}
    for record in found:
        for layer in record.header["layers"]:
            known = by_name.setdefault(layer["name"], layer)
            if (known.get("experts"), known.get("topK")) != (layer.get("experts"), layer.get("topK")):
                raise record.refused("layers_differ", f"layer {escape(str(layer.get('name')), 200)} is not that of all")
    if not by_name:
        raise found[0].refused("no_layers", "the record names no layer", "one or more with experts")
    ordered = sorted(by_name.values(), key=lambda layer: (bool(layer.get("draft")), _number(layer)))
    numbers: dict[str, int] = {}
    for layer in ordered:
        number = _number(layer)
        numbers[layer["name"]] = number if number not in numbers.values() else max(numbers.values()) + 1
    ordered.sort(key=lambda layer: numbers[layer["name"]])
    return tuple(_layer(layer, numbers[layer["name"]]) for layer in ordered), numbers


def _number(layer: dict[str, Any]) -> int:
    match = _NUMBER.search(layer["name"])
    return int(match[1]) if match else int(layer["layer"])


def _layer(layer: dict[str, Any], number: int) -> ExpertLayer:
    dropped = layer.get("dropped") or {}
    return ExpertLayer(
        number=number,
        name=layer["name"],
        experts=layer["experts"],
        top_k=layer["topK"],
        drafter=bool(layer.get("draft")),
        hash_routed=bool(layer.get("hashRouted")),
        dropped_tokens=dropped.get("count"),
        dropped_basis=dropped.get("basis"),
    )


def _spans(
    record: ProbeRecord, numbers: dict[str, int], layers: tuple[ExpertLayer, ...], between: tuple[int, int] | None
) -> list[_Span]:
    """Return a record's intervals within the span, after a look that they add up."""
    if not record.of_type("selfTest"):
        raise record.refused("self_test_missing", "the probe did not test its counters", "a line of type selfTest")
    experts = {layer.number: layer.experts for layer in layers}
    names = {layer["layer"]: numbers[layer["name"]] for layer in record.header["layers"]}
    found, totals = list[_Span](), defaultdict[int, int](int)
    for line in record.of_type("counts"):
        span = _span(record, line, names, experts, totals)
        if between is None or (between[0] <= span.start_ns and span.end_ns <= between[1]):
            found.append(span)
        elif span.layers and span.start_ns < between[1] and between[0] < span.end_ns:
            message = f"selections were counted across an end of the span, seq {line['seq']}"
            raise record.refused("interval_straddles", message, None, "leave the engine idle for two intervals there")
    return found


def _span(
    record: ProbeRecord,
    line: dict[str, Any],
    names: dict[int, int],
    experts: dict[int, int],
    totals: dict[int, int],
) -> _Span:
    start, end, strays = _count(record, line, "startNs"), _count(record, line, "endNs"), 0
    selections: dict[int, list[int]] = {}
    rows = line.get("layers")
    if type(rows) is not list or not all(type(row) is dict for row in rows):
        raise _wrong(record, line, "layers that are none")
    for row in rows:
        place, counts = row.get("layer"), row.get("selections")
        number = names.get(place) if type(place) is int else None
        if number is None or number in selections or type(counts) is not list or len(counts) != experts[number]:
            raise _wrong(record, line, "a layer or its experts are not those of the header")
        if any(type(count) is not int or count < 0 for count in counts):
            raise _wrong(record, line, "a count that is none")
        totals[number] += sum(counts)
        if row.get("total") != totals[number]:
            raise _wrong(record, line, "the selections do not add up to the total beside them")
        strays += _count(record, row, "strays")
        selections[number] = counts
    if start >= end:
        raise _wrong(record, line, "an interval that ends before it starts")
    origin = record.origin_ns
    return _Span(origin + start, origin + end, _count(record, line, "tokens"), selections, strays)


def _count(record: ProbeRecord, line: dict[str, Any], key: str) -> int:
    value = line.get(key)
    if type(value) is not int or value < 0:
        raise record.refused("wrong_type", f"{key} is no count", "an integer, 0 or more")
    return value


def _wrong(record: ProbeRecord, line: dict[str, Any], message: str) -> InputError:
    return record.refused("counts_contradict", f"{message}, seq {line['seq']}", "the lines as the probe wrote them")


def _merged(grid: list[_Span], ranks: Iterable[list[_Span]]) -> list[dict[int, list[int]]]:
    """Return the selections by interval of the first rank; an interval of another goes where its middle lies."""
    starts = [span.start_ns for span in grid]
    merged: list[dict[int, list[int]]] = [{} for _span in grid]
    for spans in ranks:
        for span in spans:
            at = max(0, bisect_right(starts, (span.start_ns + span.end_ns) // 2) - 1)
            for number, counts in span.layers.items():
                before = merged[at].get(number, [0] * len(counts))
                merged[at][number] = [one + other for one, other in zip(before, counts, strict=True)]
    return merged


def _table(grid: list[_Span], selections: list[dict[int, list[int]]], origin: int) -> ExpertCountTable:
    columns: tuple[array[int], ...] = tuple(array("q") for _column in range(6))
    for interval, (span, layers) in enumerate(zip(grid, selections, strict=True)):
        for number in sorted(layers):
            for expert, count in enumerate(layers[number]):
                if count:
                    row = (interval, span.start_ns - origin, span.end_ns - origin, number, expert, count)
                    for column, value in zip(columns, row, strict=True):
                        column.append(value)
    return ExpertCountTable(*columns)
