"""Make one worker fail under load, and write what was seen as evidence: collect and import, joined."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import attrs

from moeplan.collectors.endpoint_target import Target, TargetOptions, open_target
from moeplan.collectors.journal import Journal
from moeplan.collectors.restart import RestartPlan, observe_restart
from moeplan.collectors.restart_raw import RestartObserved, dump_restart
from moeplan.importers.given import GivenFile
from moeplan.importers.restart_timeline import TimelineInputs, import_restart_timeline
from moeplan.model.finding import Finding
from moeplan.model.run_manifest import RunObservation
from moeplan.units import NS_PER_S, format_instant
from moeplan.wire.observation import MadeObservation, ObservationContext, made_run
from moeplan.wire.prometheus_text import parse_exposition
from moeplan.workflows.collect_endpoint import run_until_stopped
from moeplan.workflows.collected import CollectedObservation

__all__ = ["collect_restart"]

_TYPE = "failure_timeline"
_START = "process_start_time_seconds"


def collect_restart(
    options: TargetOptions,
    plan: RestartPlan,
    target_name: str,
    context: ObservationContext,
    output: Path | str,
    say: Callable[[str], None] = lambda _text: None,
) -> CollectedObservation:
    """Make the worker fail, watch it come back, and write the record, whatever became of it.

    The run's manifest says that a timeline is being made before the first request is sent: one that leaves no record
    cannot be passed over. Ctrl-C or SIGTERM writes what was seen and leaves the run open; the fault is not undone.

    Args:
        options: how the endpoint is reached.
        plan: what is to happen.
        target_name: what the record calls the worker: a pseudonym.
        context: plan and deployment that the record names.
        output: directory to make; missing or empty.
        say: told how far it is.

    Raises:
        InputError: the endpoint does not answer, the fault or the restart fails, or nothing was seen.
        StoreError: the directory cannot be written.
    """
    return run_until_stopped(_collect(options, plan, target_name, context, output, say))


async def _collect(
    options: TargetOptions,
    plan: RestartPlan,
    target_name: str,
    context: ObservationContext,
    output: Path | str,
    say: Callable[[str], None],
) -> CollectedObservation:
    begun = RunObservation(_TYPE, None, ())
    manifest, _, _ = made_run(f"run-{secrets.token_hex(6)}", context, [begun], announced=True, state="open")
    target = await open_target(options)
    try:
        journal = Journal(output, manifest)
        start = await _engine_start(target)
        seen = await observe_restart(target, plan, say)
    finally:
        target.close()
    made, findings = _record(seen, plan, options, target_name, TimelineInputs(context, start, enclose=True))
    journal.manifest = attrs.evolve(journal.manifest, observations=())
    journal.add_observation(made.listed(), {path: (data,) for path, data in made.files.items()})
    if not seen.interrupted:
        journal.close()
    return CollectedObservation(made, journal.manifest, findings)


def _record(
    seen: RestartObserved, plan: RestartPlan, options: TargetOptions, target_name: str, inputs: TimelineInputs
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    raw = dump_restart(
        seen,
        fault=plan.fault.kind,
        target=target_name,
        output_tokens=plan.output_tokens,
        ignore_eos=options.ignore_eos,
    )
    return import_restart_timeline(GivenFile("restart.jsonl", raw), inputs)


async def _engine_start(target: Target) -> str | None:
    """Return when the engine that is to fail started, where it tells."""
    page = await target.page.scrape()
    samples = () if page is None else parse_exposition(page)
    texts = [sample.value for sample in samples if sample.name == _START]
    started = Decimal(texts[0]) if texts else Decimal("NaN")
    return format_instant(int(started)) if started.is_finite() and 0 <= started * NS_PER_S < 2**63 else None
