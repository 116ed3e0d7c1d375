"""What guidellm reports of itself, recomputed by its own definitions.

Source: guidellm 0.8.1, ``benchmark/schemas/metrics.py`` (which requests, which weights) and
``schemas/base/statistics.py`` (``from_values``: percentiles by the inverse of the cumulated probability): over
successes that overlap the measured window; TTFT and latency each request once, TPOT (from sending to the last token,
over all tokens) weighted by tokens, ITL (from the first token to the last, over all but one) by tokens less one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from moeplan.importers.claim_check import Figure, mismatches, weighted_mean, weighted_percentile
from moeplan.importers.guidellm_requests import STATUSES, GuidellmRequest, Nanoseconds
from moeplan.importers.tool_values import claim_text, object_at
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding
from moeplan.units import NS_PER_MS, NS_PER_S
from moeplan.wire.strict_json import child

__all__ = ["read_claims", "summary_findings"]

Window = tuple[Nanoseconds, Nanoseconds]
Weighted = list[tuple[Fraction, int]]

_SHARES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
_TIMES = ("request_latency", "time_to_first_token_ms", "time_per_output_token_ms", "inter_token_latency_ms")
_COUNTS = ("prompt_token_count", "output_token_count")
_RATES = ("requests_per_second", "output_tokens_per_second", "request_concurrency")
_NAME = re.compile(r"([a-z_]+)\.successful\.(mean|p50|p90|p95|p99)", re.ASCII)


def read_claims(benchmark: dict[str, Any], path: str) -> tuple[Claim, ...]:
    """Return a benchmark's own figures that are known here, named by where they stand below ``metrics``.

    Raises:
        InputError: a known figure that is no number.
    """
    metrics = object_at(benchmark, "metrics", path)
    made = [claim_text("duration", benchmark.get("duration"), child(path, "duration"))]
    at = child(path, "metrics")
    for name in (*_COUNTS, *_RATES, *_TIMES):
        summary = metrics.get(name)
        told = summary.get("successful") if type(summary) is dict else None
        if type(told) is dict:
            made += _figures(told, f"{name}.successful", f"{at}.{name}.successful")
    totals = metrics.get("request_totals")
    if type(totals) is dict:
        where = f"{at}.request_totals"
        made += [claim_text(f"request_totals.{status}", totals.get(status), f"{where}.{status}") for status in STATUSES]
    return tuple(sorted((claim for claim in made if claim is not None), key=lambda claim: claim.name))


def _figures(told: dict[str, Any], name: str, path: str) -> list[Claim | None]:
    shares = told.get("percentiles")
    shares = shares if type(shares) is dict else {}
    made = [claim_text(f"{name}.mean", told.get("mean"), f"{path}.mean")]
    return made + [claim_text(f"{name}.{key}", shares.get(key), f"{path}.percentiles.{key}") for key in _SHARES]


def summary_findings(
    claims: Sequence[Claim], successes: Sequence[GuidellmRequest] | None, window: Window
) -> Iterator[Finding]:
    """Yield an error for each claim that the listed requests do not bear out.

    Args:
        claims: the benchmark's claims.
        successes: every request that the tool counts as a success; None where not all are listed.
        window: what the tool measures, from and to.
    """
    if successes is None:
        return
    values, older = _values(successes, window), _older_values(successes, window)

    def figure(name: str) -> Figure:
        match = _NAME.fullmatch(name)
        if match is None or match[1] not in values:
            return None
        samples = [sample[match[1]] for sample in (values, older) if match[1] in sample]
        return tuple(value for sample in samples for value in _statistic(match[2], sample))

    yield from mismatches(claims, figure, thousandths=("request_latency",))


def _values(successes: Sequence[GuidellmRequest], window: Window) -> dict[str, Weighted]:
    """Return what each figure is made of, with weights: seconds for latency, milliseconds or tokens for the others."""
    within = [item for item in successes if _overlaps(item.start, item.end, window)]
    begun = [item for item in successes if item.first_token and _overlaps(item.start, item.first_token, window)]
    spoken = [item for item in successes if _overlaps(item.first_token or item.end, item.end, window)]
    return {
        "request_latency": [((item.end - item.start) / NS_PER_S, 1) for item in within],
        "time_to_first_token_ms": [
            ((item.first_token - item.start) / NS_PER_MS, 1) for item in begun if item.first_token
        ],
        "time_per_output_token_ms": [
            (((item.last_token or item.end) - item.start) / NS_PER_MS / item.tokens, item.tokens)
            for item in within
            if item.tokens
        ],
        "inter_token_latency_ms": [
            ((item.last_token - item.first_token) / NS_PER_MS / (item.tokens - 1), item.tokens - 1)
            if item.first_token and item.last_token
            else (Fraction(0), item.tokens - 1)
            for item in spoken
            if item.tokens > 1
        ],
        "prompt_token_count": [(Fraction(item.input_tokens), 1) for item in within],
        "output_token_count": [(Fraction(item.tokens), 1) for item in within],
    }


def _older_values(successes: Sequence[GuidellmRequest], window: Window) -> dict[str, Weighted]:
    """Return what guidellm 0.5.4 makes TTFT and ITL of: all requests that overlap the window, 0 without a token."""
    within = [item for item in successes if _overlaps(item.start, item.end, window)]
    whole = (
        min((item.start for item in within), default=window[0]),
        max((item.end for item in within), default=window[1]),
    )
    silent = sum(item.first_token is None for item in within)
    made = _values([item for item in within if item.first_token is not None], whole)
    made["time_to_first_token_ms"] += [(Fraction(0), 1)] * silent
    return {name: made[name] for name in ("time_to_first_token_ms", "inter_token_latency_ms")}


def _statistic(kind: str, values: Weighted) -> tuple[Fraction, ...]:
    if kind == "mean":
        return (weighted_mean(values),)
    return weighted_percentile(values, Fraction(_SHARES[kind], 100)) or ()


def _overlaps(start: Nanoseconds, end: Nanoseconds, window: Window) -> bool:
    return end >= window[0] and start <= window[1]
