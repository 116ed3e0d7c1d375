"""The seven gates: what each is for, and the evidence it asks for, in their order."""

from __future__ import annotations

from typing import NamedTuple

from moeplan.model.plan import GATE_IDS

__all__ = ["GATES", "GateDefinition"]


class GateDefinition(NamedTuple):
    """One gate. ``{runtime}`` in an objective stands for the runtime's name."""

    id: str
    title: str
    objective: str
    required_evidence: tuple[str, ...]


_ALL = (
    GateDefinition(
        "artifact_integrity",
        "Pin the artifact",
        "Tie whatever is found later to the very checkpoint bytes being judged.",
        ("manifest of the artifact", "proof of the revision", "digests of the contents"),
    ),
    GateDefinition(
        "static_residency",
        "Meet the static memory floor",
        "Turn away topologies too small for the tensors of the pinned checkpoint.",
        ("tensor bytes of the artifact", "memory the vendor states for an accelerator", "reserve that was declared"),
    ),
    GateDefinition(
        "runtime_load",
        "Show that the runtime loads it",
        "Start {runtime} with exactly this artifact on the topology declared.",
        ("logs of the runtime", "record of the environment", "outcome of the start"),
    ),
    GateDefinition(
        "memory_envelope",
        "Measure memory in full",
        "Put resident and peak memory as observed in place of the static floor.",
        ("telemetry of memory", "description of the workload", "time series as recorded"),
    ),
    GateDefinition(
        "workload_sla",
        "Run the target workload",
        "Find the latency and throughput that the stated workload really gets.",
        ("timings of every request", "throughput over time", "findings on errors and quality"),
    ),
    GateDefinition(
        "routing_health",
        "Look into expert routing",
        "Bring out imbalance between experts and limits of communication that total throughput conceals.",
        ("counters of the experts", "telemetry of the router", "trace of the communication"),
    ),
    GateDefinition(
        "economics_resilience",
        "Establish cost and resilience",
        "Relate cost and behavior under failure to work that succeeded.",
        ("prices that were assumed", "number of tokens that succeeded", "timeline of the failure"),
    ),
)

GATES: dict[str, GateDefinition] = {gate.id: gate for gate in _ALL}
"""Every gate by id, in order."""

if tuple(GATES) != GATE_IDS:
    raise AssertionError("gates out of order")
