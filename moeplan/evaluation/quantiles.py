"""A quantile criterion: point estimate by nearest rank, order-statistic bound, and the batch test."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.catalogue.order_statistics import least_samples, nearest_rank, upper_bound_rank
from moeplan.evaluation.batches import batches_hold
from moeplan.evaluation.requests_needed import requests_for_bound
from moeplan.evaluation.samples import Group, Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["QuantileResult", "judge_quantile", "reported_quantile", "upper_tail"]

_SAMPLE_EVERY = 64


@attrs.frozen
class QuantileResult:
    """Outcome of one trial: ``observed`` is None where the quantile lies among lost values."""

    outcome: str
    observed: int | None
    bound: int | None
    samples: int
    reason: str | None
    requests_needed: int | None


def judge_quantile(groups: Sample | Sequence[Group], percent: int, limit: int) -> QuantileResult:
    """Judge one trial's values against a limit.

    Args:
        groups: one entry a request in start order; a failed request carries a lost value.
        percent: the quantile, 95 for p95.
        limit: largest accepted value, in the values' unit.

    Returns:
        ``fail`` when the nearest-rank quantile is above the limit, ``pass`` when the bound and the batch test hold,
        else ``inconclusive`` with the requests that would settle it at the observed share.
    """
    sample = Sample.of(groups)
    values, requests = sample.values, len(sample)
    count = len(values) + int(sample.lost.sum())
    if count == 0:
        return QuantileResult("inconclusive", None, None, 0, "no_values", None)
    point, rank = nearest_rank(count, percent), upper_bound_rank(count, percent)
    tail = upper_tail(values, point)
    observed = int(tail[0]) if len(tail) else None
    bound = int(tail[rank - point]) if rank is not None and rank <= len(values) else None
    if observed is None or observed > limit:
        return QuantileResult("fail", observed, bound, count, "above_limit", None)
    above = count - len(values) + len(tail) - bisect_right(tail, limit)
    share, values_a_request, least = Fraction(above, count), Fraction(count, requests), least_samples(percent)
    if rank is None or requests < least:
        needed = requests_for_bound(share, percent, values_a_request, least)
        return QuantileResult("inconclusive", observed, bound, count, "too_few_samples", needed or least)
    holds, for_batches = batches_hold(sample, percent, limit)
    if bound is not None and bound <= limit and holds:
        return QuantileResult("pass", observed, bound, count, None, None)
    reason = "bound_above_limit" if bound is None or bound > limit else "batches_vary"
    needed = (
        None
        if for_batches is None
        else requests_for_bound(share, percent, values_a_request, max(for_batches, requests + 1))
    )
    return QuantileResult("inconclusive", observed, bound, count, reason, needed)


def reported_quantile(groups: Sample | Sequence[Group], percent: int) -> QuantileResult:
    """Return the nearest-rank quantile of one trial's values, with its bound where the sample has one, without a limit.

    Inconclusive where there are no values, or the quantile lies among lost ones.
    """
    sample = Sample.of(groups)
    values = sample.values
    count = len(values) + int(sample.lost.sum())
    if count == 0:
        return QuantileResult("inconclusive", None, None, 0, "no_values", None)
    point, rank = nearest_rank(count, percent), upper_bound_rank(count, percent)
    tail = upper_tail(values, point)
    if not len(tail):
        return QuantileResult("inconclusive", None, None, count, "no_values", None)
    bound = int(tail[rank - point]) if rank is not None and rank <= len(values) else None
    return QuantileResult("pass", int(tail[0]), bound, count, None, None)


def upper_tail(values: NDArray[Any], rank: int) -> NDArray[Any]:
    """Return the values of ascending rank ``rank`` (from 1) and above, in order; sorts little more than those.

    A sorted sample gives a value that should lie just below; where it does not, everything is sorted.
    """
    import numpy as np

    tail = values
    if len(values) > _SAMPLE_EVERY**2:
        sample = np.sort(values[::_SAMPLE_EVERY])
        floor = sample[max(0, rank * len(sample) // len(values) - _SAMPLE_EVERY)]
        kept = values[values >= floor]
        if len(values) - len(kept) < rank:
            tail = kept
    return np.sort(tail)[max(0, rank - 1 - (len(values) - len(tail))) :]
