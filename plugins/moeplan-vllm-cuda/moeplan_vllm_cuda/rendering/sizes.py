"""How an engine is spread: the plan's sizes where it gives them, else the profile's, held against nodes and GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from moeplan_vllm.layout import Layout

from moeplan.errors import InputRefusedError, Issue
from moeplan.model.plan import Plan
from moeplan.units import ceil_div
from moeplan_vllm_cuda.data import read_data

__all__ = ["Sizes", "profile_data", "sizes_of"]

_TENSOR = "$.deployment.parallelism.tensorParallelSize"
_STAGES = "$.deployment.parallelism.pipelineParallelSize"
_DATA = "$.deployment.parallelism.dataParallelSize"
_EXPERT = "$.deployment.parallelism.expertParallelSize"


@attrs.frozen
class Sizes:
    """One engine: how it is cut, over how many nodes, with how many GPUs on each."""

    layout: Layout
    nodes: int
    gpus_per_node: int

    @property
    def local_data(self) -> int:
        """Return the data-parallel ranks of one node."""
        return self.layout.data // self.nodes if self.layout.data > 1 else 1


def profile_data(profile: str) -> Mapping[str, Any]:
    """Return how a profile is rendered; keys as in ``rendering/profiles.json``.

    Raises:
        InputRefusedError: there is no such profile.
    """
    known = read_data("rendering/profiles.json")["profiles"]
    if profile not in known:
        expected = ", ".join(sorted(known))
        raise InputRefusedError(Issue("$.profile", "unknown_profile", "no profile of this plugin", expected, profile))
    return dict(known[profile])


def sizes_of(plan: Plan, profile: str) -> Sizes:
    """Return the sizes of each role's engine; the roles of a pair share the plan's accelerators evenly.

    Raises:
        InputRefusedError: plan and profile do not go together; every reason.
    """
    data = profile_data(profile)
    roles, asked, per_node = len(data["roles"]), plan.target.requested_accelerators, plan.target.accelerators_per_node
    if asked % roles:
        told = f"{asked} accelerators for {roles} roles"
        raise InputRefusedError(_issue("$.target.requestedAccelerators", told, f"a multiple of {roles}"), source="plan")
    ranks = asked // roles
    nodes = ceil_div(ranks, per_node)
    made = Sizes(_layout(plan, data, ranks, nodes, per_node), nodes, min(ranks, per_node))
    issues = tuple(_faults(plan, data, made, ranks, per_node))
    if issues:
        raise InputRefusedError(*issues, source="plan")
    return made


def _layout(plan: Plan, data: Mapping[str, Any], ranks: int, nodes: int, per_node: int) -> Layout:
    given = plan.deployment.parallelism
    stages = given.pipeline_parallel_size or (nodes if data["cut"] == "stages" else 1)
    tensor = given.tensor_parallel_size
    if tensor is None:
        most = ranks // (stages * (given.data_parallel_size or 1))
        tensor = {"tensor": most, "data": 1}.get(data["cut"], min(per_node, most)) or 1
    replicas = given.data_parallel_size or max(1, ranks // (tensor * stages))
    asked = (given.expert_parallel_size or 1) > 1
    return Layout(tensor, stages, replicas, asked if data["experts"] is None else data["experts"])


def _faults(plan: Plan, data: Mapping[str, Any], made: Sizes, ranks: int, per_node: int) -> Iterator[Issue]:
    layout, given = made.layout, plan.deployment.parallelism
    if layout.ranks != ranks:
        told = f"TP {layout.tensor} x PP {layout.pipeline} x DP {layout.data} are {layout.ranks} ranks for one role"
        yield _issue(_TENSOR, told, f"{ranks} ranks")
    if data["several"] is not None and data["several"] != (made.nodes > 1):
        told = f"{ranks} accelerators, {per_node} a node, are {made.nodes} node(s)"
        yield _issue("$.target.requestedAccelerators", told, "several nodes" if data["several"] else "one node")
    elif made.nodes > 1 and ranks % per_node:
        told = f"{ranks} accelerators do not fill {made.nodes} nodes"
        yield _issue("$.target.requestedAccelerators", told, f"a multiple of {per_node}")
    yield from _shape_faults(data["cut"], made, per_node)
    experts = given.expert_parallel_size
    if experts not in (None, layout.tensor * layout.data if layout.expert else 1):
        expected = str(layout.tensor * layout.data) if layout.expert else "1, or none given"
        yield _issue(_EXPERT, f"expert parallel {experts} in this profile", expected)


def _shape_faults(cut: str, made: Sizes, per_node: int) -> Iterator[Issue]:
    layout = made.layout
    if (layout.pipeline > 1) != (cut == "stages"):
        yield _issue(_STAGES, f"{layout.pipeline} pipeline stage(s)", "several" if cut == "stages" else "1")
    if layout.data > 1 and cut in ("tensor", "stages"):
        yield _issue(_DATA, f"{layout.data} data-parallel ranks", "1 in this profile")
    if layout.data == 1 and cut == "data":
        yield _issue(_DATA, "one data-parallel rank", "several in this profile")
    if cut != "tensor" and layout.tensor > per_node:
        yield _issue(_TENSOR, f"tensor parallel {layout.tensor} over nodes of {per_node}", f"at most {per_node}")
    if cut == "stages" and made.nodes > 1 and layout.pipeline % made.nodes:
        yield _issue(_STAGES, f"{layout.pipeline} stages over {made.nodes} nodes", f"a multiple of {made.nodes}")
    if layout.data > 1 and layout.data % made.nodes:
        yield _issue(_DATA, f"{layout.data} data-parallel ranks on {made.nodes} nodes", f"a multiple of {made.nodes}")


def _issue(path: str, told: str, expected: str) -> Issue:
    return Issue(path, "plan_not_of_profile", told, expected, None, "change the plan, or choose another profile")
