"""What a person should know about one aiperf trial beyond its figures, and its claims recomputed from the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from moeplan.importers.aiperf_phase import PhaseTables, WarmUp
from moeplan.importers.aiperf_summary import TIMES, AiperfSummary
from moeplan.importers.claim_check import Figure, mismatches
from moeplan.importers.index_list import numbered
from moeplan.importers.trial import TrialInputs
from moeplan.model.columns import view
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding
from moeplan.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AiperfRecomputation", "phase_findings"]

_RECORDS = ("request_count", "error_request_count")


def phase_findings(
    made: PhaseTables, warm: WarmUp, inputs: TrialInputs, summary: AiperfSummary, claims: Sequence[Claim]
) -> Iterator[Finding]:
    """Yield findings on outcomes, lengths, the warm-up, the summary, and each claim that does not recompute."""
    yield from _outcomes(made)
    yield from _lengths(made, inputs)
    yield from _warm_up(warm, inputs)
    yield from _summary(inputs, summary, claims)
    figure = AiperfRecomputation(made).figure
    if missing := list(mismatches([claim for claim in claims if claim.name in _RECORDS], figure)):
        yield from missing
        message = "the summary is of another number of records: another run's, or the file is not whole"
        yield Finding("records_missing", "error", message, None)
    else:
        yield from mismatches(claims, figure, thousandths=("benchmark_duration",))


def _outcomes(made: PhaseTables) -> Iterator[Finding]:
    count, failed, truncated = len(made.requests), made.places("error"), made.places("truncated")
    if failed:
        message = (
            f"{len(failed)} of {count} requests failed; the tool's percentiles and its duration leave them out:"
            f" requests {numbered(failed)}"
        )
        yield Finding("failures_left_out", "warning", message, None)
    if truncated:
        message = (
            f"{len(truncated)} of {count} requests ended without an error and without a server usage count or the"
            f" tokens asked for; the tool counts them as successes, here they are failures: requests"
            f" {numbered(truncated)}"
        )
        yield Finding("truncated_counted_as_success", "warning", message, None)
    seen = zip(made.requests.chunks, made.requests.outcome, strict=True)
    if silent := sum(not chunks and outcome != "error" for chunks, outcome in seen):
        message = f"{silent} requests without an error have no time to first token: was the run made with --streaming?"
        yield Finding("no_first_chunk", "warning", message, None)


def _lengths(made: PhaseTables, inputs: TrialInputs) -> Iterator[Finding]:
    wanted = inputs.requested_output_tokens
    others = sum(asked != wanted for asked in made.asked)
    if others:
        message = (
            f"{others} of {len(made.requests)} requests asked for other than the {wanted} tokens stated, from"
            f" {min(made.asked)} to {max(made.asked)}; each is judged by what it asked for"
        )
        yield Finding("requested_output_differs", "warning", message, None)
    if not made.asked:
        message = f"no record tells the tokens it asked for: the {wanted} stated are taken"
        yield Finding("requested_output_stated", "info", message, None)


def _warm_up(warm: WarmUp, inputs: TrialInputs) -> Iterator[Finding]:
    if inputs.warmup_requests is not None and inputs.warmup_requests != warm.requests:
        message = f"{inputs.warmup_requests} warm-up requests stated, the file holds {warm.requests}, which are taken"
        yield Finding("stated_warmup_differs", "warning", message, None)
    if warm.unknown:
        message = (
            f"{warm.unknown} of {warm.requests} warm-up requests failed or have no server usage count: what they cost"
            " the engine is not known"
        )
        yield Finding("warmup_unknown", "warning", message, None)


def _summary(inputs: TrialInputs, summary: AiperfSummary, claims: Sequence[Claim]) -> Iterator[Finding]:
    if not summary.given:
        message = "no --summary given: nothing shows that the file holds every request of the run"
        yield Finding("summary_missing", "info", message, None)
        return
    if not claims:
        message = "the file holds several profiling phases; the summary's figures are those of none alone"
        yield Finding("summary_not_compared", "info", message, None)
    if inputs.concurrency is None and summary.concurrency is not None:
        message = f"no --concurrency stated; the summary's {summary.concurrency} is taken"
        yield Finding("concurrency_from_file", "info", message, None)
    elif summary.concurrency not in (None, inputs.concurrency):
        message = f"stated concurrency {inputs.concurrency}, the summary's is {summary.concurrency}"
        yield Finding("stated_concurrency_differs", "warning", message, None)
    if summary.ignore_eos not in (None, inputs.ignore_eos):
        message = f"the summary's requests say ignore_eos {str(summary.ignore_eos).lower()}, stated is the opposite"
        yield Finding("stated_ignore_eos_differs", "warning", message, None)


class AiperfRecomputation:
    """The tool's figures for one phase by its own definitions, exactly.

    Over the records without an error: linear interpolation, all chunk gaps pooled, the duration from the first sending
    to the last content. What it calls inter-token latency is taken from the records. Its rates divide by the phase's
    own time, which no record holds.

    Source: aiperf 0.13.0, ``metrics/types``; ``np.percentile``; its samples reproduce.
    """

    def __init__(self, made: PhaseTables) -> None:
        """Take the phase."""
        import numpy as np

        self._made = made
        self._good = np.array([outcome != "error" for outcome in made.requests.outcome])
        self._sorted: dict[str, NDArray[Any]] = {}

    def figure(self, name: str) -> Figure:
        """Return a claim's figure in the tool's unit by the claim's name; None where it is not recomputed."""
        metric, _, statistic = name.partition(".")
        made = self._statistic(metric, statistic) if metric in TIMES else self._single(name)
        return None if made is None else (made,)

    def _single(self, name: str) -> Fraction | None:
        good = int(self._good.sum())
        if name == "request_count":
            return Fraction(good)
        if name == "error_request_count":
            return Fraction(len(self._good) - good)
        if name == "benchmark_duration" and good:
            table = self._made.requests
            start, end = view(table.start_ns)[self._good], view(table.end_ns)[self._good]
            return Fraction(int(end.max()) - int(start.min()), NS_PER_S)
        return None

    def _values(self, metric: str) -> NDArray[Any]:
        """Return a metric's values over the successes, ascending, in ns (the tool's own ITL in ms)."""
        import numpy as np

        if metric not in self._sorted:
            table, gaps = self._made.requests, self._made.gaps
            if metric == "time_to_first_token":
                values = view(table.ttft_ns)[self._good & (view(table.chunks) > 0)]
            elif metric == "request_latency":
                values = (view(table.end_ns) - view(table.start_ns))[self._good]
            elif metric == "inter_token_latency":
                values = np.array(self._made.tool_itl_ms)
            else:
                by_request = np.empty(len(self._good), bool)
                by_request[view(table.request)] = self._good
                kept = np.repeat(by_request[view(gaps.requests)], view(gaps.counts))
                values = view(gaps.gap_ns)[kept]
            self._sorted[metric] = np.sort(values)
        return self._sorted[metric]

    def _statistic(self, metric: str, statistic: str) -> Fraction | None:
        values = self._values(metric)
        if statistic == "count":
            return Fraction(len(values))
        if not len(values) or statistic == "std":
            return None
        scale = 1 if metric == "inter_token_latency" else NS_PER_MS
        if statistic in ("avg", "sum"):
            return _total(values) / (scale * (1 if statistic == "sum" else len(values)))
        percent = {"min": 0, "max": 100}.get(statistic) if not statistic.startswith("p") else int(statistic[1:])
        if percent is None:
            return None
        place = Fraction(percent, 100) * (len(values) - 1)
        low, high = (Fraction(values[at].item()) for at in (int(place), min(int(place) + 1, len(values) - 1)))
        return (low + (place - int(place)) * (high - low)) / scale


def _total(ordered: NDArray[Any]) -> Fraction:
    if ordered.dtype.kind == "f":
        return sum(map(Fraction, ordered.tolist()), Fraction(0))
    # Sums of slices fit into 64 bits: 2^20 values below 2^42, or 512 values below 2^53.
    step = 1 << 20 if int(ordered[-1]) < 1 << 42 else 512
    return Fraction(sum(int(ordered[at : at + step].sum(dtype="int64")) for at in range(0, len(ordered), step)))
