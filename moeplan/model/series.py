"""Raw observations of a live system as exact integer columns: series, expert selections, tensor digests, answers.

Times are nanoseconds from the start of the record's interval.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs

from moeplan.errors import Issue
from moeplan.model.fields import DIGEST_PATTERN
from moeplan.units import MAX_SAFE_INTEGER

__all__ = [
    "SERIES_STATES",
    "SERIES_UNITS",
    "ExpertCountTable",
    "QualityTable",
    "SeriesTable",
    "TensorDigestTable",
    "expert_faults",
    "quality_faults",
    "series_faults",
    "tensor_faults",
]

SERIES_STATES = ("measured", "failed", "not_exposed", "reset")
"""measured: the value was read; failed: reading it was tried and gave none; not_exposed: the system does not tell it;
reset: the counter stands lower than before, so its source began anew. ``failed`` and ``not_exposed`` have value 0.
"""
SERIES_UNITS = (
    "basis_points",
    "boolean",
    "bytes",
    "count",
    "http_status",
    "millijoules",
    "milliwatts",
    "ns",
    "requests",
    "tokens",
    "word",
)
"""What an integer of a series counts; a ``word`` has its content in ``text`` and the value 0."""

_UNREAD = ("failed", "not_exposed")
_MOST_FAULTS = 20
_DIGEST = re.compile(DIGEST_PATTERN.strip("^$"))


@attrs.frozen(eq=False)
class SeriesTable:
    """One row a value seen at a moment, in order of time.

    Attributes:
        time_ns: when, from the start of the record's interval.
        source: what told it, such as ``vllm-log``, ``vllm-metrics``, ``nvidia-smi``, ``procfs``, ``moeplan-probe``.
        subject: whose value it is: the pseudonym of a device, host or process.
        metric: which quantity, a name of ``docs/metrics.md``.
        value: exact integer in ``unit``.
        unit: one of :data:`SERIES_UNITS`.
        text: content of a ``word``, else empty. Never a path, a name of a host or a person, a prompt or an answer.
        state: one of :data:`SERIES_STATES`.
    """

    time_ns: array[int]
    source: tuple[str, ...]
    subject: tuple[str, ...]
    metric: tuple[str, ...]
    value: array[int]
    unit: tuple[str, ...]
    text: tuple[str, ...]
    state: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.time_ns)


@attrs.frozen(eq=False)
class ExpertCountTable:
    """One row an expert of a layer that was selected in an interval, sorted by interval, layer and expert.

    An expert without a row in an interval was not selected in it.

    Attributes:
        interval: 0, 1, 2 …
        start_ns: start of the interval.
        end_ns: its end.
        layer: ``number`` of the layer in the record.
        expert: index of the expert, 0 to experts - 1, before any mapping to replicas.
        selections: how often it was selected, over all tokens and ranks; at least 1.
    """

    interval: array[int]
    start_ns: array[int]
    end_ns: array[int]
    layer: array[int]
    expert: array[int]
    selections: array[int]

    def __len__(self) -> int:
        return len(self.interval)


@attrs.frozen(eq=False)
class TensorDigestTable:
    """One row a tensor of one rank, sorted by rank and tensor.

    Attributes:
        rank: the process that read it, such as ``tp0``; ``files`` where it was read from the files alone.
        tensor: its name in the checkpoint.
        bytes: exact size of its data.
        digest: SHA-256 of its bytes as the file holds them.
    """

    rank: tuple[str, ...]
    tensor: tuple[str, ...]
    bytes: array[int]
    digest: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rank)


@attrs.frozen(eq=False)
class QualityTable:
    """One row a document of a task, sorted by task, metric and document.

    Attributes:
        task: name of the task.
        metric: the measure, right or wrong per document, such as ``acc``.
        document: index of the document in the task.
        correct: 1 where the answer was right by the measure, else 0.
    """

    task: tuple[str, ...]
    metric: tuple[str, ...]
    document: array[int]
    correct: array[int]

    def __len__(self) -> int:
        return len(self.document)


def series_faults(table: SeriesTable, duration_ns: int) -> Iterator[Issue]:
    """Yield where a series breaks its rules or leaves the record's interval (at most 20 faults)."""
    yield from list(_series_faults(table, duration_ns))[:_MOST_FAULTS]


