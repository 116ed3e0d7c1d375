"""One phase of an aiperf run while its records stream past: columns, not objects, so that a million requests fit."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from decimal import Decimal

import attrs

from moeplan.importers.builder import TrialBuilder
from moeplan.model.evidence import Interval
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.units import NS_PER_S, ceil_div, format_instant

__all__ = ["Phase", "PhaseTables", "WarmUp"]


@attrs.define
class WarmUp:
    """The requests of warm-up phases, with the tokens that the server counted.

    Attributes:
        unknown: how many failed or have no server usage count: what they cost the engine is not known.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unknown: int = 0

    @classmethod
    def joined(cls, parts: Iterable[WarmUp]) -> WarmUp:
        """Return several phases as one."""
        made = cls()
        for part in parts:
            made.requests += part.requests
            made.input_tokens += part.input_tokens
            made.output_tokens += part.output_tokens
            made.unknown += part.unknown
        return made


@attrs.frozen(eq=False)
class PhaseTables:
    """One phase, read to its end.

    Attributes:
        duration_ns: from the first sending until the tool was done with the last request.
        asked: output tokens asked for, of the requests whose records tell.
        tool_itl_ms: what the tool calls inter-token latency, of the requests that have one.
        interval: whole seconds UTC that enclose the phase.
    """

    requests: RequestTable
    gaps: ChunkGapTable
    duration_ns: int
    asked: array[int]
    tool_itl_ms: array[float]
    interval: Interval

    def places(self, outcome: str) -> list[int]:
        """Return the indexes of the requests with an outcome, ascending."""
        table = self.requests
        return sorted(place for place, each in zip(table.request, table.outcome, strict=True) if each == outcome)


class Phase:
    """Collects the records of one profiling phase; a request's index is its place among them."""

    def __init__(self) -> None:
        """Begin a phase without records."""
        self._rows = TrialBuilder()
        self._asked = array("q")
        self._tool_itl_ms = array("d")
        self._begun = 1 << 62
        self._over = 0

    def add(
        self,
        *,
        start: int,
        queue: int,
        ttft: int | None,
        gaps: array[int] | None,
        latency: int,
        closed: int,
        input_tokens: int,
        output_tokens: int,
        usage: bool,
        outcome: str,
        asked: int | None,
        tool_itl_ms: int | float | Decimal | None,
    ) -> None:
        """Append one record; times in ns.

        Args:
            start: when it was sent, since 1970.
            queue: how long the client held it back before.
            ttft: from sending to the first chunk; None where none was seen.
            gaps: between chunks; None where there are none.
            latency: from sending to the last chunk, or to the end where there was none.
            closed: when the tool was done with it, since 1970.
            input_tokens: prompt tokens.
            output_tokens: generated tokens.
            usage: whether both counts are the server's.
            outcome: one of ``model.tables.REQUEST_OUTCOMES``.
            asked: output tokens asked for; None where the record does not tell.
            tool_itl_ms: the tool's inter-token latency; None where it has none.
        """
        seen = gaps if gaps is not None and ttft is not None else ()
        end = start + max(latency, (ttft or 0) + sum(seen))
        chunks = 0 if ttft is None else 1 + len(seen)
        self._rows.add(
            len(self._rows),
            start,
            queue,
            ttft or 0,
            seen,
            end,
            input_tokens,
            output_tokens,
            usage,
            outcome,
            chunks=chunks,
        )
        self._begun, self._over = min(self._begun, start), max(self._over, closed, end)
        if asked is not None:
            self._asked.append(asked)
        if tool_itl_ms is not None:
            self._tool_itl_ms.append(float(tool_itl_ms))

    def tables(self) -> PhaseTables:
        """Return the phase's raw tables and what else its records tell.

        Raises:
            InputError: records that contradict themselves.
        """
        duration = max(self._over - self._begun, 1)
        requests, gaps = self._rows.tables(duration)
        interval = Interval(format_instant(self._begun // NS_PER_S), format_instant(ceil_div(self._over, NS_PER_S)))
        return PhaseTables(requests, gaps, duration, self._asked, self._tool_itl_ms, interval)
