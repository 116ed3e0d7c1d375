"""What a trial's output tokens cost at a declared price. Exact."""

from __future__ import annotations

from moeplan.model.evidence import ServingTrial
from moeplan.model.observations import Price
from moeplan.model.tables import RequestTable
from moeplan.units import NS_PER_S, ceil_div

__all__ = ["cost_micros", "successful_output_tokens"]

_MILLION = 10**6
_NS_PER_HOUR = 3600 * NS_PER_S


def successful_output_tokens(requests: RequestTable) -> int:
    """Return the output tokens of complete requests whose tokens the server counted."""
    rows = zip(requests.output_tokens, requests.usage, requests.outcome, strict=True)
    return sum(tokens for tokens, usage, outcome in rows if outcome == "complete" and usage)


def cost_micros(price: Price, trial: ServingTrial, requests: RequestTable) -> int | None:
    """Return millionths of the currency for a million successful output tokens, rounded up; None without tokens."""
    tokens = successful_output_tokens(requests)
    if not tokens:
        return None
    spent = price.micros_per_accelerator_hour * price.accelerators * trial.duration_ns
    return ceil_div(_MILLION * spent, _NS_PER_HOUR * tokens)
