"""Criteria that vLLM's plugins add to a plan's gates, as data: what proves speculation and the hand-over of KV cache.

A correct answer proves neither. What proves the hand-over are the counters of each decode process, from
``moeplan collect metrics --endpoint decode=URL``; without them its criteria are inconclusive.
"""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.model.plan import Plan
from moeplan.model.plugin import OfferedCriterion

__all__ = ["offered_criteria"]

HANDED_OVER_BASIS_POINTS = 9800
"""Least share of prompt tokens that decode takes from prefill. Source: R-SMK-005; runs gave 98.9 to 99.9 %."""


def offered_criteria(plugin: str, plan: Plan) -> tuple[OfferedCriterion, ...]:
    """Return the criteria for a plan's deployment: one for a draft, two for prefill and decode apart.

    Args:
        plugin: the plugin's name, which begins each id.
        plan: the plan; a draft is its ``draftCheckpointRoot``, a pair its roles.
    """
    return (*_speculation(plugin, plan), *_hand_over(plugin, plan))


def _speculation(plugin: str, plan: Plan) -> Iterator[OfferedCriterion]:
    if plan.deployment.draft_checkpoint_root is not None:
        yield OfferedCriterion(
            gate="runtime_load",
            id=f"{plugin}.draft_never_eager",
            metric="draft_eager_log_lines",
            aggregation="sum",
            comparator="eq",
            limit=0,
            unit="count",
            evidence_types=("runtime_load",),
            min_binding="declared",
            clause="speculation",
        )


def _hand_over(plugin: str, plan: Plan) -> Iterator[OfferedCriterion]:
    if {"prefill", "decode"} <= {role.role for role in plan.deployment.roles}:
        yield OfferedCriterion(
            gate="workload_sla",
            id=f"{plugin}.kv_handed_over",
            metric="external_prefix_cache_hit_basis_points",
            aggregation="all_records",
            comparator="ge",
            limit=HANDED_OVER_BASIS_POINTS,
            unit="basis_points",
            evidence_types=("memory_series",),
            min_binding="declared",
            clause="hand_over",
        )
        yield OfferedCriterion(
            gate="workload_sla",
            id=f"{plugin}.decode_prefills_nothing",
            metric="decode_prompt_tokens_computed_basis_points",
            aggregation="all_records",
            comparator="le",
            limit=10_000 - HANDED_OVER_BASIS_POINTS,
            unit="basis_points",
            evidence_types=("memory_series",),
            min_binding="declared",
            clause="hand_over",
        )
