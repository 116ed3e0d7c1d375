"""Run manifests: what a run was to do, and every trial, observation and file it made, by digest."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue
from moeplan.model.evidence import RECORD_TYPES
from moeplan.model.fields import boolean, choice, const, digest, identifier, integer, sequence

__all__ = ["RunManifest", "RunObservation", "RunTrial"]


@attrs.frozen
class RunTrial:
    """One trial a run made: its number, its record by digest, and every file by digest.

    ``record`` is null for a trial that was begun and left no record.
    """

    number: int = integer(ge=1, le=100_000)
    state: str = choice("complete", "aborted")
    record: str | None = digest(optional=True)
    files: tuple[str, ...] = digest(many=True)


@attrs.frozen
class RunObservation:
    """One observation beside trials that a run was to make: its type, its record by digest, every file by digest.

    ``record`` is null for one that was begun and left no record.
    """

    type: str = choice(*RECORD_TYPES)
    record: str | None = digest(optional=True)
    files: tuple[str, ...] = digest(many=True)


@attrs.frozen
class RunManifest:
    """What a run was to do, and every trial and file it made, by digest.

    ``announced`` says whether the manifest was opened before the first request; an import is written afterwards.
    A run without trials plans 0 of them, and ``planned_requests`` and ``requested_*`` are null.
    """

    kind: str = const("run_manifest")
    schema_version: str = const("1.0.0")
    run: str = identifier()
    plan: str = digest()
    deployment: str = digest()
    announced: bool = boolean()
    state: str = choice("open", "closed")
    planned_trials: int = integer(le=100_000)
    planned_requests: int | None = integer(ge=1, optional=True)
    requested_input_tokens: int | None = integer(ge=1, optional=True)
    requested_output_tokens: int | None = integer(ge=1, optional=True)
    declared_concurrency: int | None = integer(ge=1, optional=True)
    warmup_requests: int | None = integer(optional=True)
    trials: tuple[RunTrial, ...] = sequence(RunTrial)
    observations: tuple[RunObservation, ...] = sequence(RunObservation, default=())

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: trial numbers that are not 1, 2, 3 …, a plan of trials left open."""
        stated = (self.planned_requests, self.requested_input_tokens, self.requested_output_tokens)
        if (None in stated) if self.planned_trials else any(value is not None for value in stated):
            expected = "integers for a run of trials, null without"
            yield Issue("$.plannedRequests", "value_missing", "what each trial asks for goes with trials", expected)
        numbers = [trial.number for trial in self.trials]
        if numbers != list(range(1, len(numbers) + 1)):
            yield Issue(
                "$.trials", "trial_numbers", "trials are not numbered 1, 2, 3 …", "consecutive", str(numbers[:20])
            )
