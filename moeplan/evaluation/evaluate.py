"""evaluate(plan, evidence, policy, at) -> Verdict: pure and total."""

from __future__ import annotations

from moeplan.errors import InputError, Issue
from moeplan.evaluation.criteria import judge_criterion
from moeplan.evaluation.evidence_state import State, deployment_digests
from moeplan.evaluation.subject import describe_subject, unexpected
from moeplan.model.plan import Gate, Plan
from moeplan.model.policy import Policy
from moeplan.model.verdict import CriterionResult, GateResult, Reason, Verdict
from moeplan.model.verified import EvidenceSet
from moeplan.units import format_instant, parse_instant
from moeplan.version import GENERATOR
from moeplan.wire.documents import identify

__all__ = ["evaluate"]

_LONGEST_MESSAGE = 4096
"""Characters of a verdict's text."""


def evaluate(plan: Plan, evidence: EvidenceSet, policy: Policy, at: str) -> Verdict:
    """Return the verdict that this evidence, under this policy, supports for this plan at this instant.

    No clock, network, file or plugin. The same inputs give the same bytes, whatever the order of the evidence.
    Nothing is improved by taking evidence away, and what is not known is never a pass.

    Args:
        plan: the plan, form 1.1.0.
        evidence: verified evidence, from :func:`moeplan.load_evidence_bundle`.
        policy: the auditor's policy.
        at: the instant of judgement, RFC 3339 UTC in whole seconds.

    Raises:
        InputError: ``evidence`` was not verified, or ``at`` is no instant. No valid input raises.
    """
    _require_verified(evidence)
    instant = format_instant(parse_instant(at))
    state = State(plan, identify(plan), evidence, policy, instant, deployment_digests(evidence))
    gates = _judge_gates(state)
    subject = describe_subject(state)
    reasons = tuple(_reasons(state, [*unexpected(state, subject)]))
    return Verdict(
        generator=GENERATOR,
        readiness=_readiness(gates, reasons),
        reasons=reasons,
        at=instant,
        plan=state.plan_digest,
        policy=identify(policy),
        evidence=tuple(sorted({*evidence.listed, *state.present})),
        subject=subject,
        gates=gates,
    )


def _require_verified(evidence: object) -> None:
    if not isinstance(evidence, EvidenceSet):
        raise InputError(
            Issue(
                "evidence",
                "not_verified",
                "evidence was not verified",
                "an EvidenceSet",
                type(evidence).__name__,
                "load the bundle with moeplan.load_evidence_bundle and a policy",
            )
        )


def _judge_gates(state: State) -> tuple[GateResult, ...]:
    results: list[GateResult] = []
    failed = False
    for gate in state.plan.validation_gates:
        criteria = tuple(judge_criterion(state, gate, criterion) for criterion in gate.criteria)
        outcome = _gate_outcome(state, criteria)
        results.append(_gate(gate, "blocked" if failed else outcome, criteria))
        failed = failed or outcome == "fail"
    return tuple(results)


def _gate(gate: Gate, outcome: str, criteria: tuple[CriterionResult, ...]) -> GateResult:
    return GateResult(id=gate.id, order=gate.order, outcome=outcome, criteria=criteria)


def _gate_outcome(state: State, criteria: tuple[CriterionResult, ...]) -> str:
    outcomes = {criterion.outcome for criterion in criteria}
    if "fail" in outcomes:
        return "fail"
    if "inconclusive" in outcomes or state.taken_away:
        return "inconclusive"
    return "pass"


def _reasons(state: State, subject: list[Reason]) -> list[Reason]:
    reasons = list(subject)
    if state.taken_away:
        message = f"{len(state.taken_away)} listed item(s) are missing, the first {state.taken_away[0]}"
        reasons.append(Reason(code="evidence_taken_away", message=message))
    if state.plan.readiness.status == "blocked":
        message = "the plan itself is blocked: " + state.plan.readiness.reason
        reasons.append(Reason(code="plan_blocked", message=message[:_LONGEST_MESSAGE]))
    return reasons


def _readiness(gates: tuple[GateResult, ...], reasons: tuple[Reason, ...]) -> str:
    if any(gate.outcome == "fail" for gate in gates) or any(reason.code == "plan_blocked" for reason in reasons):
        return "not_ready"
    if reasons or any(gate.outcome != "pass" for gate in gates):
        return "inconclusive"
    return "ready"
