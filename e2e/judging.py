"""What must hold of the verdict at the end: all seven gates judged, or machine noise named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["NOISE", "complaints", "unjudged"]

NOISE = frozenset(
    {
        "batches_vary",
        "bound_above_limit",
        "client_bottleneck",
        "not_steady",
        "too_few_samples",
        "too_few_tokens",
    }
)
"""Reasons for which a shared or slow machine leaves a criterion inconclusive, whatever moeplan does."""
_NEVER_FAIL = ("artifact_integrity", "static_residency", "runtime_load")
"""Gates that no slow machine makes fail; one that fails here is a defect."""


def unjudged(verdict: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each criterion that was not judged, with its reason."""
    for gate in verdict["gates"]:
        for criterion in gate["criteria"]:
            if criterion["outcome"] == "inconclusive":
                yield criterion["id"], criterion.get("reason")


def complaints(verdict: Mapping[str, Any], *, strict: bool) -> list[str]:
    """Return what speaks against the verdict as that of a whole run.

    Args:
        verdict: the verdict document.
        strict: whether noise is no excuse either: for evidence that is to be kept.
    """
    found = [f"{name} is inconclusive: {reason}" for name, reason in unjudged(verdict) if strict or reason not in NOISE]
    gates = verdict["gates"]
    if len(gates) != 7 or any(not gate["criteria"] for gate in gates):
        found.append("there are not seven gates with criteria")
    found += [f"{gate['id']} is {gate['outcome']}" for gate in gates if gate["id"] in _NEVER_FAIL and _failed(gate)]
    bindings = {item["binding"] for gate in gates for item in gate["criteria"] if item["id"].startswith("sla.")}
    if bindings - {None} != {"loaded"}:
        found.append(f"workload_sla is bound {sorted(map(str, bindings))}, and 'loaded' was expected")
    return found


def _failed(gate: Mapping[str, Any]) -> bool:
    return gate["outcome"] in ("fail", "blocked")
