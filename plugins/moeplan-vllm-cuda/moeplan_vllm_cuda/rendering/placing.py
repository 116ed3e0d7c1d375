"""What placement says of a layout, in words, and the refusal where nothing is left for the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moeplan_vllm.devices import GIB, find_device
from moeplan_vllm.layout import Layout
from moeplan_vllm.memory import Settings
from moeplan_vllm.placement import Placed, place
from moeplan_vllm.plan_placement import plan_model

from moeplan.errors import Issue
from moeplan.model.placement import Figure
from moeplan.model.plan import Plan

__all__ = ["NOTHING_LEFT", "place_roles", "shortages", "statement"]

NOTHING_LEFT = "C-MEM-008"
"""The fact that an engine without room for its cache does not start."""


def place_roles(plan: Plan, layout: Layout, settings: Mapping[str, Settings]) -> dict[str, Placed]:
    """Return each role's engine placed; the kernel is taken as stated where placement knows it."""
    import attrs

    model, device = plan_model(plan), find_device(plan.target.hardware_id)
    made = {}
    for role, one in settings.items():
        try:
            made[role] = place(model, layout, device, one, role)
        except KeyError:
            made[role] = place(model, layout, device, attrs.evolve(one, moe_backend=None), role)
    return made


def shortages(plan: Plan, placed: Mapping[str, Placed]) -> Iterator[tuple[str, Issue]]:
    """Yield, under its fact, each role whose weights leave less for the cache than the workload needs.

    What is taken is the upper bound: nothing off for activations, graphs and communication.
    """
    for role, one in placed.items():
        most, wanted = one.most_requests.value, plan.workload.concurrency
        if most is None or most >= wanted:
            continue
        weights, budget = one.role.weight_bytes.value, one.role.budget_bytes.value
        told = (
            f"{role}: weights of {_gib(weights)} a rank and a budget of {_gib(budget)} leave room for {most} request(s)"
        )
        if most == 0:
            told = f"{role}: weights take {_gib(weights)} a rank of {_gib(budget)}: nothing is left for the KV cache"
        step = f"another profile, more accelerators, or acknowledge {NOTHING_LEFT} in the site with the reason"
        yield NOTHING_LEFT, Issue("$.deployment.parallelism", "no_room", told, f"{wanted} request(s)", next=step)


def statement(plan: Plan, layout: Layout, placed: Mapping[str, Placed]) -> str:
    """Return what placement says of each role, one line each."""
    cut = f"TP {layout.tensor}, PP {layout.pipeline}, DP {layout.data}"
    cut += ", experts whole (expert parallel)" if layout.expert else ", experts cut"
    lines = [f"Each engine: {cut}. Figures are of the fullest rank and calculated, not measured."]
    for role, one in placed.items():
        lines.append(f"- {role}: {_figures(plan, one)}")
    return "\n".join(lines)


def _figures(plan: Plan, one: Placed) -> str:
    tokens = plan.workload.input_tokens + plan.workload.output_tokens
    parts = [
        f"weights {_amount(one.role.weight_bytes)} of a budget of {_amount(one.role.budget_bytes)}",
        f"beside them {_amount(one.overhead)} for activations, graphs and communication",
        f"KV cache for {_count(one.role.kv_tokens)} tokens of one data-parallel rank",
        f"that is {_count(one.role.concurrent_requests)} requests of {tokens} tokens in flight; "
        f"the plan wants {plan.workload.concurrency}",
    ]
    if one.role.replicated:
        parts.append(f"whole on each tensor-parallel rank: {', '.join(one.role.replicated)}")
    return "; ".join(parts) + "."


def _amount(figure: Figure) -> str:
    return f"{_gib(figure.value)} ({figure.certainty})" if figure.value is not None else f"unknown ({figure.statement})"


def _count(figure: Figure) -> str:
    return f"{figure.value} ({figure.certainty})" if figure.value is not None else "an unknown number of"


def _gib(value: int | None) -> str:
    """Return GiB to one place, rounded up."""
    if value is None:
        return "an unknown amount"
    tenths = -(-value * 10 // GIB)
    return f"{tenths // 10}.{tenths % 10} GiB"
