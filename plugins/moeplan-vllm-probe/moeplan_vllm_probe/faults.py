"""What keeps the probe from seeing everything: a named fault, and what is done about it."""

from __future__ import annotations

import logging

__all__ = ["LOGGER", "ProbeFault"]

LOGGER = logging.getLogger("vllm.moeplan_probe")
"""Below vLLM's logger, so that its lines reach the engine's log."""


class ProbeFault(RuntimeError):
    """The probe would miss something; raised at start, it stops the engine.

    Attributes:
        code: the fault's name, part of the record format.
        message: what is wrong.
        next: what to do.
    """

    def __init__(self, code: str, message: str, next: str) -> None:
        super().__init__(f"moeplan probe: {code}: {message}; {next}")
        self.code = code
        self.message = message
        self.next = next
