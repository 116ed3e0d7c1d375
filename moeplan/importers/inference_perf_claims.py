"""inference-perf's summary and stage reports as claims, recomputed from its requests by its own definitions, exactly.

Source: inference-perf 0.7.0, ``reportgen/base.py``, ``compute_request_latency_metrics`` and ``summarize_requests``.
Over requests without an exception; ``np.percentile`` with linear interpolation; TTFT, TPOT and ITL of streams of two
tokens or more; all tokens of a chunk have its time; TPOT divides by the client's count of tokens less one. Figures are
seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.claim_check import Figure, mismatches
from moeplan.importers.tool_files import tool_of
from moeplan.importers.tool_json import parse_tool_json
from moeplan.importers.tool_values import claim_text, count_at, object_at
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding
from moeplan.units import NS_PER_S

__all__ = ["Report", "Sample", "claim_findings", "read_report"]

_TIMES = (
    "request_latency",
    "time_to_first_token",
    "time_per_output_token",
    "inter_token_latency",
    "normalized_time_per_output_token",
)
_SCALE = 10**9


@attrs.frozen
class Sample:
    """One success as the tool sees it: times in ns on its clock, its own count of tokens."""

    start: int
    end: int
    token_times: tuple[int, ...]
    tokens: int


@attrs.frozen
class Report:
    """One of the tool's reports.

    Attributes:
        count: requests that it is about, failures too.
        is_stage: whether it is one stage's.
        claims: ``request_latency.p95`` and so on, in seconds as the tool wrote them; ``successes`` and ``failures``.
    """

    count: int
    is_stage: bool
    claims: tuple[Claim, ...]


def read_report(data: bytes, name: str) -> Report:
    """Return a ``summary_lifecycle_metrics.json`` or ``stage_N_lifecycle_metrics.json``.

    Raises:
        InputError: another file; paths begin with ``name``.
    """
    try:
        return _report(parse_tool_json(data))
    except InputError as error:
        raise InputError(*(issue.under(f"{name}: $") for issue in error.issues)) from None


def _report(document: Any) -> Report:
    if tool_of(document) != "inference-perf summary":
        expected = "summary_lifecycle_metrics.json or stage_N_lifecycle_metrics.json"
        raise InputError(Issue("$", "wrong_file", "not a report of inference-perf's", expected))
    load, good = object_at(document, "load_summary", "$"), object_at(document, "successes", "$")
    failures = document.get("failures")
    bad = failures if type(failures) is dict else {}
    claims = [
        claim_text("successes", good.get("count"), "$.successes.count"),
        claim_text("failures", bad.get("count"), "$.failures.count"),
        claim_text("benchmark_time_seconds", document.get("benchmark_time_seconds"), "$.benchmark_time_seconds"),
    ]
    latency = good.get("latency")
    for metric in _TIMES:
        entry = latency.get(metric) if type(latency) is dict else None
        for statistic, value in (entry if type(entry) is dict else {}).items():
            if _percent(statistic) is not None or statistic == "mean":
                claims.append(claim_text(f"{metric}.{statistic}", value, f"$.successes.latency.{metric}.{statistic}"))
    kept = tuple(sorted((claim for claim in claims if claim is not None), key=lambda claim: claim.name))
    return Report(count_at(load.get("count"), "$.load_summary.count"), "send_duration" in load, kept)


def _percent(statistic: str) -> Fraction | None:
    named = {"min": Fraction(0), "median": Fraction(50), "max": Fraction(100)}
    if statistic in named:
        return named[statistic]
    digits = statistic.removeprefix("p")
    plain = digits.replace(".", "", 1).isdecimal() and digits.isascii() and len(digits) <= 8 and statistic != digits
    return Fraction(Decimal(digits)) if plain and Decimal(digits) <= 100 else None


def claim_findings(report: Report, count: int, samples: Sequence[Sample], duration_ns: int) -> Iterator[Finding]:
    """Yield an error for each claim that does not recompute; for another number of requests only that.

    Args:
        report: the report of these requests.
        count: all requests of the trial.
        samples: those that the tool counts as successes.
        duration_ns: from the first sending to the last end.
    """
    made = _Recomputation(count, samples, duration_ns)
    if report.count != count or list(mismatches(_counts(report), made.figure)):
        yield from mismatches(_counts(report), made.figure)
        message = f"the report is of {report.count} requests, the file holds {count}: another run's, or not whole"
        yield Finding("records_missing", "error", message, None)
        return
    # All figures but the counts are seconds.
    yield from mismatches(report.claims, made.figure, thousandths=(*_TIMES, "benchmark_time_seconds"))


def _counts(report: Report) -> list[Claim]:
    return [claim for claim in report.claims if claim.name in ("successes", "failures")]


class _Recomputation:
    """The tool's figures in seconds, exact to 10^-18 s."""

    def __init__(self, count: int, samples: Sequence[Sample], duration_ns: int) -> None:
        self._count = count
        self._samples = samples
        self._duration = duration_ns
        self._ordered: dict[str, list[int]] = {}

    def figure(self, name: str) -> Figure:
        metric, _, statistic = name.partition(".")
        if name == "successes":
            return (Fraction(len(self._samples)),)
        if name == "failures":
            return (Fraction(self._count - len(self._samples)),)
        if name == "benchmark_time_seconds":
            return (Fraction(self._duration, NS_PER_S),)
        if metric not in self._ordered:
            self._ordered[metric] = sorted(value for sample in self._samples for value in _values(sample, metric))
        values, percent = self._ordered[metric], _percent(statistic)
        if not values:
            return None
        if percent is None:
            return (Fraction(sum(values), len(values) * NS_PER_S * _SCALE),)
        place = percent / 100 * (len(values) - 1)
        low, high = values[int(place)], values[min(int(place) + 1, len(values) - 1)]
        return ((low + (place - int(place)) * (high - low)) / (NS_PER_S * _SCALE),)


def _values(sample: Sample, metric: str) -> Iterator[int]:
    """Yield a metric's values of one success in units of 10^-9 ns, rounded down, so that all stays in integers."""
    times, length = sample.token_times, sample.end - sample.start
    if metric == "request_latency":
        yield length * _SCALE
    elif metric == "normalized_time_per_output_token":
        yield length * _SCALE // sample.tokens if sample.tokens else 0
    elif len(times) > 1:
        if metric == "time_to_first_token":
            yield (times[0] - sample.start) * _SCALE
        elif metric == "time_per_output_token" and sample.tokens > 1:
            yield (times[-1] - times[0]) * _SCALE // (sample.tokens - 1)
        elif metric == "inter_token_latency":
            yield from ((right - left) * _SCALE for left, right in pairwise(times))
