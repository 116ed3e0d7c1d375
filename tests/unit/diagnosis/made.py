"""Signatures for the tests of this room."""

from __future__ import annotations

from moeplan.model.plugin import FactSource, LogSignature

SOURCE = (FactSource("a document", "section 1"),)


def signature(
    name: str = "T-1",
    *literals: str,
    pattern: str | None = None,
    expectation: str = "informs",
    severity: str = "error",
    cause: str = "the cause",
) -> LogSignature:
    """Return a signature."""
    return LogSignature(
        id=name,
        severity=severity,
        literals=literals,
        pattern=pattern,
        expectation=expectation,
        cause=cause,
        remedy="the remedy",
        sources=SOURCE,
    )
