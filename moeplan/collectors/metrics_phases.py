"""Which phase a run is in, told by the engine itself: nobody has to mark anything, and nobody can mark it wrongly."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from moeplan.model.observations import MemoryPhase

__all__ = ["PhaseMarks", "phase_of"]


def phase_of(in_flight: Sequence[int | None], engine_running: bool | None) -> str | None:
    """Return the phase of one moment.

    idle: no endpoint answers, and no process of an engine is seen; warm: all answer, and nothing is in flight; loaded:
    all answer, and something is. Else it is None: an engine that starts, ends or is half there is in no phase.

    Args:
        in_flight: requests in flight by endpoint, None where one does not answer.
        engine_running: whether a process of an engine is seen; None where nobody looks.
    """
    known = [value for value in in_flight if value is not None]
    if not known:
        return None if engine_running else "idle"
    if len(known) < len(in_flight):
        return None
    return "loaded" if any(known) else "warm"


@attrs.define
class PhaseMarks:
    """The phases of a run, moment by moment; times in nanoseconds, ascending."""

    _spans: list[tuple[str | None, int]] = attrs.field(factory=list)
    _last: int = 0

    def mark(self, time_ns: int, phase: str | None) -> None:
        """Take the phase of a moment; it lasts up to the first moment of another."""
        if not self._spans or self._spans[-1][0] != phase:
            self._spans.append((phase, time_ns))
        self._last = time_ns

    @property
    def seen(self) -> frozenset[str]:
        """The phases that were seen so far."""
        return frozenset(name for name, _start in self._spans if name is not None)

    @property
    def current(self) -> str | None:
        """The phase of the last moment."""
        return self._spans[-1][0] if self._spans else None

    def phases(self, origin_ns: int) -> tuple[MemoryPhase, ...]:
        """Return the phases in order, from ``origin_ns`` on; one that was seen at a single moment at the end is left
        out, for it has no length."""
        ends = [start for _name, start in self._spans[1:]] + [self._last]
        return tuple(
            MemoryPhase(name, start - origin_ns, end - origin_ns)
            for (name, start), end in zip(self._spans, ends, strict=True)
            if name is not None and start < end
        )
