"""One core criterion: a declarative rule with the limit that the scenario sets."""

from __future__ import annotations

from moeplan.model.plan import Criterion, SampleNeed

__all__ = ["Criteria", "criterion"]

Criteria = tuple[Criterion, ...]


def criterion(
    clause: str,
    id: str,
    metric: str,
    aggregation: str,
    comparator: str,
    limit: int | str | None,
    unit: str,
    types: tuple[str, ...],
    binding: str = "declared",
    need: tuple[int, int] | None = None,
) -> Criterion:
    """Return one criterion of the core; ``need`` is the requests and seconds that a trial needs at least."""
    samples = None if need is None else SampleNeed(*need)
    return Criterion(
        id,
        metric,
        aggregation,
        comparator,
        limit,
        unit,
        types,
        binding,
        "inconclusive",
        "moeplan",
        clause,
        samples,
    )
