"""Requests as a tool's file tells of them, and the raw tables they make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.builder import TrialBuilder
from moeplan.importers.trial import TrialInputs
from moeplan.model.finding import Finding
from moeplan.model.tables import ChunkGapTable, RequestTable

__all__ = ["RequestRow", "indexes", "listed", "only_stage", "outcome_of", "tables_of"]

_MOST_SHOWN = 50
T = TypeVar("T")


@attrs.frozen
class RequestRow:
    """One request; times in ns, ``start`` and ``end`` from the start of the trial.

    Attributes:
        index: the tool's own index.
        chunks: arrivals seen; 1 with no ``gaps`` where the tool keeps the first arrival's time alone.
        usage: whether both token counts are the server's.
        outcome: one of ``model.tables.REQUEST_OUTCOMES``.
    """

    index: int
    start: int
    queue: int
    ttft: int
    end: int
    gaps: tuple[int, ...]
    chunks: int
    input_tokens: int
    output_tokens: int
    usage: bool
    outcome: str


def tables_of(rows: Sequence[RequestRow], duration_ns: int) -> tuple[RequestTable, ChunkGapTable]:
    """Return the rows as raw tables: requests in start order, gaps by request.

    Raises:
        InputError: rows that contradict themselves, each other, or the duration.
    """
    builder = TrialBuilder()
    for row in rows:
        builder.add(
            row.index,
            row.start,
            row.queue,
            row.ttft,
            row.gaps,
            row.end,
            row.input_tokens,
            row.output_tokens,
            row.usage,
            row.outcome,
            chunks=row.chunks,
        )
    return builder.tables(duration_ns, origin_ns=0)


def outcome_of(tokens: int, counted: bool, inputs: TrialInputs) -> tuple[str, bool]:
    """Return the outcome of a request that the tool reports no error of, and whether its counts are the server's.

    Args:
        tokens: how many were generated.
        counted: whether the server counted them; a stream that nobody counted is never complete.
        inputs: what was stated. A stop short of the tokens asked for looks like a broken stream, so one that is
            accepted does not count as the server's.
    """
    if not counted:
        return "truncated", False
    if tokens == inputs.requested_output_tokens:
        return "complete", True
    early = inputs.accept_early_stop and not inputs.ignore_eos and 0 < tokens < inputs.requested_output_tokens
    return ("complete", False) if early else ("truncated", False)


def only_stage(trials: Sequence[T], inputs: TrialInputs) -> tuple[T, ...]:
    """Return the runs of a file, or the one that ``inputs.stage`` picks.

    Raises:
        InputError: there is no such run.
    """
    if inputs.stage is None:
        return tuple(trials)
    if not 0 <= inputs.stage < len(trials):
        expected, got = f"0 to {len(trials) - 1}", str(inputs.stage)
        raise InputError(Issue("--stage", "unknown_stage", "no such run in the file", expected, got))
    return (trials[inputs.stage],)


def indexes(rows: Iterable[RequestRow]) -> str:
    """Return the rows' indexes in order, for people; the first 50 of many."""
    numbers = sorted(row.index for row in rows)
    shown = ", ".join(str(number) for number in numbers[:_MOST_SHOWN])
    return shown if len(numbers) <= _MOST_SHOWN else f"{shown} and {len(numbers) - _MOST_SHOWN} more"


def listed(code: str, rows: Sequence[RequestRow], message: str) -> list[Finding]:
    """Return one warning that names the rows, or none where there are none; ``message`` follows their number."""
    if not rows:
        return []
    return [Finding(code, "warning", f"{len(rows)} {message}: requests {indexes(rows)}", None)]
