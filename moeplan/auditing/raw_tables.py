"""The raw tables of observations, each read by its closed schema and checked against its record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moeplan.bundle.source import BundleSource
from moeplan.errors import InputError, Issue, VerificationError, escape
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.observations import ExpertCounts, FailureTimeline, LoadedBytes, QualityResult
from moeplan.model.series import (
    ExpertCountTable,
    QualityTable,
    TensorDigestTable,
    expert_faults,
    quality_faults,
    series_faults,
    tensor_faults,
)
from moeplan.model.tables import request_faults
from moeplan.wire.closed_table import TableSchema, load_table
from moeplan.wire.series import EXPERTS, QUALITY, SERIES, TENSORS
from moeplan.wire.tables import REQUESTS

__all__ = ["read_observations"]

_MAX_TABLE_BYTES = 1 << 30
_FILES = "files"
"""The rank of tensors that were digested in the checkpoint's files."""
_SCHEMAS: dict[str, TableSchema[Any]] = {
    "series": SERIES,
    "experts": EXPERTS,
    "tensors": TENSORS,
    "quality": QUALITY,
    "requests": REQUESTS,
}


def read_observations(source: BundleSource, path: str, record: EvidenceRecord) -> dict[str, Any]:
    """Return a record's raw tables by role, all but those of a serving trial and a preflight.

    Args:
        source: the bundle.
        path: where the record lies, for messages.
        record: the record.

    Raises:
        VerificationError: a table that is malformed or contradicts itself or its record.
    """
    if record.type in ("serving_trial", "preflight"):
        return {}
    tables: dict[str, Any] = {}
    for attachment in record.attachments:
        if attachment.role in _SCHEMAS and attachment.path is not None:
            try:
                data = source.read(attachment.path, _MAX_TABLE_BYTES)
                tables[attachment.role] = load_table(_SCHEMAS[attachment.role], data)
            except InputError as error:
                error.source = attachment.path
                raise
    issues = list(_faults(record, tables))
    if issues:
        raise VerificationError(*(Issue(f"{path}: {i.path}", i.code, i.message, i.expected, i.got) for i in issues))
    return tables


def _faults(record: EvidenceRecord, tables: dict[str, Any]) -> Iterator[Issue]:
    payload, duration = record.payload, record.duration_ns
    counted = next((tables[role] for role in ("experts", "tensors", "quality", "series") if role in tables), None)
    promised = getattr(payload, "row_count", None)
    if promised is not None and counted is not None and len(counted) != promised:
        yield Issue("$.payload.rowCount", "row_count", "not the rows of the table", str(len(counted)), str(promised))
    if "series" in tables:
        yield from series_faults(tables["series"], duration)
    if "tensors" in tables:
        yield from tensor_faults(tables["tensors"])
    if isinstance(payload, ExpertCounts):
        layers = {layer.number: layer.experts for layer in payload.layers}
        yield from expert_faults(tables["experts"], layers, duration)
        yield from _interval_faults(payload, tables["experts"])
    if isinstance(payload, LoadedBytes):
        yield from _rank_faults(set(payload.ranks), tables["tensors"])
    elif "tensors" in tables:
        yield from _rank_faults({_FILES}, tables["tensors"])
    if isinstance(payload, QualityResult):
        yield from quality_faults(tables["quality"])
        yield from _answer_faults(payload, tables["quality"])
    if isinstance(payload, FailureTimeline):
        yield from request_faults(tables["requests"], payload.duration_ns)
        if len(tables["requests"]) != payload.request_count:
            rows, claimed = str(len(tables["requests"])), str(payload.request_count)
            yield Issue("$.payload.requestCount", "row_count", "not the rows of the table", rows, claimed)


def _interval_faults(payload: ExpertCounts, table: ExpertCountTable) -> Iterator[Issue]:
    last = payload.interval_count - 1
    if len(table) and not 0 <= min(table.interval) <= max(table.interval) <= last:
        got = f"{min(table.interval)} to {max(table.interval)}"
        yield Issue("experts.interval", "unknown_interval", "no interval of the record", f"0 to {last}", got)


def _rank_faults(ranks: set[str], table: TensorDigestTable) -> Iterator[Issue]:
    unknown = sorted(set(table.rank) - ranks)
    if unknown:
        named, held = (escape(", ".join(words), 200) for words in (sorted(ranks), unknown))
        yield Issue("tensors.rank", "unknown_rank", "rows of a rank that the record does not name", named, held)


def _answer_faults(payload: QualityResult, table: QualityTable) -> Iterator[Issue]:
    """Compare each task's counts with the answers themselves."""
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for task, metric, correct in zip(table.task, table.metric, table.correct, strict=True):
        right, of = seen.get((task, metric), (0, 0))
        seen[task, metric] = (right + correct, of + 1)
    told = {(task.task, task.metric): (task.correct, task.documents) for task in payload.tasks}
    if seen != told:
        yield Issue("$.payload.tasks", "answers_differ", "not what the answers add up to", str(seen)[:200])
