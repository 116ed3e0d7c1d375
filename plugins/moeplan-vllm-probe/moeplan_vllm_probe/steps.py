"""Reading counters between the engine's steps, so that all layers of a reading saw the same tokens."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from moeplan_vllm_probe.counting import Counters
from moeplan_vllm_probe.hooks import require

__all__ = ["Reading", "Steps"]


@dataclass(frozen=True)
class Reading:
    """All counters at one boundary between steps.

    Attributes:
        steps: steps with at least one token so far, since the engine was ready.
        tokens: tokens that the scheduler gave to these steps.
        counts: the counters, still on the device.
        event: what the device must have passed before ``counts`` may be read; None on CPUs.
    """

    steps: int
    tokens: int
    counts: Any
    event: Any


class Steps:
    """Knows when a step runs. The engine's thread begins and ends steps, another thread asks for readings."""

    def __init__(self, counters: Counters | None, device: Any) -> None:
        """Take the counters, or None where only steps are of interest."""
        self._counters = counters
        self._cuda = require("torch").cuda if getattr(device, "type", "cpu") == "cuda" else None
        self._state = threading.Condition()
        self._running = self._wanted = False
        self._reading: Reading | None = None
        self._steps = self._tokens = 0
        self._done: Any = None
        self.serving = False

    def ready(self) -> None:
        """Begin to count: the engine has warmed up."""
        self.serving = True
        self._done = self._mark()
        if self._counters is not None:
            self._counters.count_drafts()

    def begin(self, tokens: int) -> None:
        """Note that a step with this many tokens begins; called by the engine's thread."""
        if not self.serving:
            return
        with self._state:
            self._answer()
            self._running = True
            self._steps += tokens > 0
            self._tokens += tokens
        if self._counters is not None:
            self._counters.serve(tokens)

    def end(self) -> None:
        """Note that the step was given to the device; called by the engine's thread."""
        if not self.serving:
            return
        if self._counters is not None:
            self._counters.serve(0)
        with self._state:
            self._done = self._mark()
            self._running = False
            self._answer()

    def read(self, timeout_s: float) -> Reading | None:
        """Return a reading of the next boundary between steps; None where a step outlasts the time given."""
        with self._state:
            if not self._running:
                return self._now(self._done)
            self._wanted, self._reading = True, None
            self._state.wait_for(lambda: self._reading is not None, timeout_s)
            self._wanted = False
            return self._reading

    def _answer(self) -> None:
        if self._wanted and self._reading is None:
            self._reading = self._now(None)
            self._state.notify_all()

    def _now(self, after: Any) -> Reading:
        """Copy the counters; on another thread than the engine's only ``after`` all that the engine has queued."""
        if after is not None:
            after.synchronize()
        counts = None if self._counters is None else self._counters.snapshot()
        return Reading(self._steps, self._tokens, counts, self._mark())

    def _mark(self) -> Any:
        if self._cuda is None:
            return None
        event = self._cuda.Event()
        event.record()
        return event
