"""The tool's own summary, recomputed by the tool's own definitions from the integer tables, exactly.

Source: vLLM 0.32, ``vllm/benchmarks/serve.py``, ``calculate_metrics``: over successes as the tool counts them (a
truncated stream is one); ``np.percentile`` with linear interpolation; ``np.std`` of the population; ITL pooled over all
chunk gaps; TPOT = (latency - TTFT) / (output tokens - 1) where there are two tokens or more; 0 for no values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError, Issue
from moeplan.importers.shown import shown
from moeplan.model.columns import exact_sum, exact_sum_of_squares, view
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.units import NS_PER_MS, NS_PER_S
from moeplan.wire.strict_json import child

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Recomputation", "claim_findings", "linear_percentile", "read_claims"]

TOLERANCE = Fraction(1, 10**6)
"""Relative, or absolute in the claim's own unit: a millionth of a millisecond is the nanosecond the tables round to."""

_STATISTIC = re.compile(r"(mean|median|std|p(\d{1,2}(?:\.\d{1,6})?|100))_(ttft|tpot|itl|e2el)_ms", re.ASCII)
_COUNTS = ("completed", "failed", "total_input_tokens", "total_output_tokens")
_RATES = {
    "request_throughput": ("completed",),
    "output_throughput": ("total_output_tokens",),
    "total_token_throughput": ("total_input_tokens", "total_output_tokens"),
}
_KEPT = ("duration", "max_concurrent_requests", "max_output_tokens_per_s", "request_goodput")
_SCALE = 10**9
_CLAIM_LENGTH = 64
_WIDE_MOST = 1 << 63


def read_claims(document: dict[str, Any]) -> tuple[Claim, ...]:
    """Return every figure the tool reports of itself that is known here, in name order, as decimal text.

    Raises:
        InputError: a known figure that is no number; null means that the tool did not compute it.
    """
    made = []
    for name in sorted(document):
        if not (name in _COUNTS or name in _RATES or name in _KEPT or _STATISTIC.fullmatch(name)):
            continue
        value = document[name]
        if value is None:
            continue
        text = str(value)
        if type(value) not in (int, Decimal) or len(text) > _CLAIM_LENGTH:
            raise InputError(Issue(child("$", name), "invalid_value", "value refused", "a number", shown(value)))
        made.append(Claim(name, text))
    return tuple(made)


def linear_percentile(ordered: Sequence[int] | NDArray[Any], percent: Fraction) -> Fraction:
    """Return the percentile by linear interpolation between order statistics, exactly; 0 for no values.

    Source: Hyndman and Fan (1996), definition 7; ``np.percentile`` with its default method.
    """
    if not len(ordered):
        return Fraction(0)
    place = percent / 100 * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    low, high = int(ordered[below]), int(ordered[above])
    return low + (place - below) * (high - low)


class Recomputation:
    """The tool's figures for one trial, from its tables; milliseconds, exact to 10^-15 ms."""

    def __init__(self, requests: RequestTable, gaps: ChunkGapTable, seconds: Decimal | None = None) -> None:
        """Take the tables, and the tool's own duration for its rates."""
        self._requests = requests
        self._gaps = gaps
        self._seconds = seconds
        self._rows = [row for row, outcome in enumerate(requests.outcome) if outcome != "error"]
        self._ordered: dict[str, NDArray[Any]] = {}

    def figure(self, name: str) -> Fraction | None:
        """Return a figure of the tool's by its name in the tool's file; None where it is not recomputed."""
        if match := _STATISTIC.fullmatch(name):
            return self._statistic(match[1], match[2], match[3])
        if name in _COUNTS:
            return Fraction(self._count(name))
        if name in _RATES and self._seconds:
            return sum((Fraction(self._count(part)) for part in _RATES[name]), Fraction(0)) / Fraction(self._seconds)
        if name == "duration" and self._seconds:
            return max(Fraction(self._seconds), Fraction(max(self._requests.end_ns), NS_PER_S))
        return None

    def _count(self, name: str) -> int:
        if name == "completed":
            return len(self._rows)
        if name == "failed":
            return len(self._requests) - len(self._rows)
        column = self._requests.input_tokens if name == "total_input_tokens" else self._requests.output_tokens
        return sum(column[row] for row in self._rows)

    def _statistic(self, kind: str, percent: str | None, metric: str) -> Fraction:
        import numpy as np

        if metric not in self._ordered:
            self._ordered[metric] = np.sort(self._values(metric))
        values = self._ordered[metric]
        if kind == "mean":
            raw = Fraction(exact_sum(values), len(values)) if len(values) else Fraction(0)
        elif kind == "std":
            raw = self._deviation(values)
        else:
            raw = linear_percentile(values, Fraction(percent or "50"))
        return raw / (NS_PER_MS * (_SCALE if metric == "tpot" else 1))

    @staticmethod
    def _deviation(values: NDArray[Any]) -> Fraction:
        count = len(values)
        spread = count * exact_sum_of_squares(values) - exact_sum(values) ** 2
        return Fraction(isqrt(spread * _SCALE**2), count * _SCALE) if count else Fraction(0)

    def _values(self, metric: str) -> NDArray[Any]:
        import numpy as np

        table, rows = self._requests, np.array(self._rows, np.int64)
        if metric == "itl":
            counted = np.zeros(len(table), bool)
            counted[view(table.request)[rows]] = True
            kept = np.repeat(counted[view(self._gaps.requests)], view(self._gaps.counts))
            pooled: NDArray[Any] = view(self._gaps.gap_ns)[kept]
            return pooled
        ttft, length = view(table.ttft_ns)[rows], (view(table.end_ns) - view(table.start_ns))[rows]
        if metric == "tpot":
            tokens = view(table.output_tokens)[rows]
            after_first = zip((length - ttft).tolist(), tokens.tolist(), strict=True)
            # In units of 10^-9 ns, rounded down, so that the divisions stay in integers of Python's, of any size.
            made = [time * _SCALE // (count - 1) for time, count in after_first if count > 1]
            return np.array(made, np.int64 if max(made, default=0) < _WIDE_MOST else object)
        return ttft if metric == "ttft" else length


def claim_findings(claims: Sequence[Claim], requests: RequestTable, gaps: ChunkGapTable) -> Iterator[Finding]:
    """Yield a finding for each claim that its recomputation does not bear out; a mismatch is an error."""
    by_name = {claim.name: Decimal(claim.value) for claim in claims}
    made = Recomputation(requests, gaps, by_name.get("duration"))
    for claim in claims:
        figure = made.figure(claim.name)
        told = Fraction(by_name[claim.name])
        if figure is None or abs(figure - told) <= TOLERANCE * max(Fraction(1), abs(figure)):
            continue
        message = f"the tool reports {claim.value}, its own definition over the raw data gives {float(figure):.9g}"
        yield Finding("claim_mismatch", "error", message, claim.name)
