"""The raw tables of serving trials and preflights <-> Parquet, each by its one closed schema."""

from __future__ import annotations

from moeplan.model.tables import (
    PREFLIGHT_STATES,
    PREFLIGHT_UNITS,
    REQUEST_OUTCOMES,
    PreflightTable,
    RequestTable,
)
from moeplan.wire.chunk_gaps import MAX_GAPS, dump_chunk_gaps, load_chunk_gaps
from moeplan.wire.closed_table import FLAG, INTEGER, Names, TableSchema, Words, dump_table, load_table

__all__ = [
    "MAX_GAPS",
    "MAX_PREFLIGHT_ROWS",
    "MAX_REQUESTS",
    "REQUESTS",
    "dump_chunk_gaps",
    "dump_preflight",
    "dump_requests",
    "load_chunk_gaps",
    "load_preflight",
    "load_requests",
]

MAX_REQUESTS = 10_000_000
MAX_PREFLIGHT_ROWS = 1_000_000

REQUESTS = TableSchema(
    RequestTable,
    {
        "request": INTEGER,
        "start_ns": INTEGER,
        "queue_ns": INTEGER,
        "ttft_ns": INTEGER,
        "end_ns": INTEGER,
        "chunks": INTEGER,
        "input_tokens": INTEGER,
        "output_tokens": INTEGER,
        "usage": FLAG,
        "outcome": Words(REQUEST_OUTCOMES, "an outcome"),
    },
    MAX_REQUESTS,
)
PREFLIGHT = TableSchema(
    PreflightTable,
    {
        "host": Names(),
        "probe": Names(),
        "item": Names(),
        "metric": Names(),
        "unit": Words(PREFLIGHT_UNITS, "a unit"),
        "value": INTEGER,
        "state": Words(PREFLIGHT_STATES, "a state"),
    },
    MAX_PREFLIGHT_ROWS,
)


def dump_requests(table: RequestTable) -> bytes:
    """Return the table as Parquet: int64 columns, ``usage`` bool, ``outcome`` dictionary text, none nullable.

    Deterministic for one pyarrow version (the footer names it).

    Raises:
        InputError: columns of different length, an outcome that is none, or a usage that is no flag.
    """
    return dump_table(REQUESTS, table)


def load_requests(data: bytes) -> RequestTable:
    """Return the request table in ``data``, or refuse it; cross-row rules are ``model.tables.table_faults``'.

    Raises:
        InputError: not one whole Parquet file, other columns or types, nulls, outcomes that are none, too many rows.
    """
    return load_table(REQUESTS, data)


def dump_preflight(table: PreflightTable) -> bytes:
    """Return the table as Parquet: ``value`` int64, all else dictionary text; otherwise as :func:`dump_requests`."""
    return dump_table(PREFLIGHT, table)


def load_preflight(data: bytes) -> PreflightTable:
    """Return the preflight table in ``data``, or refuse it as :func:`load_requests` does."""
    return load_table(PREFLIGHT, data)
