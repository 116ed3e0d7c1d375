"""The directory of an in-engine probe -> ``loaded_bytes`` and ``expert_counts`` records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from moeplan.errors import InputError, Issue
from moeplan.importers.given import GivenFile
from moeplan.importers.probe_experts import CountedExperts, counted_experts
from moeplan.importers.probe_record import ProbeRecord, read_probe_record
from moeplan.importers.probe_weights import LoadedWeights, loaded_weights
from moeplan.importers.prometheus import counters_between, read_snapshot
from moeplan.model.evidence import Collector
from moeplan.model.finding import Finding
from moeplan.model.observations import EngineCounters
from moeplan.units import NS_PER_S, format_instant
from moeplan.wire.observation import (
    MadeObservation,
    ObservationContext,
    SideFile,
    enclosing_interval,
    make_observation,
)

__all__ = ["import_probe"]

_VERSION = "1"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")


def import_probe(
    files: Sequence[GivenFile],
    context: ObservationContext,
    *,
    scrapes: tuple[bytes, bytes] | None = None,
    between: tuple[int, int] | None = None,
) -> tuple[list[MadeObservation], tuple[Finding, ...]]:
    """Return a record for the loaded bytes and one for the expert selections, whichever were written. Pure.

    The probe's files are named by digest and not enclosed: their rows are the records' raw tables.

    Args:
        files: the probe's files of one engine start, one a rank and kind; memory files are passed over.
        context: plan and deployment.
        scrapes: the engine's ``/metrics`` before and after the counted span; without them the counts stay unbelieved.
        between: the counted span as instants, nanoseconds since 1970; None takes every interval of the record.

    Raises:
        InputError: as :func:`read_probe_record`, :func:`loaded_weights` and :func:`counted_experts`; nothing to import;
            or scrapes of another engine start.
    """
    given = {file.name: file for file in files}
    records = [read_probe_record(file.name, file.data) for file in files]
    kinds = {record.kind for record in records}
    if not kinds & {"weights", "experts"}:
        raise InputError(
            Issue("FILE", "nothing_to_import", "neither weights nor experts", "a probe's record of either")
        )
    made: list[MadeObservation] = []
    findings: list[Finding] = list(_versions(records))
    if "weights" in kinds:
        loaded = loaded_weights(records)
        made.append(_made(loaded, "tensors", context, _sides(records, given, "weights"), records[0]))
    if "experts" in kinds:
        counters = None if scrapes is None else _counters(records, scrapes)
        counted = counted_experts(records, counters, between)
        made.append(_made(counted, "experts", context, _sides(records, given, "experts", scrapes), records[0]))
        findings += _of_counts(counted)
    return made, tuple(findings)


def _made(
    found: LoadedWeights | CountedExperts,
    table: str,
    context: ObservationContext,
    sides: Sequence[SideFile],
    record: ProbeRecord,
) -> MadeObservation:
    interval, _origin = enclosing_interval(found.start_ns, found.end_ns)
    if found.engine_start_ns is None:
        raise record.refused("engine_start_missing", "the probe did not see when its engine started", "/proc readable")
    return make_observation(
        found.payload,
        {table: found.table},
        context=context,
        collector=Collector(_tool(record), found.probe_version or None, "probe", _VERSION),
        interval=interval,
        engine_start=format_instant(found.engine_start_ns // NS_PER_S),
        side_files=sides,
    )


def _tool(record: ProbeRecord) -> str:
    name = record.header["probe"].get("name")
    if type(name) is not str or _NAME.fullmatch(name) is None:
        raise record.refused("wrong_type", "the probe's name is none", "lower-case letters, digits, '.', '_', '-'")
    return name


def _sides(
    records: Sequence[ProbeRecord],
    given: dict[str, GivenFile],
    kind: str,
    scrapes: tuple[bytes, bytes] | None = None,
) -> list[SideFile]:
    sides = [
        SideFile(
            "tool_output", f"{kind}-{record.rank}.jsonl", given[record.name].data, "jsonl", "application/jsonl", False
        )
        for record in records
        if record.kind == kind
    ]
    if scrapes is not None:
        before, after = scrapes
        sides += [
            SideFile("metrics_before", "metrics-before.prom", before, "prom"),
            SideFile("metrics_after", "metrics-after.prom", after, "prom"),
        ]
    return sides


def _counters(records: Sequence[ProbeRecord], scrapes: tuple[bytes, bytes]) -> EngineCounters:
    """Return the growth of the engine's counters, after a look that they are of the engine that was counted."""
    before, after = (read_snapshot(data) for data in scrapes)
    record = next(record for record in records if record.kind == "experts")
    for snapshot in (before, after):
        if snapshot.started is not None and record.engine_start_ns is not None:
            counted = record.engine_start_ns // NS_PER_S
            if snapshot.started != counted:
                message = f"the scrapes are of the engine started {format_instant(snapshot.started)}"
                raise record.refused("engines_differ", message, format_instant(counted), "scrape the counted engine")
    return counters_between(before, after)


def _versions(records: Sequence[ProbeRecord]) -> Iterator[Finding]:
    untested = [record for record in records if record.header["engine"].get("tested") is not True]
    if untested:
        message = "the probe was not tried with this version of the engine; its hooks were found by name"
        yield Finding("probe_untested", "warning", message, None)
    if any(record.kind == "memory" for record in records):
        yield Finding("memory_passed_over", "info", "records of memory are no part of this import", None)


def _of_counts(counted: CountedExperts) -> Iterator[Finding]:
    if counted.payload.counters is None:
        message = "without --metrics the counts cannot be compared with the engine's own, and are not believed"
        yield Finding("no_counters", "warning", message, None)
    if counted.strays:
        message = f"{counted.strays} selected ids name no expert: shared experts, or rows that could not be attributed"
        yield Finding("strays", "info", message, None)
    yield Finding("tokens_counted", "info", f"{counted.tokens} tokens as the scheduler gave them", None)
