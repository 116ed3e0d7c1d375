"""What ``bench_serving`` and ``benchmark_serving`` report of themselves, recomputed by their own definitions.

Source: SGLang 0.5.23, ``sglang/benchmark/serving.py``, and vLLM of 2025, ``benchmarks/benchmark_serving.py``, each
``calculate_metrics``: ``numpy.percentile`` over successes, a TTFT of 0.0 included; ITL pooled over requests. A
request's latency runs to its last line, text or not, and is not written: E2E latency can only be bounded from below, by
TTFT and the gaps, and TPOT not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from moeplan.importers.claim_check import Figure, below_bound, linear_statistic, mismatches
from moeplan.importers.tool_values import claim_text
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding
from moeplan.units import NS_PER_MS
from moeplan.wire.strict_json import child

__all__ = ["read_claims", "summary_findings"]

_STATISTIC = re.compile(r"(mean|median|std|p\d{1,2}(?:\.\d{1,6})?)_(ttft|tpot|itl|e2e_latency|e2el)_ms", re.ASCII)
_LATENCIES = ("e2e_latency", "e2el")
_KEPT = (
    "accept_length",
    "completed",
    "concurrency",
    "duration",
    "input_throughput",
    "max_concurrent_requests",
    "max_output_tokens_per_s",
    "output_throughput",
    "request_throughput",
    "total_input_tokens",
    "total_output_tokens",
    "total_output_tokens_retokenized",
    "total_throughput",
    "total_token_throughput",
)
_RETOKENIZED = ("sglang-oai", "sglang-oai-chat")
"""Backends whose ITL is divided by the client's own count of a chunk's tokens where drafts were accepted."""

Success = tuple[int, tuple[int, ...]]
"""TTFT and ITL of a request that the tool counts as a success, in ns."""


def read_claims(document: dict[str, Any]) -> tuple[Claim, ...]:
    """Return the figures of one run that are known here, in name order, as decimal text.

    Raises:
        InputError: a known figure that is no number.
    """
    names = [name for name in sorted(document) if name in _KEPT or _STATISTIC.fullmatch(name)]
    made = [claim_text(name, document[name], child("$", name)) for name in names]
    return tuple(claim for claim in made if claim is not None)


def summary_findings(
    document: dict[str, Any], claims: Sequence[Claim], successes: Sequence[Success]
) -> Iterator[Finding]:
    """Yield an error for each claim that the raw data do not bear out.

    Args:
        document: one run.
        claims: its claims.
        successes: TTFT and ITL of the requests that the tool counts as successes.
    """
    ordered = {
        "ttft": sorted(ttft for ttft, _ in successes),
        "itl": sorted(gap for _, gaps in successes for gap in gaps),
        "latency": sorted(ttft + sum(gaps) for ttft, gaps in successes),
    }
    adjusted = bool(document.get("accept_length")) and document.get("backend") in _RETOKENIZED
    known = ("ttft",) if adjusted else ("ttft", "itl")
    seconds = next((Fraction(Decimal(claim.value)) for claim in claims if claim.name == "duration"), Fraction(0))
    tokens = sum(document["output_lens"])

    def figure(name: str) -> Figure:
        match = _STATISTIC.fullmatch(name)
        if match:
            return (linear_statistic(match[1], ordered[match[2]]) / NS_PER_MS,) if match[2] in known else None
        counts = {"completed": len(successes), "total_output_tokens": tokens}
        rates = {"request_throughput": len(successes), "output_throughput": tokens}
        if name in rates:
            return (rates[name] / seconds,) if seconds else None
        return (Fraction(counts[name]),) if name in counts else None

    def least(name: str) -> Fraction | None:
        match = _STATISTIC.fullmatch(name)
        if match is None or match[2] not in _LATENCIES or match[1] == "std":
            return None
        return linear_statistic(match[1], ordered["latency"]) / NS_PER_MS

    yield from mismatches(claims, figure)
    yield from below_bound(claims, least)
