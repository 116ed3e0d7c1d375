"""The raw tables of a live system's observations <-> Parquet, each by its one closed schema."""

from __future__ import annotations

from moeplan.model.series import (
    SERIES_STATES,
    SERIES_UNITS,
    ExpertCountTable,
    QualityTable,
    SeriesTable,
    TensorDigestTable,
)
from moeplan.wire.closed_table import FLAG, INTEGER, Names, TableSchema, Words

__all__ = ["EXPERTS", "QUALITY", "SERIES", "TENSORS"]

_MOST_ROWS = 20_000_000
_MOST_TENSORS = 5_000_000

SERIES = TableSchema(
    SeriesTable,
    {
        "time_ns": INTEGER,
        "source": Names(most=1000),
        "subject": Names(),
        "metric": Names(),
        "value": INTEGER,
        "unit": Words(SERIES_UNITS, "a unit"),
        "text": Names(blank=True),
        "state": Words(SERIES_STATES, "a state"),
    },
    _MOST_ROWS,
)
EXPERTS = TableSchema(
    ExpertCountTable,
    {
        "interval": INTEGER,
        "start_ns": INTEGER,
        "end_ns": INTEGER,
        "layer": INTEGER,
        "expert": INTEGER,
        "selections": INTEGER,
    },
    100_000_000,
)
TENSORS = TableSchema(
    TensorDigestTable,
    {"rank": Names(), "tensor": Names(most=_MOST_TENSORS), "bytes": INTEGER, "digest": Names(most=_MOST_TENSORS)},
    _MOST_ROWS,
)
QUALITY = TableSchema(
    QualityTable, {"task": Names(), "metric": Names(), "document": INTEGER, "correct": FLAG}, _MOST_ROWS
)
"""Dump with :func:`moeplan.wire.closed_table.dump_table`, read with ``load_table``."""
