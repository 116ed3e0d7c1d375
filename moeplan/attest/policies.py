"""Write a policy from the auditor's own inputs, and say in sentences what a policy demands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moeplan.errors import InputError, Issue, escape
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.plan import GATE_IDS, Plan
from moeplan.model.policy import Expectations, LeastBinding, Policy, Signer, WorkloadExpectation
from moeplan.units import format_basis_points, format_count

__all__ = ["DEFAULT_BINDINGS", "expect_subject", "explain_policy", "make_signer"]

_OF_THE_MANIFEST = ("artifact_integrity", "static_residency")
DEFAULT_BINDINGS = tuple(LeastBinding(gate, "revision" if gate in _OF_THE_MANIFEST else "hashed") for gate in GATE_IDS)
"""What ``policy init`` demands: files hashed on every serving node before the load; the revision where the evidence is
the checkpoint manifest, which no node's hashing binds more strongly. That the files were hashed before the load is a
criterion of ``artifact_integrity`` itself, with ``hashed`` as its own least binding."""

_BINDING_WORDS = {
    "declared": "may be declared only",
    "revision": "must name the immutable revision",
    "hashed": "must come from nodes whose files were hashed before the engine started",
    "loaded": "must come from an engine that hashed the bytes while loading",
}
_ROLE_WORDS = {"runner": "sign measurements", "packer": "sign the bundle's index", "verifier": "sign verdicts"}


def make_signer(
    name: str,
    pem: bytes,
    roles: Sequence[str],
    expected_fingerprint: str | None = None,
    *,
    source: str | None = None,
) -> Signer:
    """Return a policy's signer for a public key in PEM.

    Raises:
        InputError: not a usable public key, or not the one ``expected_fingerprint`` names.
    """
    from moeplan.signing.keys import fingerprint, load_public_key, public_pem

    key = load_public_key(pem, source=source or name)
    found = fingerprint(key)
    if expected_fingerprint is not None and expected_fingerprint != found:
        raise InputError(
            Issue(
                "--fingerprint",
                "fingerprint_mismatch",
                "the key is another than you expect",
                escape(expected_fingerprint, 80),
                found,
                "ask the signer for the key over a way you trust",
            )
        )
    return Signer(id=name, roles=tuple(roles), fingerprint=found, public_key=public_pem(key))


def expect_subject(plan: Plan, checkpoint: CheckpointManifest | None, runtimes: Sequence[str]) -> Expectations:
    """Return expectations of exactly the subject of a plan that the auditor made or accepted.

    Args:
        plan: the auditor's plan; its model, hardware, registry, workload and targets are expected, none looser.
        checkpoint: the checkpoint expected; else the plan's own.
        runtimes: digests of the images, or of the distributions, that may serve.
    """
    planned = plan.artifact.checkpoint
    roots = [checkpoint.root] if checkpoint is not None else [planned.root] if planned is not None else []
    named = [role.runtime.digest for role in plan.deployment.roles if role.runtime is not None]
    return Expectations(
        checkpoint_roots=tuple(roots),
        models=(plan.artifact.model_id,),
        hardware=(plan.target.hardware_id,),
        accelerators_at_most=plan.target.requested_accelerators,
        reserve_basis_points_at_least=plan.target.reserve_basis_points,
        runtimes=tuple(sorted({*runtimes, *named})),
        registries=(plan.registry.digest,),
        workload=WorkloadExpectation(
            input_tokens_at_least=plan.workload.input_tokens,
            output_tokens_at_least=plan.workload.output_tokens,
            concurrency_at_least=plan.workload.concurrency,
            target_ttft_ms_at_most=plan.workload.target_ttft_ms,
            target_inter_token_ms_at_most=plan.workload.target_inter_token_ms,
            prefix_cache_share_basis_points_at_most=plan.workload.prefix_cache_share_basis_points,
            availability=plan.workload.availability,
        ),
    )


def explain_policy(policy: Policy) -> tuple[str, ...]:
    """Return what a policy demands, one sentence each."""
    return tuple(_sentences(policy))


def _sentences(policy: Policy) -> Iterator[str]:
    if policy.test_keys:
        yield "TEST POLICY: keys whose private half is published are accepted; rely on nothing it calls ready."
    if not policy.signers:
        yield "It trusts nobody, so every bundle is refused."
    for signer in policy.signers:
        may = ", ".join(_ROLE_WORDS[role] for role in signer.roles) or "sign nothing"
        yield f"{signer.id} may {may}; key {signer.fingerprint}."
    if policy.expects is None:
        yield "It expects no subject, so nothing is ever ready under it."
    else:
        yield from _expected(policy.expects)
    for gate in GATE_IDS:
        yield f"Evidence of {gate} {_BINDING_WORDS[policy.binding_for(gate)]}, or as the plan says if that is stronger."
    for waiver in policy.waivers:
        yield f"{waiver.criterion} is waived until {waiver.expires}: {waiver.reason}"


def _expected(expects: Expectations) -> Iterator[str]:
    for name, values in (
        ("checkpoint roots", expects.checkpoint_roots),
        ("models", expects.models),
        ("hardware", expects.hardware),
        ("runtime identities", expects.runtimes),
        ("registries", expects.registries),
    ):
        yield f"Accepted {name}: {', '.join(values)}." if values else f"No {name} are accepted, so nothing is ready."
    if expects.accelerators_at_most is not None:
        yield f"At most {format_count(expects.accelerators_at_most)} accelerator(s)."
    reserve = format_basis_points(expects.reserve_basis_points_at_least)
    yield f"At least {reserve} of each accelerator's memory is held back."
    work = expects.workload
    yield (
        f"The plan's workload has at least {format_count(work.input_tokens_at_least)} input tokens, "
        f"{format_count(work.output_tokens_at_least)} output tokens and concurrency "
        f"{format_count(work.concurrency_at_least)}."
    )
    yield (
        f"Its targets are at most {format_count(work.target_ttft_ms_at_most)} ms to the first token and "
        f"{format_count(work.target_inter_token_ms_at_most)} ms between tokens."
    )
    if work.prefix_cache_share_basis_points_at_most is not None:
        share = format_basis_points(work.prefix_cache_share_basis_points_at_most)
        yield f"It declares a prefix-cache share of at most {share}."
    if work.availability is not None:
        yield f"Its availability is {work.availability}."
