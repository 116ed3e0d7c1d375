"""The audit's two answers: is the signed verdict reproduced, and what does the auditor's own policy say?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs

from moeplan.attest.attestations import Attestation
from moeplan.attest.statements import verdict_statement
from moeplan.auditing.rebuild import without_wording
from moeplan.auditing.steps import Step, Steps
from moeplan.auditing.verification import VerifiedBundle, verify_evidence_bundle
from moeplan.errors import Issue, MoeplanError, VerificationError
from moeplan.evaluation.evaluate import evaluate
from moeplan.model.attestation import VerdictPredicate
from moeplan.model.policy import Policy
from moeplan.model.registry import Registry
from moeplan.model.verdict import Verdict
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import identify

__all__ = ["Audit", "Reproduction", "audit"]


@attrs.frozen
class Reproduction:
    """What became of one signed verdict.

    ``outcome``: ``reproduced`` byte for byte; ``reproduced_but_wording`` where another release signed it and all but
    its sentences is equal; ``differs``; ``policy_missing`` where the policy it names is not at hand.
    """

    attestation: str
    signer: str
    outcome: str
    policy: str
    at: str


@attrs.frozen(eq=False)
class Audit:
    """The numbered steps, the signed verdicts, and the auditor's own verdict (None where a step failed)."""

    steps: tuple[Step, ...]
    error: MoeplanError | None
    reproductions: tuple[Reproduction, ...]
    own: Verdict | None

    @property
    def ok(self) -> bool:
        """Whether the bundle is without fault and no signed verdict differs."""
        return self.error is None


def audit(
    path: Path | str,
    policy: Policy,
    at: str,
    *,
    signer_policies: Sequence[Policy] = (),
    registries: Sequence[Registry] = (),
) -> Audit:
    """Verify a bundle, judge it under the auditor's policy, and recompute every verdict signed by a trusted verifier.

    A signed verdict is recomputed under the policy digest and the instant that it names, and compared byte for byte.

    Args:
        path: a bundle directory or its tar form.
        policy: the auditor's policy.
        at: the instant of the auditor's own judgement.
        signer_policies: policies under which signed verdicts may have been made, beside the auditor's own.
        registries: registries of the auditor's own beside the built-in ones.

    Returns:
        An :class:`Audit`; a fault of the bundle is in its ``error``, not raised.

    Raises:
        InputError, StoreError: the auditor's own input is at fault.
    """
    steps = Steps()
    reproductions: tuple[Reproduction, ...] = ()
    own: Verdict | None = None
    try:
        bundle = verify_evidence_bundle(path, policy, steps, registries=registries)
        own = steps.run("own_verdict", lambda: _own(bundle, policy, at))
        reproductions = _reproduce(path, bundle, (policy, *signer_policies), registries)
        steps.run("signed_verdict", lambda: _compare(reproductions))
    except VerificationError as error:
        return Audit(tuple(steps.done), error, reproductions, own)
    return Audit(tuple(steps.done), None, reproductions, own)


def _own(bundle: VerifiedBundle, policy: Policy, at: str) -> tuple[Verdict, str]:
    verdict = evaluate(bundle.plan, bundle.evidence, policy, at)
    return verdict, f"{verdict.readiness} under policy {verdict.policy} at {verdict.at}"


def _reproduce(
    path: Path | str, bundle: VerifiedBundle, policies: Sequence[Policy], registries: Sequence[Registry]
) -> tuple[Reproduction, ...]:
    by_digest = {identify(policy): policy for policy in reversed(policies)}
    own = identify(policies[0])
    found = []
    for item in bundle.attestations:
        if item.kind == "verdict" and "verifier" in item.signer.roles:
            assert isinstance(item.predicate, VerdictPredicate)
            signed = item.predicate.verdict
            policy = by_digest.get(signed.policy)
            outcome = "policy_missing"
            if policy is not None:
                again = bundle if signed.policy == own else _under(path, policy, registries)
                outcome = _recompute(again, policy, item, signed)
            found.append(Reproduction(item.name, item.signer.id, outcome, signed.policy, signed.at))
    return tuple(found)


def _under(path: Path | str, policy: Policy, registries: Sequence[Registry]) -> VerifiedBundle | None:
    """Return the bundle as the signer's policy verifies it: whose signatures count differs from policy to policy."""
    try:
        return verify_evidence_bundle(path, policy, Steps(), registries=registries)
    except VerificationError:
        return None


def _recompute(bundle: VerifiedBundle | None, policy: Policy, item: Attestation, signed: Verdict) -> str:
    if bundle is None:
        return "differs"
    if verdict_statement(signed) != item.payload:  # subjects other than the verdict's own
        return "differs"
    again = evaluate(bundle.plan, bundle.evidence, policy, signed.at)
    if again == signed:
        return "reproduced"
    reworded = signed.generator != again.generator and without_wording(unstructure(signed)) == without_wording(
        unstructure(again)
    )
    return "reproduced_but_wording" if reworded else "differs"


def _compare(reproductions: tuple[Reproduction, ...]) -> tuple[None, str]:
    if not reproductions:
        return None, "the bundle holds no verdict signed by a trusted verifier"
    for item in reproductions:
        if item.outcome == "differs":
            raise VerificationError(
                Issue(
                    f"attestations/{item.attestation}",
                    "verdict_differs",
                    "the signed verdict is not what its evidence, policy and instant give",
                    "the recomputed verdict",
                )
            )
    counts = Counter(item.outcome for item in reproductions)
    text = f"{counts['reproduced']} signed verdict(s) reproduced byte for byte"
    if counts["reproduced_but_wording"]:
        text += f"; {counts['reproduced_but_wording']} of another release reproduced but for its wording"
    if counts["policy_missing"]:
        text += f"; {counts['policy_missing']} not checked, give their policy with --signer-policy"
    return None, text
