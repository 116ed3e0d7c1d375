"""Judges of ``routing_health``: expert selections believed where they close with the engine's counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakKeyDictionary

import attrs

from moeplan.evaluation.communication import COMMUNICATION_JUDGES
from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.expert_layers import CheckpointLayer, expert_layers
from moeplan.evaluation.expert_load import ExpertLoad, expected_selections, expert_load
from moeplan.evaluation.judgement import Judge, Judgement, missing, observe
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.observations import ExpertCounts
from moeplan.model.plan import Criterion
from moeplan.model.verified import VerifiedRecord

__all__ = ["JUDGES"]

Found = tuple[int | None, str | None]
"""An observed integer, or None, and why it cannot be believed."""


def _counted(state: State) -> tuple[VerifiedRecord, ...]:
    return state.of_type("expert_counts")


_LOADS: WeakKeyDictionary[VerifiedRecord, ExpertLoad] = WeakKeyDictionary()
"""What a record's table adds up to, reckoned once for all the criteria that look at it."""


def _parts(item: VerifiedRecord) -> tuple[ExpertCounts, ExpertLoad]:
    payload = item.record.payload
    assert isinstance(payload, ExpertCounts)
    assert item.experts is not None
    if item not in _LOADS:
        _LOADS[item] = expert_load(payload, item.experts)
    return payload, _LOADS[item]


def _uncounted(item: VerifiedRecord, wanted: tuple[CheckpointLayer, ...]) -> int:
    """Return how many layers of the checkpoint the record holds no selection of, or too few experts."""
    _payload, load = _parts(item)
    seen = {layer.number: layer.experts for layer in load.whole if layer.selections}
    return sum(seen.get(layer.number, -1) < layer.experts for layer in wanted)


def _layers_of(manifest: CheckpointManifest) -> tuple[CheckpointLayer, ...]:
    return tuple(layer for layer in expert_layers(manifest) if not layer.drafter)


def _coverage(state: State, items: tuple[VerifiedRecord, ...]) -> Found:
    manifest = state.evidence.checkpoint
    if manifest is None:
        return None, "missing_evidence"
    wanted = _layers_of(manifest)
    if not wanted:
        return None, "expert_layers_unknown"
    absent = sum(_uncounted(item, wanted) for item in items)
    return absent, "layers_not_counted" if absent else None


def _conservation(_state: State, items: tuple[VerifiedRecord, ...]) -> Found:
    differences: list[int] = []
    for item in items:
        payload, load = _parts(item)
        counters = payload.counters
        if counters is None or counters.cached_prompt_tokens is None:
            return None, "routing_counters_missing"
        if counters.draft_tokens:
            return None, "speculation_not_conserved"
        if counters.preemptions:
            return None, "preemptions_not_conserved"
        for layer, seen in zip((x for x in payload.layers if not x.drafter), load.whole, strict=True):
            differences.append(abs(seen.selections - (expected_selections(layer, counters) or 0)))
    if not differences:
        return None, "no_values"
    return max(differences), None


def _sample_size(_state: State, items: tuple[VerifiedRecord, ...]) -> Found:
    short = sum(not layer.enough for item in items for layer in _parts(item)[1].whole)
    return short, "too_few_tokens" if short else None


def _unbelievable(state: State, items: tuple[VerifiedRecord, ...]) -> str | None:
    """Return why the counts say nothing of the load, or None."""
    _absent, why = _coverage(state, items)
    if why is not None:
        return "expert_layers_unknown" if why == "missing_evidence" else why
    difference, why = _conservation(state, items)
    if why is not None:
        return why
    return "counts_not_conserved" if difference else _sample_size(state, items)[1]


def _dropped_unreported(_state: State, items: tuple[VerifiedRecord, ...]) -> Found:
    silent = sum(layer.dropped_tokens is None for item in items for layer in _parts(item)[0].layers)
    return silent, "drops_not_reported" if silent else None


def _dropped(_state: State, items: tuple[VerifiedRecord, ...]) -> Found:
    told = [layer.dropped_tokens for item in items for layer in _parts(item)[0].layers]
    known = [count for count in told if count is not None]
    return (sum(known), None) if len(known) == len(told) else (None, "drops_not_reported")


Figure = Callable[[list[ExpertLoad]], int | None]
_FIGURES: Mapping[str, Figure] = {
    "expert_load_ratio_basis_points": lambda loads: max(
        (layer.ratio for load in loads for layer in load.whole), default=None
    ),
    "expert_load_ratio_peak_basis_points": lambda loads: max(
        (layer.ratio for load in loads for stretch in load.stretches for layer in stretch), default=None
    ),
    "expert_effective_share_basis_points": lambda loads: min(
        (layer.effective for load in loads for layer in load.whole), default=None
    ),
    "expert_inactive_share_basis_points": lambda loads: max(
        (layer.inactive_share for load in loads for stretch in load.stretches for layer in stretch), default=None
    ),
    "hot_experts": lambda loads: sum(layer.hot for load in loads for layer in load.whole),
    "dead_experts": lambda loads: sum(layer.inactive for load in loads for layer in load.whole),
}


def _figure(state: State, criterion: Criterion) -> Judgement:
    """Judge a figure of the load: it is shown, and decides where the counts are believed."""
    items = _counted(state)
    if not items:
        return missing()
    observed = _FIGURES[criterion.metric]([_parts(item)[1] for item in items])
    return _held_back(observe(state, criterion, items, observed, "no_values"), _unbelievable(state, items))


def _held_back(judged: Judgement, why: str | None) -> Judgement:
    """Let counts that say nothing decide nothing, not even a failure."""
    if why is None or judged.observed is None:
        return judged
    return attrs.evolve(judged, outcome="inconclusive", reason=why)


def _count(find: Callable[[State, tuple[VerifiedRecord, ...]], Found]) -> Judge:
    """Return the judge of a count of what is not known: more than the limit is inconclusive, not a failure."""

    def judge(state: State, criterion: Criterion) -> Judgement:
        items = _counted(state)
        if not items:
            return missing()
        observed, why = find(state, items)
        judged = observe(state, criterion, items, observed, why)
        if judged.outcome == "fail" and why is not None:
            judged = attrs.evolve(judged, outcome="inconclusive", reason=why)
        return judged

    return judge


def _covered(state: State, criterion: Criterion) -> Judgement:
    judged = _count(_coverage)(state, criterion)
    digest = state.evidence.checkpoint_digest
    if digest is None or not judged.evidence:
        return judged
    return attrs.evolve(judged, evidence=(*judged.evidence, digest))


JUDGES: Mapping[str, Judge] = {
    "expert_layers_without_counts": _covered,
    "routing_conservation_difference": _count(_conservation),
    "expert_layers_short_of_tokens": _count(_sample_size),
    **dict.fromkeys(_FIGURES, _figure),
    "dropped_tokens_unreported": _count(_dropped_unreported),
    "dropped_tokens": _count(_dropped),
    **COMMUNICATION_JUDGES,
}
