"""Ask an endpoint one question, and write what became of it as evidence."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import attrs

from moeplan.collectors.endpoint_target import TargetOptions, open_target
from moeplan.collectors.journal import Journal
from moeplan.collectors.smoke import Asked, ask
from moeplan.model.evidence import Collector
from moeplan.model.run_manifest import RunManifest, RunObservation
from moeplan.units import format_instant
from moeplan.version import VERSION
from moeplan.wire.observation import (
    MadeObservation,
    ObservationContext,
    enclosing_interval,
    made_run,
    make_observation,
)
from moeplan.workflows.collect_endpoint import run_until_stopped

__all__ = ["CollectedSmoke", "collect_smoke"]


@attrs.frozen
class CollectedSmoke:
    """The record, its run's manifest as it lies, and what went wrong with the request, if anything did."""

    made: MadeObservation
    manifest: RunManifest
    fault: str | None


def collect_smoke(
    target: TargetOptions,
    context: ObservationContext,
    output: Path | str,
    *,
    deadline_ns: int,
    output_tokens: int = 1024,
) -> CollectedSmoke:
    """Ask one question and write the record, whatever became of it.

    Args:
        target: how the endpoint is reached.
        context: plan and deployment that the record names.
        output: directory to make; missing or empty.
        deadline_ns: by when the answer has to be whole; a hang ends there.
        output_tokens: the most tokens the answer may have.

    Raises:
        InputError: no endpoint answers there at all.
        StoreError: the directory cannot be written.
    """
    return run_until_stopped(_collect(target, context, output, deadline_ns, output_tokens))


async def _collect(
    options: TargetOptions, context: ObservationContext, output: Path | str, deadline_ns: int, output_tokens: int
) -> CollectedSmoke:
    target = await open_target(options)
    try:
        manifest, _, _ = made_run(f"run-{secrets.token_hex(6)}", context, (), announced=True, state="open")
        journal = Journal(output, manifest)
        try:
            asked = await ask(target, deadline_ns, output_tokens)
        except asyncio.CancelledError:
            journal.add_observation(RunObservation("smoke", None, ()), {})
            raise
    finally:
        target.close()
    made = _observation(asked, context)
    journal.add_observation(made.listed(), {path: (data,) for path, data in made.files.items()})
    journal.close()
    return CollectedSmoke(made, journal.manifest, asked.fault)


def _observation(asked: Asked, context: ObservationContext) -> MadeObservation:
    interval, _ = enclosing_interval(asked.first_ns, asked.last_ns)
    start = asked.engine_start_s
    return make_observation(
        asked.smoke,
        {},
        context=context,
        collector=Collector("moeplan-smoke", VERSION, "moeplan-smoke", "1"),
        interval=interval,
        engine_start=None if start is None else format_instant(start),
    )
