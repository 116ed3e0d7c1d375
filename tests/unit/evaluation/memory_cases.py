"""Cases of ``memory_envelope``: eight accelerators and a node watched around a trial, one thing spoilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from moeplan.model.memory_metrics import KV_CACHE_TOKENS, PART_METRICS, USED
from moeplan.model.observations import MemoryDevice, MemoryPhase, MemorySeries
from moeplan.model.plan import Plan
from moeplan.model.series import SeriesTable
from moeplan.model.verified import VerifiedRecord
from tests.build import NODE, Case, build_plan, make_evidence, make_policy, make_waivers, ready_case
from tests.build_observations import SeriesRow, make_observation, make_series

__all__ = [
    "DEVICES",
    "MEMORY_REASONS",
    "PHASES",
    "ROWS",
    "TOTAL",
    "S",
    "make_memory",
    "memory_rows",
    "watched",
    "without",
]

S = 10**9
GB = 10**9
START = "2026-03-01T09:58:00Z"
"""Two minutes before the first trial, which lasts four seconds."""
SECONDS = 240
BEAT = 10 * S
TOTAL = 141 * GB
GPUS = tuple(f"gpu-{number}" for number in range(8))
DEVICES = (*(MemoryDevice(name, "accelerator", TOTAL) for name in GPUS), MemoryDevice(NODE, "host", 2000 * GB))
PHASES = (
    MemoryPhase("idle", 0, 60 * S),
    MemoryPhase("warm", 60 * S, 110 * S),
    MemoryPhase("loaded", 110 * S, 150 * S),
    MemoryPhase("warm", 150 * S, SECONDS * S),
)
CAPACITY = 148
"""4 requests in flight of 32 + 5 tokens: what the workload needs, and no token more."""


def memory_rows(most: int = 130 * GB, capacity: int = CAPACITY) -> list[SeriesRow]:
    """Return rows in which everything is told; ``gpu-5`` has the peak, in the middle of the trial."""
    rows = [
        (at * S, device.id, USED, (1 if at < 60 else 120) * GB, "bytes")
        for at in range(0, SECONDS + 1, 10)
        for device in DEVICES
    ]
    rows.append((122 * S, "gpu-5", USED, most, "bytes"))
    rows += [(121 * S, f"tp{rank}", metric, rank, "bytes") for rank in range(8) for metric in PART_METRICS.values()]
    return [*rows, (70 * S, "process-0", KV_CACHE_TOKENS, capacity, "tokens")]


ROWS = memory_rows()


def without(*, subject: str = "", metric: str = "", between: tuple[int, int] = (0, SECONDS)) -> list[SeriesRow]:
    """Return the rows but those of a subject (all of them by default) or metric in a span of seconds."""
    first, last = between
    return [
        row
        for row in ROWS
        if not (first * S <= row[0] <= last * S and subject in ("", row[1]) and metric in ("", row[2]))
    ]


def make_memory(
    plan: Plan,
    rows: Iterable[SeriesRow] = ROWS,
    *,
    devices: Sequence[MemoryDevice] = DEVICES,
    phases: Sequence[MemoryPhase] = PHASES,
    beat: int = BEAT,
    table: SeriesTable | None = None,
    **record: Any,
) -> VerifiedRecord:
    """Return a verified memory record."""
    held = make_series(rows) if table is None else table
    payload = MemorySeries(poll_interval_ns=beat, phases=tuple(phases), devices=tuple(devices), row_count=len(held))
    made: dict[str, Any] = {"start": START, "seconds": SECONDS} | record
    return make_observation(plan, payload, series=held, **made)


def watched(*records: VerifiedRecord) -> Case:
    """Return the ready case with memory records beside, nothing of the gate waived."""
    case, plan = ready_case(), build_plan()
    kept = [waiver.criterion for waiver in case.policy.waivers if not waiver.criterion.startswith("memory.")]
    evidence = make_evidence([*case.evidence.records, *records], case.evidence.runs, case.evidence.checkpoint)
    return Case(plan, evidence, make_policy(plan, waivers=make_waivers(kept)))


def _watched(rows: Iterable[SeriesRow] = ROWS, **changes: Any) -> Case:
    return watched(make_memory(build_plan(), rows, **changes))


def _unexposed() -> Case:
    """Keep a rank of which one part is said not to be told."""
    metric = PART_METRICS["activations"]
    table = make_series([*without(subject="tp3", metric=metric), (121 * S, "tp3", metric, 0, "bytes")])
    states = tuple(
        "not_exposed" if (who, what) == ("tp3", metric) else "measured"
        for who, what in zip(table.subject, table.metric, strict=True)
    )
    return _watched(table=attrs.evolve(table, state=states))


MEMORY_REASONS: dict[str, tuple[Callable[[], Case], str, str]] = {
    "capacity_not_told": (
        lambda: _watched(without(metric=KV_CACHE_TOKENS)),
        "memory.kv_capacity",
        "inconclusive",
    ),
    "device_not_watched": (
        lambda: _watched(without(subject="gpu-7"), devices=[one for one in DEVICES if one.id != "gpu-7"]),
        "memory.phases",
        "inconclusive",
    ),
    "device_total_unknown": (
        lambda: _watched(devices=(MemoryDevice("gpu-0", "accelerator", None), *DEVICES[1:])),
        "memory.headroom",
        "inconclusive",
    ),
    "memory_part_not_exposed": (_unexposed, "memory.parts", "inconclusive"),
    "memory_part_not_told": (lambda: _watched(without(subject="tp3")), "memory.parts", "inconclusive"),
    "phase_not_captured": (lambda: _watched(phases=PHASES[1:]), "memory.phases", "inconclusive"),
    "series_has_hole": (
        lambda: _watched(without(subject="gpu-2", metric=USED, between=(115, 145))),
        "memory.phases",
        "inconclusive",
    ),
    "workload_not_in_capture": (
        lambda: _watched(start="2026-03-01T10:00:01Z"),
        "memory.workload",
        "inconclusive",
    ),
}
"""A case for each reason of the gate, the criterion that has it, and its outcome."""
