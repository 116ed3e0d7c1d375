"""The record of expert selections: its header, its self-test, a line of differences each interval."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from moeplan_vllm_probe.counting import Counters, LayerCounts
from moeplan_vllm_probe.faults import ProbeFault
from moeplan_vllm_probe.layers import RoutedLayer
from moeplan_vllm_probe.record import Record
from moeplan_vllm_probe.steps import Steps

__all__ = ["ExpertRecord"]


class ExpertRecord:
    """Writes what the counters hold."""

    def __init__(self, record: Record, counters: Counters, steps: Steps) -> None:
        """Take the record, open with its header, and what is read."""
        self._record = record
        self._counters = counters
        self._steps = steps
        self._before = [LayerCounts([0] * (2 * layer.experts + 1), layer.experts) for layer in counters.layers]
        self._last = (time.monotonic_ns(), 0, 0)
        self._displaced: set[str] = set()

    def self_test(self, synthetic: Callable[[], object]) -> None:
        """Run a batch that serves nobody through the engine as it will serve; write what the counters saw.

        Args:
            synthetic: runs the batch. Where graphs were captured, it replays one.

        Raises:
            ProbeFault: a layer's counter saw nothing of it, or a drafter's nothing of the warm-up; or something was
                counted as served.
        """
        warm = self._counters.read(self._counters.snapshot())
        synthetic()
        self._before = self._counters.read(self._counters.snapshot())
        pairs = list(zip(warm, self._before, strict=True))
        rows = [
            {
                "layer": index,
                "warmUp": before.seen,
                "synthetic": after.seen - before.seen,
                "served": sum(after.served),
                "strays": after.strays,
            }
            for index, (before, after) in enumerate(pairs)
        ]
        self._record.write("selfTest", layers=rows)
        blind = [
            layer.name for layer, pair in zip(self._counters.layers, pairs, strict=True) if _is_blind(layer, *pair)
        ]
        if blind:
            raise ProbeFault(
                "counter_stays_zero",
                f"{len(blind)} of {len(pairs)} layers routed unseen, first {blind[0]}",
                "a cached graph without the counter may have been loaded: leave VLLM_CACHE_ROOT to the probe",
            )
        if any(sum(layer.served) for layer in self._before):
            raise ProbeFault("served_before_ready", "a batch that serves nobody was counted", "report this to moeplan")

    def begin(self) -> None:
        """Start the first interval now."""
        self._last = (time.monotonic_ns(), 0, 0)

    def line(self) -> None:
        """Write the differences since the last line, for layers that have any; totals stand beside them."""
        started = time.monotonic_ns()
        reading = self._steps.read(60.0)
        if reading is None:
            return
        if reading.event is not None:
            reading.event.synchronize()
        counts, (begun, steps, tokens) = self._counters.read(reading.counts), self._last
        rows = [row for index in range(len(counts)) if (row := self._row(index, counts[index])) is not None]
        self._record.write(
            "counts",
            startNs=self._record.since_origin(begun),
            endNs=self._record.since_origin(started),
            steps=reading.steps - steps,
            tokens=reading.tokens - tokens,
            totalTokens=reading.tokens,
            layers=rows,
        )
        self._before, self._last = counts, (started, reading.steps, reading.tokens)
        self._look_for_displaced()

    def _row(self, index: int, now: LayerCounts) -> dict[str, Any] | None:
        before = self._before[index]
        if now.seen == before.seen:
            return None
        return {
            "layer": index,
            "selections": [after - earlier for after, earlier in zip(now.served, before.served, strict=True)],
            "unserved": now.unserved - before.unserved,
            "strays": now.strays - before.strays,
            "total": sum(now.served),
        }

    def _look_for_displaced(self) -> None:
        for name in self._counters.displaced:
            if name not in self._displaced:
                self._displaced.add(name)
                self._record.fault(
                    ProbeFault(
                        "hook_replaced",
                        f"layer {name} has another callback now",
                        "do not set callbacks past set_capture_fn",
                    )
                )


def _is_blind(layer: RoutedLayer, before: LayerCounts, after: LayerCounts) -> bool:
    """Return whether a counter saw too little; a dummy batch need not run the drafter."""
    return after.seen == 0 if layer.draft else after.seen == before.seen
