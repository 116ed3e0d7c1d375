"""Judges of ``memory_envelope``: memory watched on every device through every phase, while the workload runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, doubted, missing, observe
from moeplan.evaluation.memory_coverage import Coverage, coverage
from moeplan.evaluation.memory_record import MemoryRecord, memory_record
from moeplan.evaluation.trials import completed, concurrency_peak
from moeplan.model.columns import view
from moeplan.model.memory_metrics import KV_CACHE_TOKENS
from moeplan.model.observations import MEMORY_PARTS, MEMORY_PHASES
from moeplan.model.plan import Criterion, Workload
from moeplan.model.verified import VerifiedRecord
from moeplan.units import NS_PER_S, parse_instant

__all__ = ["JUDGES"]

_DECODE = "decode"


def _items(state: State) -> tuple[VerifiedRecord, ...]:
    return state.of_type("memory_series")


def _records(state: State) -> list[MemoryRecord]:
    return [memory_record(item) for item in _items(state)]


def _coverage(state: State) -> Coverage:
    deployments = (item.record.deployment for item in _items(state))
    return coverage(_records(state), deployments, state.plan.target.requested_accelerators)


def _unless_met(judged: Judgement, reason: str | None) -> Judgement:
    """Return a failure to show something as what it is: it was not shown."""
    if judged.outcome != "fail":
        return judged
    return attrs.evolve(judged, outcome="inconclusive", reason=reason or judged.reason)


def _phases(state: State, criterion: Criterion) -> Judgement:
    watched = _coverage(state)
    lacks = [watched.lack(phase) for phase in MEMORY_PHASES]
    judged = observe(state, criterion, _items(state), sum(lack is None for lack in lacks))
    return _unless_met(judged, next((lack for lack in lacks if lack is not None), None))


def _peak_of(state: State, devices: Iterable[str]) -> int | None:
    """Return the most bytes in use on any of the devices; None where one of them was never read."""
    peaks = []
    for device in devices:
        found = [peak for peak in (record.peak(device) for record in _records(state)) if peak is not None]
        if not found:
            return None
        peaks.append(max(found))
    return max(peaks, default=None)


def _seen_peak(state: State, devices: Iterable[str]) -> int | None:
    """Return the most bytes that were seen in use on any of the devices that were read at all."""
    peaks = [record.peak(device) for device in devices for record in _records(state)]
    return max((peak for peak in peaks if peak is not None), default=None)


def _device_peak(state: State, criterion: Criterion) -> Judgement:
    watched = _coverage(state)
    observed = _seen_peak(state, watched.of_kind("accelerator"))
    judged = observe(state, criterion, _items(state), observed, "phase_not_captured")
    return doubted(judged, _lack(watched)) if judged.outcome == "pass" else judged


def _headroom(state: State, criterion: Criterion) -> Judgement:
    watched = _coverage(state)
    left: list[int] = []
    for device in watched.of_kind("accelerator"):
        totals = [one.total_bytes for record in _records(state) for one in record.payload.devices if one.id == device]
        peak = _peak_of(state, (device,))
        if peak is None or None in totals:
            left = []
            break
        left.append(max(0, min(total for total in totals if total is not None) - peak))
    judged = observe(state, criterion, _items(state), min(left, default=None), "device_total_unknown")
    return doubted(judged, _lack(watched)) if judged.outcome == "pass" else judged


def _host_peak(state: State, criterion: Criterion) -> Judgement:
    watched = _coverage(state)
    observed = _peak_of(state, watched.of_kind("host"))
    judged = observe(state, criterion, _items(state), observed, "phase_not_captured")
    return doubted(judged, _lack(watched)) if judged.outcome == "pass" else judged


def _lack(watched: Coverage) -> str | None:
    return next((lack for lack in map(watched.lack, reversed(MEMORY_PHASES)) if lack is not None), None)


def _capacity(state: State, criterion: Criterion) -> Judgement:
    """Judge the tokens that the engines say their KV cache holds; where the log says less, the log counts."""
    if not _items(state):
        return missing()
    told: dict[str, int] = {}
    roles: dict[str, str] = {}
    for record in _records(state):
        roles |= record.roles
        for subject, tokens in record.capacity.items():
            told[subject] = min(tokens, told.get(subject, tokens))
    holding = [tokens for subject, tokens in told.items() if roles.get(subject) == _DECODE] or list(told.values())
    observed = sum(holding) if holding else None
    logged = _logged_capacity(state)
    if observed is not None and len(holding) == 1 and len(logged) == 1:
        observed = min(observed, *logged.values())
    records = (*_items(state), *(state.of_type("engine_log") if logged else ()))
    return observe(state, criterion, records, observed, "capacity_not_told")


def _logged_capacity(state: State) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in state.of_type("engine_log"):
        table = item.series
        assert table is not None
        for subject, metric, value, status in zip(table.subject, table.metric, table.value, table.state, strict=True):
            if metric == KV_CACHE_TOKENS and status == "measured":
                found[subject] = min(value, found.get(subject, value))
    return found


def _workload_requests(state: State, criterion: Criterion) -> Judgement:
    if not _items(state) or not state.trials:
        return missing()
    watched = _coverage(state)
    inside = [item for item in state.trials if watched.encloses(_span(item))]
    count = sum(_planned_requests(item, state.plan.workload) for item in inside)
    judged = observe(state, criterion, (*_items(state), *state.trials), count)
    return _unless_met(judged, "workload_not_in_capture")


def _span(item: VerifiedRecord) -> tuple[int, int]:
    interval = item.record.interval
    return parse_instant(interval.start) * NS_PER_S, parse_instant(interval.end) * NS_PER_S


def _planned_requests(item: VerifiedRecord, workload: Workload) -> int:
    """Return the complete requests of the planned shape; none where the planned concurrency was never reached."""
    requests = item.requests
    assert requests is not None
    if concurrency_peak(requests) < workload.concurrency:
        return 0
    shaped = (view(requests.input_tokens) >= workload.input_tokens) & (
        view(requests.output_tokens) >= workload.output_tokens
    )
    return int((completed(requests) & shaped).sum())


def _parts_missing(state: State, criterion: Criterion) -> Judgement:
    watched = _coverage(state)
    lacks = [_part_lack(state, watched, part) for part in MEMORY_PARTS]
    judged = observe(state, criterion, _items(state), sum(lack is not None for lack in lacks))
    return _unless_met(judged, next((lack for lack in lacks if lack is not None), None))


def _part_lack(state: State, watched: Coverage, part: str) -> str | None:
    """Return why a part is not told: by a process for each accelerator planned, while the workload ran; or None."""
    loaded = watched.phases.get("loaded", [])
    told: set[str] = set()
    silent: set[str] = set()
    subjects: set[str] = set()
    for record in _records(state):
        for seen in record.parts.values():
            subjects |= seen.keys()
        silent |= record.unexposed.get(part, set())
        for subject, times in record.parts.get(part, {}).items():
            if any(start <= time <= end for time in times for start, end in loaded):
                told.add(subject)
    subjects |= silent
    if (silent - told) & subjects:
        return "memory_part_not_exposed"
    whole = len(told) >= state.plan.target.requested_accelerators and told >= subjects
    return None if whole else "memory_part_not_told"


JUDGES: Mapping[str, Judge] = {
    "memory_phases_captured": _phases,
    "device_memory_peak_bytes": _device_peak,
    "device_memory_headroom_bytes": _headroom,
    "host_memory_peak_bytes": _host_peak,
    "kv_cache_capacity_tokens": _capacity,
    "workload_requests_in_capture": _workload_requests,
    "memory_parts_missing": _parts_missing,
}
"""Metrics of memory_envelope."""
