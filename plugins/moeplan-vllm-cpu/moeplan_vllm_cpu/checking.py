"""Holds a plan against a site, and offers the criterion that a CPU host adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moeplan_vllm.devices import find_device

from moeplan.facts.judge import Hit, finding_of
from moeplan.facts.values import Place
from moeplan.model.plan import Plan
from moeplan.model.plugin import OfferedCriterion, PluginFinding
from moeplan_vllm_cpu.facts import all_facts
from moeplan_vllm_cpu.rules import GIB

__all__ = ["KV_GIB", "check", "criteria", "ranks"]

KV_GIB = 4
"""GiB of KV cache a rank, where nothing says more: what vLLM took itself.
Source: vllm-project/vllm@0031bf2 vllm/platforms/cpu.py."""


def ranks(plan: Plan) -> int:
    """Return the plan's tensor-parallel size; one that is left open is 1."""
    return plan.deployment.parallelism.tensor_parallel_size or 1


def check(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Return what speaks against the plan on this site."""
    found = (finding_of(all_facts()[fact], hit) for fact, hit in _hits(plan, site))
    return tuple(finding for finding in found if finding is not None)


def _hits(plan: Plan, site: Mapping[str, Any]) -> Iterator[tuple[str, Hit]]:
    if find_device(plan.target.hardware_id) is not None:
        told = f"the plan is for {plan.target.hardware_id}, and the engine runs on CPUs"
        yield "CPU-PLAN-001", Hit(Place("plan", "$.target.hardwareId"), told)
    sizes = plan.deployment.parallelism
    others = [size for size in (sizes.pipeline_parallel_size, sizes.data_parallel_size) if size not in (None, 1)]
    if others:
        told = "the plan has pipeline or data parallelism, and the profile is one engine"
        yield "CPU-PLAN-002", Hit(Place("plan", "$.deployment.parallelism"), told)
    if plan.target.requested_accelerators > plan.target.accelerators_per_node:
        told = f"the plan takes {plan.target.requested_accelerators} hosts, and the profile is one node"
        yield "CPU-PLAN-002", Hit(Place("plan", "$.target.requestedAccelerators"), told)
    needed = (plan.residency.tensor_bytes or 0) + KV_GIB * GIB * ranks(plan)
    for index, memory in _host_memory(site):
        if needed > memory:
            told = f"weights and {KV_GIB} GiB of KV cache a rank take {needed} bytes, and the host has {memory}"
            yield "CPU-MEM-001", Hit(Place("site", f"$.nodes[{index}].hostMemoryBytes"), told)


def criteria(plan: Plan, site: Mapping[str, Any]) -> tuple[OfferedCriterion, ...]:
    """Return the criterion that the engine stays within the memory of the smallest host, where the site tells it.

    On a CPU host the device's memory is the host's, which others use too; the registry knows nothing of them.
    """
    known = [memory for _, memory in _host_memory(site)]
    if not known:
        return ()
    return (
        OfferedCriterion(
            gate="memory_envelope",
            id="vllm-cpu.host_memory",
            metric="device_memory_peak_bytes",
            aggregation="all_records",
            comparator="le",
            limit=min(known),
            unit="bytes",
            evidence_types=("memory_series",),
            min_binding="declared",
            clause="host_memory",
        ),
    )


def _host_memory(site: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield each node whose memory is known, by its place, with the bytes it has."""
    nodes = site.get("nodes")
    for index, node in enumerate(nodes if isinstance(nodes, list | tuple) else ()):
        memory = node.get("hostMemoryBytes")
        if memory is not None:
            yield index, memory
