"""plan(registry, scenario) -> Plan: pure. The same inputs give the same plan on every machine."""

from __future__ import annotations

from functools import lru_cache

from moeplan.catalogue.registries import find_accelerator, find_compatibility, find_model, registry_digest
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import (
    Artifact,
    CheckpointRef,
    Plan,
    RegistryRef,
    Reproducibility,
    Scenario,
    Target,
    Workload,
)
from moeplan.model.registry import Accelerator, Registry
from moeplan.planning.command_line import command_line
from moeplan.planning.gates import build_gates
from moeplan.planning.residency import model_residency
from moeplan.planning.scenario import api_path, normalise_runtime, scenario_key
from moeplan.planning.statements import (
    ASSUMPTIONS,
    EVIDENCE_POLICY,
    build_dimensions,
    build_next_action,
    build_readiness,
    build_risks,
)
from moeplan.version import GENERATOR

__all__ = ["OPEN_DEPLOYMENT", "plan"]

OPEN_DEPLOYMENT = DeploymentSpec(None, Parallelism(None, None, None, None), None, None, (RoleSpec("serve", None),))
"""The deployment of a plan that decides nothing about it: one role, every part open."""


def plan(registry: Registry, scenario: Scenario) -> Plan:
    """Return the deployment validation plan for a scenario. No clock, no network, no file, no plugin.

    Nothing in the plan is measured: the memory floor is calculated in exact integers, everything else is a protocol.

    Args:
        registry: from :func:`moeplan.load_registry`.
        scenario: what is asked; its None values take the registry's defaults.

    Raises:
        InputError: a name that the registry does not hold, a runtime that is none, a reserve that leaves no memory.
    """
    model = find_model(registry, scenario.model)
    hardware = find_accelerator(registry, scenario.hardware)
    target = _target(registry, scenario, hardware)
    workload = _workload(
        scenario.input_tokens,
        scenario.output_tokens,
        scenario.concurrency,
        scenario.target_ttft_ms,
        scenario.target_inter_token_ms,
        scenario.availability,
        scenario.prefix_cache_share_basis_points,
    )
    residency = model_residency(
        model,
        hardware,
        scenario.checkpoint,
        target.reserve_basis_points,
        target.requested_accelerators,
        target.accelerators_per_node,
    )
    record = find_compatibility(registry, model.id, hardware.id, target.runtime)
    compatibility = "unknown" if record is None else record.status
    unsupported = compatibility == "unsupported"
    deployment = OPEN_DEPLOYMENT if scenario.deployment is None else scenario.deployment
    floor = (residency.minimum_accelerators, residency.rounded_accelerators, target.accelerators_per_node)
    return Plan(
        generator=GENERATOR,
        scenario_key=scenario_key(model.id, target, workload),
        registry=_registry_ref(registry.registry_version, registry_digest(registry)),
        artifact=_artifact(
            model.id, model.name, model.repository, model.revision, model.manifest_url, scenario.checkpoint
        ),
        target=target,
        workload=workload,
        objectives=scenario.objectives,
        deployment=deployment,
        evidence_policy=EVIDENCE_POLICY,
        readiness=build_readiness(residency.status, compatibility),
        residency=residency,
        dimensions=build_dimensions(residency.status, unsupported, *floor),
        risks=build_risks(residency.status, compatibility, target.runtime),
        validation_gates=build_gates(
            f"{model.repository}@{model.revision}",
            None if scenario.checkpoint is None else scenario.checkpoint.root,
            target,
            workload,
            scenario.objectives,
            deployment,
            residency,
            unsupported,
        ),
        next_action=build_next_action(residency.status, unsupported, residency.tensor_bytes is not None, *floor),
        reproducibility=Reproducibility(
            command_line(model.id, target, workload, scenario.objectives, scenario.checkpoint is not None, deployment),
            api_path(model.id, target, workload),
            ASSUMPTIONS,
        ),
    )


def _target(registry: Registry, scenario: Scenario, hardware: Accelerator) -> Target:
    per_node, reserve = scenario.devices_per_node, scenario.reserve_basis_points
    return Target(
        hardware.id,
        hardware.name,
        normalise_runtime(scenario.runtime),
        scenario.devices,
        registry.defaults.accelerators_per_node if per_node is None else per_node,
        registry.defaults.reserve_basis_points if reserve is None else reserve,
    )


@lru_cache(maxsize=4096)
def _workload(
    input_tokens: int,
    output_tokens: int,
    concurrency: int,
    target_ttft_ms: int,
    target_inter_token_ms: int,
    availability: str,
    prefix_cache_share: int | None,
) -> Workload:
    return Workload(
        input_tokens,
        output_tokens,
        concurrency,
        target_ttft_ms,
        target_inter_token_ms,
        availability,
        prefix_cache_share,
    )


@lru_cache(maxsize=256)
def _artifact(
    id: str, name: str, repository: str, revision: str, manifest_url: str | None, checkpoint: CheckpointRef | None
) -> Artifact:
    return Artifact(id, name, repository, revision, manifest_url, checkpoint)


@lru_cache(maxsize=64)
def _registry_ref(version: str, digest: str) -> RegistryRef:
    return RegistryRef(version, digest)
