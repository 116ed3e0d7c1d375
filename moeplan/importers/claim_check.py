"""A tool's figures against the same figures recomputed from its raw data by its own definitions, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isqrt

from moeplan.importers.recompute import linear_percentile
from moeplan.model.evidence import Claim
from moeplan.model.finding import Finding

__all__ = ["Figure", "below_bound", "linear_statistic", "mismatches", "weighted_mean", "weighted_percentile"]

Figure = tuple[Fraction, ...] | None
"""The values that a claim may have (two where the tool's rounding decides between neighbours), or None: not known."""

_SCALE = 10**9
_TOLERANCE = Fraction(1, 10**6)
"""Relative, or absolute in the claim's own unit: a millionth of a millisecond is a nanosecond."""


def linear_statistic(kind: str, ordered: Sequence[int]) -> Fraction:
    """Return ``mean``, ``median``, ``std`` or ``p95`` of values in order as numpy defines them; 0 for no values.

    Source: numpy ``mean``, ``median``, ``std`` (of the population), ``percentile`` (linear interpolation).
    """
    count = len(ordered)
    if not count:
        return Fraction(0)
    if kind == "mean":
        return Fraction(sum(ordered), count)
    if kind == "std":
        spread = count * sum(value * value for value in ordered) - sum(ordered) ** 2
        return Fraction(isqrt(spread * _SCALE**2), count * _SCALE)
    return linear_percentile(ordered, Fraction(50) if kind == "median" else Fraction(kind[1:]))


def weighted_mean(values: Sequence[tuple[Fraction, int]]) -> Fraction:
    """Return the mean of (value, weight); 0 for no weight."""
    weight = sum(weight for _, weight in values)
    return sum((value * weight for value, weight in values), Fraction(0)) / weight if weight else Fraction(0)


def weighted_percentile(values: Iterable[tuple[Fraction, int]], share: Fraction) -> Figure:
    """Return the least value whose cumulated weight reaches ``share`` of all: nearest rank, by the inverse CDF.

    Where the weight reaches the share exactly, the next value is returned too: a tool that sums probabilities as
    floating-point numbers may stop at either.
    """
    ordered = sorted((value, weight) for value, weight in values if weight)
    wanted = share * sum(weight for _, weight in ordered)
    reached = 0
    for place, (value, weight) in enumerate(ordered):
        reached += weight
        if reached >= wanted:
            beyond = ordered[min(place + 1, len(ordered) - 1)][0]
            return (value, beyond) if reached == wanted else (value,)
    return (Fraction(0),)


def mismatches(
    claims: Sequence[Claim], figure: Callable[[str], Figure], *, thousandths: tuple[str, ...] = ()
) -> Iterator[Finding]:
    """Yield an error for each claim that differs from its recomputation by more than a millionth.

    Args:
        claims: what the tool reports.
        figure: its own figure by name, in its own unit.
        thousandths: how names begin whose unit is a thousand times that of the others: seconds among milliseconds.
    """
    for claim in claims:
        allowed, told = figure(claim.name), Fraction(Decimal(claim.value))
        scale = 1000 if claim.name.startswith(thousandths) else 1
        if allowed is None or any(_close(value * scale, told * scale) for value in allowed):
            continue
        message = f"the tool reports {claim.value}, its own definition over the raw data gives {float(allowed[0]):.9g}"
        yield Finding("claim_mismatch", "error", message, claim.name)


def below_bound(claims: Sequence[Claim], least: Callable[[str], Fraction | None]) -> Iterator[Finding]:
    """Yield an error for each claim that lies below what the raw data alone add up to."""
    for claim in claims:
        bound, told = least(claim.name), Fraction(Decimal(claim.value))
        if bound is not None and told < bound and not _close(bound, told):
            message = f"the tool reports {claim.value}, its raw data already add up to {float(bound):.9g}"
            yield Finding("claim_mismatch", "error", message, claim.name)


def _close(value: Fraction, told: Fraction) -> bool:
    return abs(value - told) <= _TOLERANCE * max(Fraction(1), abs(value))
