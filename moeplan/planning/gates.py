"""The seven gates of a plan: status from the decision, criteria from the scenario, sentences from the criteria.

Each gate is remembered by the values it depends on, so that a sweep builds it once.
"""

from __future__ import annotations

from functools import lru_cache

from moeplan.catalogue.gates import GATES
from moeplan.model.deployment import DeploymentSpec
from moeplan.model.plan import GATE_IDS, Criterion, Gate, Objectives, Residency, Target, Workload
from moeplan.planning import criteria
from moeplan.planning.sentences import Facts, acceptance_sentences
from moeplan.units import MAX_SAFE_INTEGER

__all__ = ["build_gates"]

_KEPT = 4096
_NONE = Facts()


def build_gates(
    identity: str,
    checkpoint_root: str | None,
    target: Target,
    workload: Workload,
    objectives: Objectives,
    deployment: DeploymentSpec,
    residency: Residency,
    unsupported: bool,
) -> tuple[Gate, ...]:
    """Return the seven gates in order.

    A floor that fails blocks gates 2 to 7; an unsupported configuration blocks gates 3 to 7.
    """
    floor = {"pass": "calculated_pass", "fail": "blocked", "unknown": "required"}[residency.status]
    later = "blocked" if unsupported or residency.status == "fail" else "required"
    return (
        _artifact(identity, checkpoint_root),
        _residency(floor, target.requested_accelerators, residency.usable_bytes_requested, target.reserve_basis_points),
        _load(later, target.runtime, objectives.ready_within_seconds, deployment),
        _memory(
            later,
            residency.bytes_per_accelerator,
            workload.input_tokens,
            workload.output_tokens,
            workload.concurrency,
        ),
        _sla(
            later,
            workload.target_ttft_ms,
            workload.target_inter_token_ms,
            workload.concurrency,
            workload.input_tokens,
            workload.output_tokens,
            workload.prefix_cache_share_basis_points,
            objectives,
            deployment.draft_checkpoint_root is not None,
        ),
        _routing(later, objectives),
        _economics(later, workload.availability, objectives),
    )


def _gate(id: str, status: str, rules: tuple[Criterion, ...], facts: Facts = _NONE, runtime: str = "") -> Gate:
    definition = GATES[id]
    return Gate(
        id,
        GATE_IDS.index(id) + 1,
        status,
        definition.title,
        definition.objective.replace("{runtime}", runtime),
        acceptance_sentences(rules, facts),
        definition.required_evidence,
        rules,
    )


@lru_cache(maxsize=_KEPT)
def _artifact(identity: str, root: str | None) -> Gate:
    return _gate("artifact_integrity", "required", criteria.artifact_criteria(identity, root))


@lru_cache(maxsize=_KEPT)
def _residency(status: str, requested: int, usable_bytes: int | None, reserve_basis_points: int) -> Gate:
    rules = criteria.residency_criteria(requested, usable_bytes)
    return _gate("static_residency", status, rules, Facts(reserve_basis_points=reserve_basis_points))


@lru_cache(maxsize=_KEPT)
def _load(status: str, runtime: str, ready_within_s: int, deployment: DeploymentSpec) -> Gate:
    rules = criteria.load_criteria(ready_within_s, deployment)
    return _gate("runtime_load", status, rules, runtime=runtime)


@lru_cache(maxsize=_KEPT)
def _memory(status: str, device_bytes: int | None, input_tokens: int, output_tokens: int, concurrency: int) -> Gate:
    tokens = concurrency * (input_tokens + output_tokens)
    facts = Facts(input_tokens=input_tokens, output_tokens=output_tokens, concurrency=concurrency)
    return _gate(
        "memory_envelope",
        status,
        criteria.memory_criteria(device_bytes, tokens if tokens <= MAX_SAFE_INTEGER else None),
        facts,
    )


@lru_cache(maxsize=_KEPT)
def _sla(
    status: str,
    target_ttft_ms: int,
    target_inter_token_ms: int,
    concurrency: int,
    input_tokens: int,
    output_tokens: int,
    prefix_cache_share: int | None,
    objectives: Objectives,
    speculative: bool,
) -> Gate:
    rules = criteria.sla_criteria(
        target_ttft_ms,
        target_inter_token_ms,
        concurrency,
        input_tokens,
        output_tokens,
        prefix_cache_share,
        objectives,
        speculative,
    )
    return _gate("workload_sla", status, rules)


@lru_cache(maxsize=_KEPT)
def _routing(status: str, objectives: Objectives) -> Gate:
    return _gate("routing_health", status, criteria.routing_criteria(objectives))


@lru_cache(maxsize=_KEPT)
def _economics(status: str, availability: str, objectives: Objectives) -> Gate:
    return _gate("economics_resilience", status, criteria.economics_criteria(availability, objectives))