def _series_faults(table: SeriesTable, duration_ns: int) -> Iterator[Issue]:
    yield from _times(table.time_ns, "series.time_ns", duration_ns)
    for row, (value, unit, text, state) in enumerate(
        zip(table.value, table.unit, table.text, table.state, strict=True)
    ):
        at = f"series[{row}]"
        if not 0 <= value <= MAX_SAFE_INTEGER or (unit == "boolean" and value > 1):
            yield Issue(f"{at}.value", "out_of_range", "value out of range", "a boolean 0 or 1; 0 to 2^53 - 1")
        if value != 0 and (state in _UNREAD or unit == "word"):
            yield Issue(f"{at}.value", "not_measured", "a value that was not read", "0", str(value))
        if (text != "") != (unit == "word" and state == "measured"):
            yield Issue(f"{at}.text", "text_misplaced", "text belongs to a word that was read", "none, or unit word")


def expert_faults(table: ExpertCountTable, layers: dict[int, int], duration_ns: int) -> Iterator[Issue]:
    """Yield where expert counts contradict themselves or their record (at most 20 faults).

    Args:
        table: the counts.
        layers: number of experts by layer number.
        duration_ns: length of the record's interval.
    """
    yield from list(_expert_faults(table, layers, duration_ns))[:_MOST_FAULTS]


def _expert_faults(table: ExpertCountTable, layers: dict[int, int], duration_ns: int) -> Iterator[Issue]:
    keys = list(zip(table.interval, table.layer, table.expert, strict=True))
    if any(left >= right for left, right in pairwise(keys)):
        yield Issue("experts", "rows_out_of_order", "rows are not sorted, each once", "interval, layer, expert")
    spans: dict[int, tuple[int, int]] = {}
    for row, (interval, start, end) in enumerate(zip(table.interval, table.start_ns, table.end_ns, strict=True)):
        if spans.setdefault(interval, (start, end)) != (start, end):
            yield Issue(f"experts[{row}].start_ns", "interval_differs", "one interval with two spans", "one span")
        if not 0 <= start < end <= duration_ns:
            yield Issue(f"experts[{row}].end_ns", "outside_interval", "outside the record", f"0 to {duration_ns}")
    ordered = [spans[key] for key in sorted(spans)]
    if any(left[1] > right[0] for left, right in pairwise(ordered)):
        yield Issue("experts.start_ns", "intervals_overlap", "intervals overlap", "one after another")
    for row, (layer, expert, count) in enumerate(zip(table.layer, table.expert, table.selections, strict=True)):
        if not 0 <= expert < layers.get(layer, 0):
            yield Issue(
                f"experts[{row}].expert", "unknown_expert", "no expert of the record's layers", str(layers)[:200]
            )
        if not 1 <= count <= MAX_SAFE_INTEGER:
            yield Issue(f"experts[{row}].selections", "out_of_range", "count out of range", "1 to 2^53 - 1", str(count))


def tensor_faults(table: TensorDigestTable) -> Iterator[Issue]:
    """Yield where a table of tensor digests breaks its rules (at most 20 faults)."""
    yield from list(_tensor_faults(table))[:_MOST_FAULTS]


def _tensor_faults(table: TensorDigestTable) -> Iterator[Issue]:
    keys = list(zip(table.rank, table.tensor, strict=True))
    if any(left >= right for left, right in pairwise(keys)):
        yield Issue("tensors", "rows_out_of_order", "rows are not sorted, each once", "rank, then tensor")
    for row, (size, digest) in enumerate(zip(table.bytes, table.digest, strict=True)):
        if not 0 <= size <= MAX_SAFE_INTEGER:
            yield Issue(f"tensors[{row}].bytes", "out_of_range", "size out of range", "0 to 2^53 - 1", str(size))
        if _DIGEST.fullmatch(digest) is None:
            yield Issue(f"tensors[{row}].digest", "invalid_digest", "not a digest", "sha256: and 64 hex digits")


def quality_faults(table: QualityTable) -> Iterator[Issue]:
    """Yield where a table of answers breaks its rules (at most 20 faults)."""
    keys = list(zip(table.task, table.metric, table.document, strict=True))
    if any(left >= right for left, right in pairwise(keys)):
        yield Issue("quality", "rows_out_of_order", "rows are not sorted, each once", "task, metric, document")
    if any(value not in (0, 1) for value in table.correct):
        yield Issue("quality.correct", "invalid_value", "not a flag", "0 or 1")
    if any(value < 0 for value in table.document):
        yield Issue("quality.document", "negative", "negative index", "0 or more")


def _times(column: Sequence[int], path: str, duration_ns: int) -> Iterator[Issue]:
    if any(left > right for left, right in pairwise(column)):
        yield Issue(path, "rows_out_of_order", "rows are not in order of time", "ascending time_ns")
    if len(column) and not 0 <= min(column) <= max(column) <= duration_ns:
        yield Issue(path, "outside_interval", "outside the record's interval", f"0 to {duration_ns}")
