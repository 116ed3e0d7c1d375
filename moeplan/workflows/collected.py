"""What collecting one observation leaves behind."""

from __future__ import annotations

import attrs

from moeplan.model.finding import Finding
from moeplan.model.run_manifest import RunManifest
from moeplan.wire.observation import MadeObservation

__all__ = ["CollectedObservation"]


@attrs.frozen
class CollectedObservation:
    """The record, its run's manifest as it lies, and what a person should know."""

    made: MadeObservation
    manifest: RunManifest
    findings: tuple[Finding, ...]

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its end."""
        return self.manifest.state == "open"
