"""Is this the subject the auditor expects? Without an expectation nothing is ready."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.evaluation.evidence_state import State
from moeplan.model.plan import Workload
from moeplan.model.policy import Expectations, WorkloadExpectation
from moeplan.model.verdict import Reason, Subject

__all__ = ["describe_subject", "unexpected"]


def describe_subject(state: State) -> Subject:
    """Return what the verdict is about, as far as the evidence agrees on it."""
    deployments = set(state.deployments.values())
    one = state.records[0].record.deployment if len(deployments) == 1 else None
    manifest, planned = state.evidence.checkpoint, state.plan.artifact.checkpoint
    root = manifest.root if manifest is not None else planned.root if planned is not None else None
    return Subject(
        model_id=state.plan.artifact.model_id,
        hardware_id=state.plan.target.hardware_id,
        accelerators=state.plan.target.requested_accelerators,
        runtime=state.plan.target.runtime,
        checkpoint_root=root,
        deployment=next(iter(deployments)) if one is not None else None,
        runtimes=tuple(sorted({runtime.digest for runtime in one.runtimes})) if one is not None else (),
    )


def unexpected(state: State, subject: Subject) -> Iterator[Reason]:
    """Yield each way in which the subject is not the one the policy expects."""
    expects = state.policy.expects
    if expects is None:
        yield Reason(code="unexpected_subject", message="the policy expects no subject; give it expects")
        return
    checks = [
        *_identity(state, subject, expects),
        *_workload(state.plan.workload, expects.workload),
    ]
    for name, holds in checks:
        if not holds:
            yield Reason(code="unexpected_subject", message=f"{name} is not what the policy expects")


def _identity(state: State, subject: Subject, expects: Expectations) -> Iterator[tuple[str, bool]]:
    yield "the checkpoint root", subject.checkpoint_root in expects.checkpoint_roots
    yield "the model", subject.model_id in expects.models
    yield "the hardware", subject.hardware_id in expects.hardware
    if expects.accelerators_at_most is not None:
        yield "the number of accelerators", subject.accelerators <= expects.accelerators_at_most
    reserve = state.plan.target.reserve_basis_points
    yield "the memory reserve", reserve >= expects.reserve_basis_points_at_least
    yield "the runtime identity", bool(subject.runtimes) and set(subject.runtimes) <= set(expects.runtimes)
    roots = {item.record.deployment.checkpoint_root for item in state.records}
    yield "the checkpoint of the evidence", roots <= {subject.checkpoint_root}
    yield "the registry", state.plan.registry.digest in expects.registries
    manifest, planned = state.evidence.checkpoint, state.plan.artifact.checkpoint
    if manifest is not None and planned is not None:
        yield "the plan's checkpoint", planned.root == manifest.root and planned.tensor_bytes == manifest.tensor_bytes


def _workload(workload: Workload, expects: WorkloadExpectation) -> Iterator[tuple[str, bool]]:
    yield "the input length", workload.input_tokens >= expects.input_tokens_at_least
    yield "the output length", workload.output_tokens >= expects.output_tokens_at_least
    yield "the concurrency", workload.concurrency >= expects.concurrency_at_least
    yield "the TTFT target", workload.target_ttft_ms <= expects.target_ttft_ms_at_most
    yield "the inter-token target", workload.target_inter_token_ms <= expects.target_inter_token_ms_at_most
    if expects.availability is not None:
        yield "the availability", workload.availability == expects.availability
    most, declared = expects.prefix_cache_share_basis_points_at_most, workload.prefix_cache_share_basis_points
    if most is not None:
        yield "the declared prefix-cache share", declared is not None and declared <= most
