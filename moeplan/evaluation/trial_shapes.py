"""What one serving trial shows of time per token, goodput, its own length, its client and its warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.evaluation.samples import Sample
from moeplan.evaluation.steady import drift_basis_points
from moeplan.evaluation.trials import Count, completed, starts_recorded
from moeplan.model.columns import column_of, exact_sum, run_sums, view
from moeplan.model.evidence import EngineCounters, ServingTrial
from moeplan.model.plan import Workload
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.units import BASIS_POINTS, NS_PER_MS, ceil_div

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_CPU_PERCENT", "MOST_LAG_NS", "TRIAL_SHAPES", "Trial", "client_strain", "tpot_groups"]

MOST_CPU_PERCENT = 80
"""Processor time of one core, in percent of wall time, above which the client itself is taken to be the bottleneck."""
MOST_LAG_NS = 10 * NS_PER_MS
"""How late the client may be at the 99th percentile in sending and reading."""


@attrs.frozen
class Trial:
    """One trial with the workload that the plan asks for."""

    requests: RequestTable
    gaps: ChunkGapTable
    payload: ServingTrial
    workload: Workload

    @property
    def ttft_limit_ns(self) -> int:
        """The target of the time to first token."""
        return self.workload.target_ttft_ms * NS_PER_MS

    @property
    def token_limit_ns(self) -> int:
        """The target of the time between tokens."""
        return self.workload.target_inter_token_ms * NS_PER_MS

    @property
    def allowed_ns(self) -> int:
        """How long a request of the planned length takes that is exactly on both targets."""
        return self.ttft_limit_ns + (self.workload.output_tokens - 1) * self.token_limit_ns


def _spans(trial: Trial) -> NDArray[Any]:
    """Return for each row the time from its first chunk to its last."""
    import numpy as np

    row, gaps = view(trial.requests.request), trial.gaps
    spans = np.zeros(len(row), np.int64)
    if len(gaps.requests):
        spans[view(gaps.requests)] = run_sums(view(gaps.gap_ns), view(gaps.counts))
    placed: NDArray[Any] = spans[row]
    return placed


def _tokens_unknown(trial: Trial) -> bool:
    """Return whether a complete request's tokens are not the server's count."""
    return not bool(view(trial.requests.usage)[completed(trial.requests)].all())


def tpot_groups(trial: Trial) -> Sample | None:
    """Return each request's time per output token after the first, in ns rounded up; None where tokens are not counted.

    A request that failed or was cut short is a lost value; a complete one of a single token has none.
    """
    import numpy as np

    if _tokens_unknown(trial):
        return None
    whole, steps = completed(trial.requests), view(trial.requests.output_tokens) - 1
    seen = whole & (steps > 0)
    values = -(-_spans(trial)[seen] // steps[seen])
    counts = seen.astype(np.int64)
    return Sample(column_of(values), np.cumsum(counts) - counts, counts, (~whole).astype(np.int64))


def _good(trial: Trial) -> NDArray[Any]:
    """Return for each row whether it is complete and within both targets; exact, in wide integers."""
    import numpy as np

    requests = trial.requests
    steps = np.maximum(view(requests.output_tokens) - 1, 0)
    # Rounded up, so that a time within the target and its quotient are within it alike.
    per_token = -(-_spans(trial) // np.maximum(steps, 1))
    in_time = (view(requests.ttft_ns) <= trial.ttft_limit_ns) & (per_token <= trial.token_limit_ns)
    good: NDArray[Any] = completed(requests) & (view(requests.chunks) > 0) & in_time
    return good


def goodput(trial: Trial) -> Count:
    """Return the share of all requests that are complete and within both targets, in basis points rounded down."""
    if not len(trial.requests):
        return None, "no_values"
    if _tokens_unknown(trial):
        return None, "no_server_usage"
    return int(_good(trial).sum()) * BASIS_POINTS // len(trial.requests), None


def _durations(trial: Trial) -> NDArray[Any]:
    whole = completed(trial.requests)
    durations: NDArray[Any] = view(trial.requests.end_ns)[whole] - view(trial.requests.start_ns)[whole]
    return durations


def steady_state_drift(trial: Trial) -> Count:
    """Return how far apart the medians of four quarters lie, over the median of all, in basis points."""
    if not starts_recorded(trial.requests):
        return None, "no_start_times"
    drift = drift_basis_points(_durations(trial))
    return drift, None if drift is not None else "too_short"


def requests_per_stream(trial: Trial) -> Count:
    """Return how many complete requests each of the streams in flight served, rounded down."""
    streams = max(trial.workload.concurrency, trial.payload.declared_concurrency or 0)
    return int(completed(trial.requests).sum()) // streams, None


def client_strain(payload: ServingTrial) -> bool:
    """Return whether the client's own load says that it was the bottleneck."""
    load = payload.client
    if load is None:
        return False
    return load.cpu_ns * 100 > load.wall_ns * MOST_CPU_PERCENT or load.loop_lag_p99_ns > MOST_LAG_NS


def client_overhead(trial: Trial) -> Count:
    """Return by how much the client's mean duration is above the engine's, in basis points rounded up, 0 at least."""
    counters = trial.payload.engine_counters
    if counters is None or not counters.e2e_ns or not counters.requests:
        return None, "client_not_observed"
    durations = _durations(trial)
    if not len(durations):
        return None, "no_complete_requests"
    client, engine = exact_sum(durations) * counters.requests, counters.e2e_ns * len(durations)
    share = max(ceil_div(client * BASIS_POINTS, engine) - BASIS_POINTS, 0)
    return share, "client_bottleneck" if client_strain(trial.payload) else None


def warmup_late_share(trial: Trial) -> Count:
    """Return the share of requests that miss the first token's target if every warm-up request that may have, did.

    In basis points, rounded up. The time that the engine spent on the warm-up is its sums less the client's; so much
    time holds no more late requests than it holds targets.
    """
    warmup, counters = trial.payload.warmup_requests, trial.payload.engine_counters
    if warmup is None:
        return None, "warmup_undeclared"
    if not len(trial.requests):
        return None, "no_values"
    hidden = 0 if warmup == 0 else _hidden(trial, counters)
    if hidden is None:
        return None, "warmup_not_observed"
    hidden = min(hidden, warmup)
    in_time = completed(trial.requests) & (view(trial.requests.ttft_ns) <= trial.ttft_limit_ns)
    late = len(trial.requests) - int(in_time.sum())
    return ceil_div((late + hidden) * BASIS_POINTS, len(trial.requests) + hidden), None


def _hidden(trial: Trial, counters: EngineCounters | None) -> int | None:
    if counters is None or counters.ttft_ns is None or counters.e2e_ns is None:
        return None
    whole = completed(trial.requests)
    first = counters.ttft_ns - exact_sum(view(trial.requests.ttft_ns)[whole])
    whole_time = counters.e2e_ns - exact_sum(_durations(trial))
    return max(first // trial.ttft_limit_ns, whole_time // trial.allowed_ns, 0)


TRIAL_SHAPES: dict[str, Callable[[Trial], Count]] = {
    "goodput_basis_points": goodput,
    "steady_state_drift_basis_points": steady_state_drift,
    "requests_per_stream": requests_per_stream,
    "client_overhead_basis_points": client_overhead,
    "warmup_late_share_basis_points": warmup_late_share,
}
"""Metrics that give one integer a trial, and need the plan's workload."""
