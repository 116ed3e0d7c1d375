"""Synthetic records of a live system's observations for tests: a payload, its raw tables, who signed."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from moeplan.model.deployment import Deployment
from moeplan.model.evidence import RAW_TABLES, Attachment, Collector, EvidenceRecord, Interval
from moeplan.model.plan import Plan
from moeplan.model.series import ExpertCountTable, SeriesTable
from moeplan.model.verified import VerifiedRecord, VerifiedSigner
from moeplan.units import format_instant, parse_instant
from moeplan.wire.documents import identify
from tests.build import ENGINE_START, RUNNER, digest_of, make_deployment, plan_identity

__all__ = ["OBSERVED_AT", "make_expert_table", "make_observation", "make_series", "observation_seconds"]

OBSERVED_AT = "2026-03-01T20:00:00Z"
observation_seconds = 600
"""Length of an observation's interval."""

SeriesRow = tuple[int, str, str, int, str]
"""Time in ns, subject, metric, value, unit."""


def make_series(rows: Iterable[SeriesRow], *, source: str = "test", state: str = "measured") -> SeriesTable:
    """Return a series of rows, put in order of time; a row of unit ``word`` has its metric as text."""
    ordered = sorted(rows)
    words = tuple(row[2] if row[4] == "word" else "" for row in ordered)
    return SeriesTable(
        time_ns=array("q", (row[0] for row in ordered)),
        source=(source,) * len(ordered),
        subject=tuple(row[1] for row in ordered),
        metric=tuple(row[2] for row in ordered),
        value=array("q", (row[3] for row in ordered)),
        unit=tuple(row[4] for row in ordered),
        text=words,
        state=(state,) * len(ordered),
    )


def make_expert_table(counts: Sequence[dict[int, Sequence[int]]], interval_ns: int = 10**9) -> ExpertCountTable:
    """Return a table of counts given as one ``{layer: [count, …]}`` an interval; a count of 0 has no row."""
    rows = [
        (number, number * interval_ns, (number + 1) * interval_ns, layer, expert, count)
        for number, layers in enumerate(counts)
        for layer in sorted(layers)
        for expert, count in enumerate(layers[layer])
        if count
    ]
    return ExpertCountTable(*(array("q", (row[column] for row in rows)) for column in range(6)))


def make_observation(
    plan: Plan,
    payload: Any,
    *,
    start: str = OBSERVED_AT,
    seconds: int = observation_seconds,
    engine_start: str | None = ENGINE_START,
    deployment: Deployment | None = None,
    signers: tuple[VerifiedSigner, ...] = (RUNNER,),
    **tables: Any,
) -> VerifiedRecord:
    """Return a verified record of ``payload`` with its raw ``tables`` by role; other tables give other digests."""
    label = f"{payload} {[list(getattr(table, name)) for table in tables.values() for name in table.__slots__[:-1]]}"
    attachments = tuple(
        Attachment(
            role,
            f"attachments/{payload.type}/{role}.parquet",
            f"{role}.parquet",
            "application/vnd.apache.parquet",
            1,
            digest_of(f"{role} {label}"),
        )
        for role in RAW_TABLES[payload.type]
    )
    record = EvidenceRecord(
        type=payload.type,
        plan=plan_identity(plan),
        deployment=make_deployment() if deployment is None else deployment,
        collector=Collector("test", "1", "test", "1"),
        interval=Interval(start, format_instant(parse_instant(start) + seconds)),
        engine_start=engine_start,
        payload=payload,
        attachments=attachments,
    )
    faults = list(record.faults())
    assert not faults, faults
    return VerifiedRecord(record, identify(record), signers, **tables)
