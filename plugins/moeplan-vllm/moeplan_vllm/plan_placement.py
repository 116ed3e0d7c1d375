"""A plan's placement: its model, sizes and accelerator looked up, each role placed with its own arguments."""

from __future__ import annotations

from collections.abc import Mapping

from moeplan.model.placement import Placement
from moeplan.model.plan import Plan
from moeplan_vllm.devices import find_device
from moeplan_vllm.layout import Layout
from moeplan_vllm.memory import Settings
from moeplan_vllm.models import Model, find_model
from moeplan_vllm.placement import Placed, place, unplaced

__all__ = ["place_plan", "plan_layout", "plan_model", "plan_placement"]


def plan_model(plan: Plan) -> Model:
    """Return the plan's model; one whose shape is in no source has its name alone, and all its figures are unknown."""
    return find_model(plan.artifact.repository) or Model(repository=plan.artifact.repository)


def plan_layout(plan: Plan) -> Layout | None:
    """Return the plan's sizes, or None where it leaves the tensor-parallel size open; other sizes open are 1."""
    sizes = plan.deployment.parallelism
    if sizes.tensor_parallel_size is None:
        return None
    return Layout(
        tensor=sizes.tensor_parallel_size,
        pipeline=sizes.pipeline_parallel_size or 1,
        data=sizes.data_parallel_size or 1,
        expert=(sizes.expert_parallel_size or 1) > 1,
    )


def place_plan(plan: Plan, settings: Mapping[str, Settings], layout: Layout) -> dict[str, Placed]:
    """Return each role of the plan placed.

    Args:
        plan: the plan.
        settings: what each role's arguments say; a role without an entry is left out.
        layout: the engine's sizes, :func:`plan_layout` or a profile's own.
    """
    model, device = plan_model(plan), find_device(plan.target.hardware_id)
    roles = [role.role for role in plan.deployment.roles]
    return {role: place(model, layout, device, settings[role], role) for role in roles if role in settings}


def plan_placement(plan: Plan, settings: Mapping[str, Settings], layout: Layout | None) -> Placement:
    """Return what the hook ``moeplan_placement`` answers: every role of the plan.

    Arguments are as for :func:`place_plan`; a layout of None or a role without settings gives figures that are not
    known and say so.
    """
    placed = place_plan(plan, settings, layout) if layout is not None else {}
    ranks = layout.ranks if layout is not None else plan.target.requested_accelerators
    reason = "the plan leaves the parallel sizes open" if layout is None else "no arguments for this role"
    roles = [role.role for role in plan.deployment.roles]
    return Placement(tuple(placed[role].role if role in placed else unplaced(role, ranks, reason) for role in roles))
