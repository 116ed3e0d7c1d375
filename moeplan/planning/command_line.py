"""The command line that makes a plan again."""

from __future__ import annotations

from moeplan.model.deployment import DeploymentSpec, RoleSpec
from moeplan.model.plan import Target, Workload

__all__ = ["command_line"]

_PARALLEL = ("tensor", "pipeline", "data", "expert")


def command_line(
    model_id: str, target: Target, workload: Workload, checkpointed: bool, deployment: DeploymentSpec
) -> str:
    """Return ``moeplan plan …`` with every value written out.

    Args:
        model_id: the model's id.
        target: the accelerators and the runtime.
        workload: what is to be served.
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
        f"{_further(workload, checkpointed, deployment)} --json"
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


def _role(role: RoleSpec) -> str:
    if role.runtime is None:
        return f"--role {role.role}"
    if role.role != "serve":
        return f"--role {role.role}={role.runtime.digest}"
    return f"--runtime-{'image' if role.runtime.form == 'oci_image' else 'packages'} {role.runtime.digest}"
