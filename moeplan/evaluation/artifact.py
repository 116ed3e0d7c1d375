"""Judges of ``artifact_integrity`` and ``static_residency``: the checkpoint's identity, size and time of hashing."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from moeplan.evaluation.evidence_state import State, digest_leads
from moeplan.evaluation.judgement import Judge, Judgement, compare, doubted
from moeplan.model.plan import Criterion

__all__ = ["JUDGES"]


def _planned_floor(state: State, criterion: Criterion) -> Judgement:
    observed = state.plan.residency.minimum_accelerators
    outcome, reason = compare(criterion, observed, "plan_value_missing")
    return Judgement(outcome, observed, reason)


def _checkpoint(state: State, criterion: Criterion) -> Judgement:
    manifest, digest = state.evidence.checkpoint, state.evidence.checkpoint_digest
    if manifest is None or digest is None:
        return Judgement("inconclusive", reason="missing_evidence")
    named = (
        None
        if manifest.repository is None or manifest.revision is None
        else f"{manifest.repository}@{manifest.revision}"
    )
    observed: int | str | None = {
        "checkpoint_revision": named,
        "checkpoint_root": manifest.root,
        # Weights in a format that is not read leave no tensor: nothing is known of their size.
        "checkpoint_tensor_bytes": manifest.tensor_bytes or None,
    }[criterion.metric]
    unknown = "tensors_not_read" if criterion.metric == "checkpoint_tensor_bytes" else "revision_not_named"
    outcome, reason = compare(criterion, observed, unknown)
    if manifest.index is not None and not manifest.index.agrees and criterion.metric != "checkpoint_revision":
        outcome, reason = "fail", "index_disagrees"
    judged = Judgement(outcome, observed, reason, (digest,), binding=state.manifest_binding())
    return _as_loaded(state, judged) if criterion.metric == "checkpoint_root" else judged


def _as_loaded(state: State, judged: Judgement) -> Judgement:
    """Let the root fail where an engine loaded other bytes than the files of that root hold."""
    differing = state.differing_tensors
    if differing is None:
        return judged
    records = (*state.loadings, *(item for item in state.digestions if item.tensors is not None))
    judged = attrs.evolve(judged, evidence=(*judged.evidence, *(item.digest for item in records)))
    if differing == 0 or judged.outcome == "fail":
        return judged
    obstacle = state.obstacle(records)
    if obstacle is not None:
        return attrs.evolve(judged, outcome="inconclusive", reason=obstacle)
    return attrs.evolve(judged, outcome="fail", reason="loaded_bytes_differ")


def _digest_lead(state: State, criterion: Criterion) -> Judgement:
    if not state.trials or not state.digestions:
        return Judgement("inconclusive", reason="missing_evidence")
    records = state.trials + state.digestions
    used = tuple(item.digest for item in records)
    obstacle = state.obstacle(records)
    if obstacle is not None:
        return Judgement("inconclusive", None, obstacle, used)
    doubt, leads = state.doubt(records) or state.run_doubt(records), list[int]()
    for item in state.trials:
        by_node, nodes = digest_leads(item, state.digestions), item.record.deployment.nodes
        if by_node is None or not nodes or any(node not in by_node for node in nodes):
            why = "engine_start_unknown" if by_node is None else "node_not_hashed"
            return doubted(Judgement("inconclusive", None, why, used), doubt)
        leads += [by_node[node] for node in nodes]
    outcome, reason = compare(criterion, min(leads))
    return doubted(Judgement(outcome, min(leads), reason, used, binding=state.trial_binding), doubt)


JUDGES: Mapping[str, Judge] = {
    "digest_lead_seconds": _digest_lead,
    "minimum_accelerators": _planned_floor,
    "checkpoint_revision": _checkpoint,
    "checkpoint_root": _checkpoint,
    "checkpoint_tensor_bytes": _checkpoint,
}
