"""What one serving trial shows, from its raw tables alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moeplan.evaluation.samples import Sample
from moeplan.model.columns import column_of, view
from moeplan.model.evidence import ServingTrial
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.units import BASIS_POINTS, ceil_div

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "SUSTAINED_PERCENT",
    "TRIAL_COUNTS",
    "Count",
    "chunk_gap_groups",
    "completed",
    "concurrency_peak",
    "concurrency_sustained",
    "counter_differences",
    "starts_recorded",
    "ttft_groups",
]

SUSTAINED_PERCENT = 90
"""Share of the offered-load window during which a level of concurrency must hold to count as sustained."""

Count = tuple[int | None, str | None]
"""An observed integer, or None with the reason why there is none."""


def completed(requests: RequestTable) -> NDArray[Any]:
    """Return for each row whether the request is complete."""
    import numpy as np

    return np.fromiter(map("complete".__eq__, requests.outcome), bool, len(requests))


def ttft_groups(requests: RequestTable) -> Sample:
    """Return each request's time to first token in ns; one that failed or was cut short is a lost value."""
    import numpy as np

    seen = completed(requests) & (view(requests.chunks) > 0)
    counts = seen.astype(np.int64)
    return Sample(column_of(view(requests.ttft_ns)[seen]), np.cumsum(counts) - counts, counts, 1 - counts)


def chunk_gap_groups(requests: RequestTable, gaps: ChunkGapTable) -> Sample:
    """Return each request's chunk gaps in ns, in start order; one that failed adds a lost value to those seen.

    The tables are sound: :func:`moeplan.model.tables.table_faults` finds nothing.
    """
    import numpy as np

    starts, counts = np.zeros(len(requests), np.int64), np.zeros(len(requests), np.int64)
    asked, told, order = view(gaps.requests), view(gaps.counts), view(requests.request)
    starts[asked], counts[asked] = np.cumsum(told) - told, told
    lost = (~completed(requests)).astype(np.int64)
    return Sample(gaps.gap_ns, starts[order], counts[order], lost)


def concurrency_peak(requests: RequestTable) -> int:
    """Return the most requests in flight at once; a request is in flight from its sending up to its end."""
    return max(_time_at_level(requests), default=0)


def concurrency_sustained(requests: RequestTable) -> int:
    """Return the greatest number of requests in flight for at least 90 % of the offered-load window.

    The window runs from the first sending to the last, so that the ramp-down does not count; where all were sent at
    once it runs to the last end. Integers only.
    """
    levels = _time_at_level(requests)
    window = sum(levels.values())
    if not window:
        return concurrency_peak(requests)
    held, best = 0, 0
    for level in sorted(levels, reverse=True):
        held += levels[level]
        if held * 100 >= window * SUSTAINED_PERCENT:
            best = level
            break
    return best


def _time_at_level(requests: RequestTable) -> dict[int, int]:
    """Return the nanoseconds spent at each number of requests in flight, within the offered-load window."""
    import numpy as np

    if not len(requests):
        return {}
    starts, ends = view(requests.start_ns), view(requests.end_ns)
    first, last = int(starts.min()), int(starts.max())
    stop = last if last > first else int(ends.max())
    times = np.concatenate((ends, starts))
    steps = np.repeat(np.array([-1, 1]), len(requests))
    order = np.lexsort((steps, times))
    after = np.cumsum(steps[order])
    least = min(int(after.min()), 0)
    spent, visited = np.zeros(int(after.max()) - least + 1, np.int64), np.unique(after)
    np.add.at(spent, after - steps[order] - least, np.diff(np.minimum(times[order], stop), prepend=first))
    return {level: int(spent[level - least]) for level in visited.tolist()}


def failed_requests(requests: RequestTable, _payload: ServingTrial) -> Count:
    """Return the requests that ended in an error or without the tokens asked for."""
    return sum(outcome != "complete" for outcome in requests.outcome), None


def _complete(requests: RequestTable, column: str) -> tuple[list[int], str | None]:
    rows = completed(requests)
    if not rows.any():
        return [], "no_complete_requests"
    if not view(requests.usage)[rows].all():
        return [], "no_server_usage"
    return view(getattr(requests, column))[rows].tolist(), None


def input_tokens_least(requests: RequestTable, _payload: ServingTrial) -> Count:
    """Return the fewest prompt tokens of a complete request, by the server's usage."""
    values, reason = _complete(requests, "input_tokens")
    return min(values, default=None), reason


def output_tokens_least(requests: RequestTable, _payload: ServingTrial) -> Count:
    """Return the fewest generated tokens of a complete request, by the server's usage."""
    values, reason = _complete(requests, "output_tokens")
    return min(values, default=None), reason


def output_tokens_most(requests: RequestTable, _payload: ServingTrial) -> Count:
    """Return the most generated tokens of a complete request, by the server's usage."""
    values, reason = _complete(requests, "output_tokens")
    return max(values, default=None), reason


def prefix_cache_share(_requests: RequestTable, payload: ServingTrial) -> Count:
    """Return cached prompt tokens of all prompt tokens by the engine's counters, in basis points rounded up."""
    counters = payload.engine_counters
    if counters is None or counters.cached_prompt_tokens is None:
        return None, "no_engine_counters"
    if counters.prompt_tokens == 0:
        return None, "no_prompt_tokens"
    if counters.cached_prompt_tokens > counters.prompt_tokens:
        return None, "counters_contradict"
    return ceil_div(counters.cached_prompt_tokens * BASIS_POINTS, counters.prompt_tokens), None


def counter_differences(requests: RequestTable, payload: ServingTrial) -> Count:
    """Return how many of requests, prompt tokens and generated tokens differ between engine and client + warm-up."""
    counters = payload.engine_counters
    if counters is None:
        return None, "no_engine_counters"
    warmup = (payload.warmup_requests, payload.warmup_input_tokens, payload.warmup_output_tokens)
    if None in warmup:
        return None, "warmup_undeclared"
    client = (
        sum(outcome == "complete" for outcome in requests.outcome),
        sum(requests.input_tokens),
        sum(requests.output_tokens),
    )
    engine = (counters.requests, counters.prompt_tokens, counters.generation_tokens)
    sums = [seen + (extra or 0) for seen, extra in zip(client, warmup, strict=True)]
    return sum(told != total for told, total in zip(engine, sums, strict=True)), None


def starts_recorded(requests: RequestTable) -> bool:
    """Return whether the tool recorded when requests were sent.

    No client sends all its requests in one nanosecond: equal starts are those of a tool that records none.
    """
    return len(requests) < 2 or min(requests.start_ns) < max(requests.start_ns)


def _sustained(requests: RequestTable, _payload: ServingTrial) -> Count:
    if not starts_recorded(requests):
        return None, "no_start_times"
    return concurrency_sustained(requests), None


TRIAL_COUNTS: dict[str, Callable[[RequestTable, ServingTrial], Count]] = {
    "concurrency_sustained": _sustained,
    "failed_requests": failed_requests,
    "input_tokens_least": input_tokens_least,
    "output_tokens_least": output_tokens_least,
    "output_tokens_most": output_tokens_most,
    "prefix_cache_share_basis_points": prefix_cache_share,
    "engine_counter_differences": counter_differences,
}
"""Metrics that give one integer a trial."""
