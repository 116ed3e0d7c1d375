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
from functools import cached_property
from math import isqrt
from typing import Any

from moeplan.errors import InputError, Issue, escape
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding
from moeplan.model.tables import ChunkGapTable, RequestTable
from moeplan.units import NS_PER_MS, NS_PER_S
from moeplan.wire.strict_json import child

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
            raise InputError(
                Issue(child("$", name), "invalid_value", "value refused", "a number", escape(repr(value), 60))
            )
        made.append(Claim(name, text))
    return tuple(made)


def linear_percentile(ordered: Sequence[int], percent: Fraction) -> Fraction:
    """Return the percentile by linear interpolation between order statistics, exactly; 0 for no values.

    Source: Hyndman and Fan (1996), definition 7; ``np.percentile`` with its default method.
    """
    if not ordered:
        return Fraction(0)
    place = percent / 100 * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


class Recomputation:
    """The tool's figures for one trial, from its tables; milliseconds, exact to 10^-15 ms."""

    def __init__(self, requests: RequestTable, gaps: ChunkGapTable, seconds: Decimal | None = None) -> None:
        """Take the tables, and the tool's own duration for its rates."""
        self._requests = requests
        self._gaps = gaps
        self._seconds = seconds
        self._rows = [row for row, outcome in enumerate(requests.outcome) if outcome != "error"]

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
        values = self._ordered[metric]
        if kind == "mean":
            raw = Fraction(sum(values), len(values)) if values else Fraction(0)
        elif kind == "std":
            raw = self._deviation(values)
        else:
            raw = linear_percentile(values, Fraction(percent or "50"))
        return raw / (NS_PER_MS * (_SCALE if metric == "tpot" else 1))

    @staticmethod
    def _deviation(values: Sequence[int]) -> Fraction:
        count = len(values)
        spread = count * sum(value * value for value in values) - sum(values) ** 2
        return Fraction(isqrt(spread * _SCALE**2), count * _SCALE) if count else Fraction(0)

    @cached_property
    def _ordered(self) -> dict[str, list[int]]:
        table = self._requests
        length = {row: table.end_ns[row] - table.start_ns[row] for row in self._rows}
        counted = {table.request[row] for row in self._rows}
        pooled = zip(self._gaps.request, self._gaps.gap_ns, strict=True)
        return {
            "ttft": sorted(table.ttft_ns[row] for row in self._rows),
            "itl": sorted(gap for request, gap in pooled if request in counted),
            "e2el": sorted(length.values()),
            # In units of 10^-9 ns, rounded down, so that the divisions stay in integers.
            "tpot": sorted(
                (length[row] - table.ttft_ns[row]) * _SCALE // (table.output_tokens[row] - 1)
                for row in self._rows
                if table.output_tokens[row] > 1
            ),
        }


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
