"""What one controlled failure of a worker shows: when it failed, was ready and served again, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs

from moeplan.model.series import SeriesTable
from moeplan.model.tables import RequestTable
from moeplan.units import NS_PER_S, ceil_div

__all__ = ["EVENTS", "Failure", "read_failure"]

EVENTS = ("fault_injected", "process_exited", "process_started", "health_status")
"""Events of a failure's timeline, by metric. ``health_status`` is 0 where nothing answered."""
_HEALTHY = 200


@attrs.frozen
class Failure:
    """One failure's timeline in nanoseconds from the start of the record's interval; None where it is not shown.

    Attributes:
        fault_ns: when the worker was made to fail; None unless this was done exactly once.
        last_good_ns: end of the last request that completed up to the fault.
        first_bad_ns: first sign of the failure: health no longer good, or a request that ended without completing.
        ready_ns: moment from which the worker's health is good to the end of the record.
        first_good_ns: end of the first request that completed after the worker was ready again.
        longest_gap_ns: longest time around the failure in which no request completed.
        lost: requests that did not complete.
        served: requests sent after the fault and completed before the worker was ready again.
    """

    fault_ns: int | None
    last_good_ns: int | None
    first_bad_ns: int | None
    ready_ns: int | None
    first_good_ns: int | None
    longest_gap_ns: int | None
    lost: int
    served: int | None

    @property
    def whole(self) -> bool:
        """Whether the timeline shows service, failure, recovery and service again."""
        moments = (self.fault_ns, self.last_good_ns, self.first_bad_ns, self.ready_ns, self.first_good_ns)
        return None not in moments

    @property
    def restart_seconds(self) -> int | None:
        """Seconds from the fault to ready again, rounded up; None unless the timeline is whole."""
        if not self.whole or self.ready_ns is None or self.fault_ns is None:
            return None
        return ceil_div(self.ready_ns - self.fault_ns, NS_PER_S)


def read_failure(requests: RequestTable, events: SeriesTable) -> Failure:
    """Return what the raw tables of a failure's record show. Exact."""
    faults = [time for time, _value in _events(events, "fault_injected")]
    fault = faults[0] if len(faults) == 1 else None
    health = list(_events(events, "health_status"))
    ready = None if fault is None else _ready_again(health, fault)
    good = [(start, end) for start, end, outcome in _spans(requests) if outcome == "complete"]
    ends = sorted(end for _start, end in good)
    bad = [end for _start, end, outcome in _spans(requests) if outcome != "complete"]
    first_good = None if ready is None else min((end for end in ends if end >= ready), default=None)
    return Failure(
        fault_ns=fault,
        last_good_ns=None if fault is None else max((end for end in ends if end <= fault), default=None),
        first_bad_ns=None if fault is None else _first_bad(health, bad, fault),
        ready_ns=ready,
        first_good_ns=first_good,
        longest_gap_ns=None if fault is None or ready is None else _longest_gap(ends, fault, ready),
        lost=len(bad),
        served=None if fault is None or ready is None else sum(fault <= start and end <= ready for start, end in good),
    )


def _events(table: SeriesTable, metric: str) -> Iterator[tuple[int, int]]:
    """Yield time and value of the events of one metric, in order of time; one that was not read has the value 0."""
    rows = zip(table.time_ns, table.metric, table.value, strict=True)
    yield from sorted((time, value) for time, name, value in rows if name == metric)


def _spans(requests: RequestTable) -> Iterator[tuple[int, int, str]]:
    yield from zip(requests.start_ns, requests.end_ns, requests.outcome, strict=True)


def _ready_again(health: list[tuple[int, int]], fault: int) -> int | None:
    """Return when health is good for the rest of the record, after it was seen not to be; a good one between counts
    for nothing."""
    ready: int | None = None
    failed = False
    for time, value in health:
        if time < fault:
            continue
        if value != _HEALTHY:
            failed, ready = True, None
        elif failed and ready is None:
            ready = time
    return ready


def _first_bad(health: list[tuple[int, int]], bad: list[int], fault: int) -> int | None:
    signs = [time for time, value in health if value != _HEALTHY and time >= fault]
    return min((*signs, *(end for end in bad if end >= fault)), default=None)


def _longest_gap(ends: list[int], fault: int, ready: int) -> int | None:
    """Return the longest gap between two completions of those that touch the time from fault to ready."""
    gaps = [later - earlier for earlier, later in pairwise(ends) if later > fault and earlier < ready]
    return max(gaps, default=None)
