"""Judges of the hand-over of KV cache: proved by the counters of each decode process, never by a right answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from moeplan.evaluation.evidence_state import State
from moeplan.evaluation.judgement import Judge, Judgement, doubted, missing, observe
from moeplan.model import memory_metrics as names
from moeplan.model.plan import Criterion
from moeplan.model.verified import VerifiedRecord
from moeplan.units import BASIS_POINTS, ceil_div, parse_instant

__all__ = ["JUDGES"]

DECODE = "decode"
_COUNTERS = (names.PROMPT_TOKENS, names.EXTERNAL_HITS, names.PROMPT_TOKENS_COMPUTED)


@attrs.define
class _Growth:
    """How far one counter came over a record; where it began anew, what it counted since is added."""

    last: int | None = None
    grown: int = 0

    def take(self, value: int, state: str) -> None:
        if state == "reset":
            self.grown += value
        elif self.last is not None:
            self.grown += max(0, value - self.last)
        self.last = value


def _growth(item: VerifiedRecord) -> dict[str, dict[str, int]]:
    """Return the growth of each counter of each decode process of a record."""
    table = item.series
    assert table is not None
    roles = zip(table.subject, table.metric, table.text, strict=True)
    found: dict[str, dict[str, _Growth]] = {
        subject: {} for subject, metric, text in roles if metric == names.ROLE and text == DECODE
    }
    for subject, metric, value, state in zip(table.subject, table.metric, table.value, table.state, strict=True):
        if metric in _COUNTERS and state in ("measured", "reset") and subject in found:
            found[subject].setdefault(metric, _Growth()).take(value, state)
    return {who: {name: one.grown for name, one in counters.items()} for who, counters in found.items()}


def _processes(state: State) -> Iterator[dict[str, int]]:
    for item in state.of_type("memory_series"):
        yield from _growth(item).values()


def _watched(state: State) -> bool:
    """Return whether the counters of decode were watched through every trial."""
    spans = [_seconds(item) for item in state.of_type("memory_series") if _growth(item)]
    trials = [_seconds(item) for item in state.trials]
    return bool(trials) and all(any(first <= t[0] and t[1] <= last for first, last in spans) for t in trials)


def _seconds(item: VerifiedRecord) -> tuple[int, int]:
    interval = item.record.interval
    return parse_instant(interval.start), parse_instant(interval.end)


def _shares(state: State, counter: str, *, up: bool) -> tuple[list[int], str | None]:
    """Return the share of each decode process in basis points, or why there is none to be believed."""
    processes = list(_processes(state))
    if not processes:
        return [], "decode_not_watched"
    shares, reason = [], None
    for grown in processes:
        total, part = grown.get(names.PROMPT_TOKENS), grown.get(counter)
        if total is None or part is None:
            reason = "decode_counters_missing"
        elif total == 0:
            reason = reason or "no_prompt_tokens"
        elif part > total:
            reason = "counters_contradict"
        else:
            shares.append(ceil_div(part * BASIS_POINTS, total) if up else part * BASIS_POINTS // total)
    return shares, reason


def _judge(state: State, criterion: Criterion, counter: str, *, up: bool) -> Judgement:
    records = state.of_type("memory_series")
    if not records:
        return missing()
    shares, reason = _shares(state, counter, up=up)
    observed = None if not shares else max(shares) if up else min(shares)
    judged = observe(state, criterion, (*records, *state.trials), observed, reason)
    if judged.outcome != "pass":
        return judged
    return doubted(judged, reason or (None if _watched(state) else "workload_not_in_capture"))


def _taken_over(state: State, criterion: Criterion) -> Judgement:
    return _judge(state, criterion, names.EXTERNAL_HITS, up=False)


def _computed(state: State, criterion: Criterion) -> Judgement:
    return _judge(state, criterion, names.PROMPT_TOKENS_COMPUTED, up=True)


JUDGES: Mapping[str, Judge] = {
    "external_prefix_cache_hit_basis_points": _taken_over,
    "decode_prompt_tokens_computed_basis_points": _computed,
}
"""Metrics of the hand-over."""
