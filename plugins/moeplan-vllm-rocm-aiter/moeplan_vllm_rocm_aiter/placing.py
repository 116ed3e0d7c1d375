"""Placement: bytes a rank of each role, from what its combination's arguments say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moeplan_vllm.layout import Layout
from moeplan_vllm.memory import Settings
from moeplan_vllm.plan_placement import place_plan, plan_layout, plan_placement

from moeplan.model.placement import Figure, Placement
from moeplan.model.plan import Plan
from moeplan.units import format_bytes
from moeplan_vllm_rocm_aiter.shapes import DRAFT_BYTES, GPUS_A_ROLE, Shape, shape_of

__all__ = ["fit_faults", "placement"]

_EXPERTS = "aiter_bf16"
"""The experts' kernel: AITER's, with SiTU and 128-wide tiles. Source: fact R-ENV-022; vLLM 0.32.0 oracle/mxfp4.py.

It cuts Kimi-K3 at TP 8 without padding, as the 190 GB a rank of fact R-ARG-025 say.
"""


def _shape(plan: Plan, site: Mapping[str, Any]) -> Shape | None:
    profile = site.get("profile") or plan.deployment.profile
    return None if profile is None else shape_of(profile)


def _settings(plan: Plan, shape: Shape) -> dict[str, Settings]:
    one = Settings(
        utilisation=shape.utilisation,
        request_tokens=plan.workload.input_tokens + plan.workload.output_tokens,
        batched_tokens=shape.batched_tokens,
        sequences=shape.max_num_seqs,
        moe_backend=_EXPERTS,
        draft_bytes=DRAFT_BYTES if shape.draft else None,
    )
    return dict.fromkeys((role.role for role in plan.deployment.roles), one)


def _layout(plan: Plan) -> Layout:
    """Return the plan's sizes, or the only ones that the recipes were run with."""
    return plan_layout(plan) or Layout(tensor=GPUS_A_ROLE)


def placement(plan: Plan, site: Mapping[str, Any]) -> Placement:
    """Return where the plan puts tensors and KV cache; of a profile that is no recipe's nothing is known."""
    shape = _shape(plan, site)
    return plan_placement(plan, {} if shape is None else _settings(plan, shape), _layout(plan))


def fit_faults(plan: Plan, shape: Shape) -> Iterator[tuple[str, str]]:
    """Yield what does not fit into a rank's share of its device, and how severe that is.

    Only figures that are exact or calculated make it an error: estimates never call a combination impossible.
    """
    for role, placed in place_plan(plan, _settings(plan, shape), _layout(plan)).items():
        weights, budget, most = placed.role.weight_bytes, placed.role.budget_bytes, placed.most_requests
        if weights.value is not None and budget.value is not None and weights.value > budget.value:
            there, room = format_bytes(weights.value), format_bytes(budget.value)
            told = f"{role}: {there} of weights a rank, the engine may take {room}"
            yield told, _severity(weights, budget)
        elif most.value is not None and plan.workload.concurrency > most.value:
            told = (
                f"{role}: KV for {most.value} requests of this length at most, {plan.workload.concurrency} are planned"
            )
            yield told, _severity(most)


def _severity(*figures: Figure) -> str:
    return "error" if all(figure.certainty in ("exact", "calculated") for figure in figures) else "warning"
