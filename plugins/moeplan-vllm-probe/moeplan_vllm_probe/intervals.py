"""The thread that writes a line each interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from moeplan_vllm_probe.faults import LOGGER

__all__ = ["Intervals"]


class Intervals:
    """Calls what it was given, at a fixed beat of the monotonic clock, until it is stopped."""

    def __init__(self, interval_ms: int, calls: list[Callable[[], None]]) -> None:
        """Take the beat in milliseconds and what is called at each."""
        self._interval_s = interval_ms / 1000
        self._calls = calls
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="moeplan-probe", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after one more round of calls; at most once."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._round()

    def _run(self) -> None:
        due = time.monotonic() + self._interval_s
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            self._round()
            missed = max(0.0, time.monotonic() - due) // self._interval_s
            due += (missed + 1) * self._interval_s

    def _round(self) -> None:
        for call in self._calls:
            try:
                call()
            except Exception:  # the engine must not fail for its record; a line that is missing shows
                LOGGER.exception("moeplan probe: a line could not be written")
