"""One imported trial in a line, for people. Decides nothing."""

from __future__ import annotations

import attrs

from moeplan.catalogue.order_statistics import nearest_rank
from moeplan.evaluation.quantiles import upper_tail
from moeplan.evaluation.samples import Sample
from moeplan.evaluation.trials import chunk_gap_groups, concurrency_peak, starts_recorded, ttft_groups
from moeplan.importers.trial import ImportedTrial
from moeplan.model.tables import REQUEST_OUTCOMES
from moeplan.units import format_ns

__all__ = ["TrialSummary", "summarize"]


@attrs.frozen
class TrialSummary:
    """What one trial shows: counts by outcome, nearest-rank p95 in ns, the tool's own p95 in ms as it wrote it.

    A p95 is None where it falls on a request that failed: there is no such time. ``concurrency_peak`` is None where
    the tool records no start times.
    """

    requests: int
    complete: int
    error: int
    truncated: int
    ttft_p95_ns: int | None
    tool_ttft_p95_ms: str | None
    chunk_gap_p95_ns: int | None
    concurrency_peak: int | None

    def cells(self) -> tuple[str, ...]:
        """Return the summary as the cells of a table."""
        ours = [
            format_ns(value) if value is not None else "none" for value in (self.ttft_p95_ns, self.chunk_gap_p95_ns)
        ]
        tool = f"{float(self.tool_ttft_p95_ms):.3f} ms" if self.tool_ttft_p95_ms else "none"
        lost = f"{self.error} failed, {self.truncated} truncated"
        peak = "unknown" if self.concurrency_peak is None else str(self.concurrency_peak)
        return (str(self.requests), lost, ours[0], tool, ours[1], peak)


def summarize(trial: ImportedTrial) -> TrialSummary:
    """Return the summary of one trial."""
    complete, error, truncated = (trial.requests.outcome.count(outcome) for outcome in REQUEST_OUTCOMES)
    return TrialSummary(
        requests=len(trial.requests),
        complete=complete,
        error=error,
        truncated=truncated,
        ttft_p95_ns=_p95(ttft_groups(trial.requests)),
        tool_ttft_p95_ms=next((claim.value for claim in trial.claims if claim.name == trial.ttft_p95_claim), None),
        chunk_gap_p95_ns=_p95(chunk_gap_groups(trial.requests, trial.chunk_gaps)),
        concurrency_peak=concurrency_peak(trial.requests) if starts_recorded(trial.requests) else None,
    )


def _p95(sample: Sample) -> int | None:
    rank = nearest_rank(len(sample.values) + int(sample.lost.sum()), 95)
    tail = upper_tail(sample.values, rank)
    return int(tail[0]) if len(tail) else None
