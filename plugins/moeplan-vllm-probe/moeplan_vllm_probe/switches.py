"""The switches of the probe, read from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from moeplan_vllm_probe.faults import ProbeFault

__all__ = ["PREFIX", "Switches", "read_switches"]

PREFIX = "MOEPLAN_PROBE_"
DEFAULT_INTERVAL_MS = 1000
_INTERVALS_MS = range(10, 3_600_001)


@dataclass(frozen=True)
class Switches:
    """What is switched on.

    Attributes:
        hash: hash the checkpoint's tensors as they are loaded.
        count: count the expert selections.
        memory: write what the allocators hold; on wherever one of the others is.
        lenient: write a fault and go on, instead of stopping the engine.
        interval_ms: milliseconds from one line of counts or memory to the next.
        directory: where the records are written; None with everything off.
    """

    hash: bool
    count: bool
    memory: bool
    lenient: bool
    interval_ms: int
    directory: Path | None

    @property
    def any(self) -> bool:
        """Whether anything is switched on."""
        return self.hash or self.count or self.memory

    def as_json(self) -> dict[str, object]:
        """Return the switches as the header of a record has them."""
        return {
            "hash": self.hash,
            "count": self.count,
            "memory": self.memory,
            "lenient": self.lenient,
            "intervalMs": self.interval_ms,
        }


def read_switches(environment: Mapping[str, str] = os.environ) -> Switches:
    """Return the switches.

    Raises:
        ProbeFault: a value that is none, or something on and no directory to write to.
    """
    hashing, counting = _switch(environment, "HASH"), _switch(environment, "COUNT")
    switches = Switches(
        hash=hashing,
        count=counting,
        memory=_switch(environment, "MEMORY", default=hashing or counting),
        lenient=_switch(environment, "LENIENT"),
        interval_ms=_interval(environment),
        directory=Path(os.path.abspath(environment[f"{PREFIX}DIR"])) if environment.get(f"{PREFIX}DIR") else None,
    )
    if switches.any and switches.directory is None:
        raise ProbeFault(
            "no_directory", "something is switched on and there is no place to write", f"set {PREFIX}DIR to a directory"
        )
    return switches


def _switch(environment: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    value = environment.get(PREFIX + name, "")
    if value not in {"", "0", "1"}:
        raise ProbeFault("wrong_switch", f"{PREFIX}{name} is {value[:40]!r}", "write 1 for on, 0 or nothing for off")
    return value == "1" if value else default


def _interval(environment: Mapping[str, str]) -> int:
    value = environment.get(f"{PREFIX}INTERVAL_MS", "") or str(DEFAULT_INTERVAL_MS)
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) in _INTERVALS_MS):
        span = f"{_INTERVALS_MS[0]} to {_INTERVALS_MS[-1]}"
        raise ProbeFault("wrong_interval", f"{PREFIX}INTERVAL_MS is {value[:40]!r}", f"write milliseconds, {span}")
    return int(value)
