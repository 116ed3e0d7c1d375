"""How many requests a trial needs for a quantile criterion, and how long they take at target speed."""

from __future__ import annotations

from moeplan.catalogue.order_statistics import least_samples
from moeplan.errors import InputError, Issue
from moeplan.model.plan import SampleNeed
from moeplan.units import MAX_SAFE_INTEGER, ceil_div

__all__ = ["sample_need"]


def sample_need(
    percent: int, concurrency: int, target_ttft_ms: int, target_inter_token_ms: int, output_tokens: int
) -> SampleNeed:
    """Return the least requests and the seconds they take, both exact.

    Every request is taken to last TTFT + (output tokens - 1) × inter-token time, ``concurrency`` of them at once;
    the seconds are rounded up.

    Raises:
        InputError: longer than an exact integer holds.
    """
    requests = least_samples(percent)
    one_ms = target_ttft_ms + (output_tokens - 1) * target_inter_token_ms
    seconds = ceil_div(ceil_div(requests, concurrency) * one_ms, 1000)
    if seconds > MAX_SAFE_INTEGER:
        raise InputError(
            Issue(
                "$.outputTokens",
                "workload_too_long",
                "a trial at target speed would take longer than can be counted",
                f"at most {MAX_SAFE_INTEGER} seconds",
                str(seconds),
                "lower the output tokens or the inter-token target",
            )
        )
    return SampleNeed(requests, seconds)
