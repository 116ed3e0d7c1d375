"""The command line that makes a plan again."""

from __future__ import annotations

from moeplan.model.deployment import DeploymentSpec, RoleSpec
from moeplan.model.plan import NO_OBJECTIVES, Objectives, Target, Workload

__all__ = ["OBJECTIVE_OPTIONS", "command_line"]

OBJECTIVE_OPTIONS = {
    "ready_within_seconds": "--ready-within",
    "goodput_basis_points_at_least": "--goodput-at-least",
    "expert_load_ratio_basis_points_at_most": "--expert-load-ratio-at-most",
    "cost_micros_per_million_tokens_at_most": "--cost-at-most",
    "restart_within_seconds": "--restart-within",
    "energy_millijoules_per_token_at_most": "--energy-at-most",
}
"""Option of ``moeplan plan`` by attribute of :class:`~moeplan.model.plan.Objectives`."""
_PARALLEL = ("tensor", "pipeline", "data", "expert")


def command_line(
    model_id: str,
    target: Target,
    workload: Workload,
    objectives: Objectives,
    checkpointed: bool,
    deployment: DeploymentSpec,
) -> str:
    """Return ``moeplan plan …`` with every value written out.

    Args:
        model_id: the model's id.
        target: the accelerators and the runtime.
        workload: what is to be served.
        objectives: what is asked beside it.
        checkpointed: whether the plan was made for an exact checkpoint, whose manifest then goes by its usual name.
        deployment: what it decides. Criteria that plugins added are not told: they need the site.
    """
    return (
        f"moeplan plan {model_id} {target.hardware_id} --devices {target.requested_accelerators}"
        f" --devices-per-node {target.accelerators_per_node} --reserve-bps {target.reserve_basis_points}"
        f" --runtime {target.runtime} --input-tokens {workload.input_tokens}"
        f" --output-tokens {workload.output_tokens} --concurrency {workload.concurrency}"
        f" --target-ttft-ms {workload.target_ttft_ms} --target-inter-token-ms {workload.target_inter_token_ms}"
        f" --availability {workload.availability}"
        f"{_further(workload, checkpointed, deployment)}{_objectives(objectives)} --json"
    )


def _further(workload: Workload, checkpointed: bool, deployment: DeploymentSpec) -> str:
    words = []
    share = workload.prefix_cache_share_basis_points
    if share is not None:
        words.append(f" --prefix-cache-share-bps {share}")
    for name in _PARALLEL:
        size = getattr(deployment.parallelism, f"{name}_parallel_size")
        if size is not None:
            words.append(f" --{name}-parallel-size {size}")
    if deployment.precision is not None:
        words.append(f" --precision {deployment.precision}")
    if deployment.profile is not None:
        words.append(f" --profile {deployment.profile}")
    if deployment.draft_checkpoint_root is not None:
        words.append(f" --draft {deployment.draft_checkpoint_root}")
    words += [f" {_role(role)}" for role in deployment.roles if role.runtime is not None or role.role != "serve"]
    if checkpointed:
        words.append(" --checkpoint checkpoint.json")
    return "".join(words)


def _objectives(objectives: Objectives) -> str:
    words = [
        f" {option} {getattr(objectives, name)}"
        for name, option in OBJECTIVE_OPTIONS.items()
        if getattr(objectives, name) != getattr(NO_OBJECTIVES, name)
    ]
    words += [
        f" --quality {item.task}:{item.metric}:{item.correct}/{item.documents}:{item.margin_basis_points}"
        for item in objectives.quality
    ]
    return "".join(words)


def _role(role: RoleSpec) -> str:
    if role.runtime is None:
        return f"--role {role.role}"
    if role.role != "serve":
        return f"--role {role.role}={role.runtime.digest}"
    return f"--runtime-{'image' if role.runtime.form == 'oci_image' else 'packages'} {role.runtime.digest}"
