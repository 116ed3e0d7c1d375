"""Observations of ``memory_envelope``: as they should be, and as they fall short."""

from __future__ import annotations

from collections.abc import Callable

from moeplan.model.memory_metrics import USED
from moeplan.model.verified import VerifiedRecord
from tests.build import AT, NODE
from tests.unit.evaluation.memory_cases import DEVICES, PHASES, TOTAL, make_memory, memory_rows, without

__all__ = ["MEMORY", "SOUND_MEMORY"]

MEMORY: dict[str, Callable[..., VerifiedRecord]] = {
    "memory": make_memory,
    "memory_full": lambda plan, **record: make_memory(plan, memory_rows(TOTAL + 1), **record),
    "memory_hole": lambda plan, **record: make_memory(
        plan, without(subject="gpu-2", metric=USED, between=(100, 145)), **record
    ),
    "memory_small_cache": lambda plan, **record: make_memory(plan, memory_rows(capacity=100), **record),
    "memory_of_node_alone": lambda plan, **record: make_memory(plan, without(), devices=DEVICES[-1:], **record),
    "memory_without_parts": lambda plan, **record: make_memory(plan, without(subject="tp3"), **record),
    "memory_of_few": lambda plan, **record: make_memory(plan, devices=DEVICES[:3], **record),
    "memory_unmarked": lambda plan, **record: make_memory(plan, phases=(), **record),
    "memory_never_idle": lambda plan, **record: make_memory(plan, phases=PHASES[1:], **record),
    "memory_empty": lambda plan, **record: make_memory(plan, (), **record),
    "memory_late": lambda plan, **record: make_memory(plan, start=AT, **record),
    "memory_without_node": lambda plan, **record: make_memory(plan, without(subject=NODE), **record),
}
"""Each makes a record for a plan; keywords are those of ``make_observation``."""

SOUND_MEMORY = ("memory",)
"""What the gate needs beside the trials."""
