"""Load an endpoint trial by trial, each written as evidence when it ends: collect and import, joined."""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import attrs

from moeplan.collectors.endpoint_connection import Deadlines
from moeplan.collectors.endpoint_metrics import settled_page
from moeplan.collectors.endpoint_raw import ObservedRequest, TrialHead, TrialTail, dump_raw
from moeplan.collectors.endpoint_target import Target, TargetOptions, counted_tokens, open_target
from moeplan.collectors.endpoint_trial import ObservedTrial, run_load
from moeplan.collectors.journal import Journal
from moeplan.collectors.load_plan import LoadPlan, Workload, plan_load
from moeplan.collectors.prompts import PromptMaker
from moeplan.digest import digest_bytes
from moeplan.errors import InputError
from moeplan.importers.endpoint_raw import ENDPOINT_IMPORTER, judge
from moeplan.importers.given import GivenFile, chunks_of
from moeplan.importers.run import import_trial
from moeplan.importers.table import Importer
from moeplan.importers.trial import TrialInputs
from moeplan.importers.trial_record import MadeTrial, RunInputs
from moeplan.model.evidence import TrialRef
from moeplan.model.finding import Finding
from moeplan.model.run_manifest import RunManifest, RunTrial
from moeplan.units import NS_PER_S
from moeplan.version import VERSION
from moeplan.wire.documents import identify
from moeplan.wire.observation import ObservationContext

__all__ = ["CollectedRun", "EndpointCollection", "EndpointRun", "collect_endpoint", "run_until_stopped"]

T = TypeVar("T")

_CHECKED_PROMPTS = 3
_PROGRESS_EVERY_S = 2.0


@attrs.frozen
class EndpointRun:
    """What a run of load trials is to do.

    Attributes:
        target: how the endpoint is reached.
        workload: what each trial sends.
        prompts: makes prompts of exact length.
        trials: how many.
        warmup_requests: sent before each trial, one after another up to the cap; they belong to no trial.
        deadlines: of each request.
        endpoint_name: what the records call the endpoint.
        enclose: roles of given files that are enclosed; the raw record and the pages hold nothing of a site.
    """

    target: TargetOptions
    workload: Workload
    prompts: PromptMaker
    trials: int
    warmup_requests: int
    endpoint_name: str
    deadlines: Deadlines = Deadlines()
    enclose: frozenset[str] = frozenset({"tool_output", "metrics_before", "metrics_after"})


@attrs.frozen
class CollectedRun:
    """What became of it: the run's manifest as it lies, its trials, and what a person should know."""

    manifest: RunManifest
    trials: tuple[MadeTrial, ...]
    findings: tuple[Finding, ...]

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its end."""
        return self.manifest.state == "open"


def collect_endpoint(
    run: EndpointRun,
    context: ObservationContext,
    output: Path | str,
    say: Callable[[str], None] = lambda _text: None,
) -> CollectedRun:
    """Run every trial and write each as it ends; Ctrl-C or SIGTERM leaves a directory that is open and valid.

    Args:
        run: what to do.
        context: plan and deployment that the records name.
        output: directory to make; missing or empty.
        say: told how far it is.

    Raises:
        InputError: the endpoint does not answer, or a prompt of the length asked for cannot be made.
        StoreError: the directory cannot be written.
    """
    return run_until_stopped(EndpointCollection(run, context, output, say).collect())


def run_until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that ends in good order when it is cancelled, as Ctrl-C and SIGTERM do."""

    async def stoppable() -> T:
        task = asyncio.ensure_future(work)
        with suppress(NotImplementedError, RuntimeError, ValueError):  # not in the main thread: nobody signals
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            return await task

    try:
        return asyncio.run(stoppable())
    except asyncio.CancelledError:  # stopped before there was anything to leave in good order
        raise KeyboardInterrupt from None


class EndpointCollection:
    """One run on its way; a subclass may have its trials made by something else."""

    def __init__(
        self, run: EndpointRun, context: ObservationContext, output: Path | str, say: Callable[[str], None]
    ) -> None:
        """Take what is to be done; nothing is asked or written yet."""
        self._run, self._context, self._output, self._say = run, context, output, say
        self._name = f"run-{secrets.token_hex(6)}"
        self._made: list[MadeTrial] = []
        self._findings: list[Finding] = []

    async def collect(self) -> CollectedRun:
        """Run every trial."""
        target = await self._open()
        try:
            await self._check_lengths(target)
            journal = Journal(self._output, self._manifest())
            for number in range(1, self._run.trials + 1):
                if not await self._trial(target, number, journal):
                    break
            else:
                journal.close()
        finally:
            target.close()
        return CollectedRun(journal.manifest, tuple(self._made), tuple(self._findings))

    async def _open(self) -> Target:
        return await open_target(self._run.target)

    async def _counted(self, target: Target, text: str) -> int | None:
        return await counted_tokens(target, text)

    async def _page(self, target: Target) -> bytes | None:
        return await settled_page(target.page)

    async def _load(
        self, target: Target, plan: LoadPlan, bodies: Sequence[bytes], done: Callable[[int], None] = lambda _count: None
    ) -> tuple[int, ObservedTrial]:
        """Send a plan's requests; return when it began, in ns of Unix time, and what was seen."""
        started = time.time_ns()
        return started, await run_load(plan, bodies, target.connections, self._run.deadlines, done)

    async def _check_lengths(self, target: Target) -> None:
        """Let the engine count the first prompts too; a client's tokenizer may not be the engine's."""
        plan = plan_load(self._run.workload, "1")
        for request in plan.requests[:_CHECKED_PROMPTS]:
            text = self._run.prompts.prompt(request.blocks)
            if not isinstance(text, str):
                return
            counted = await self._counted(target, text)
            if counted is None:
                message = "the endpoint offers no /tokenize: prompt lengths are the tokenizer's of --tokenizer"
                self._findings.append(Finding("lengths_not_checked", "info", message, None))
                return
            if counted != request.input_tokens:
                message = f"the engine counts {counted} tokens in a prompt of {request.input_tokens}"
                self._findings.append(Finding("lengths_differ", "warning", message, None))
                return

    def _inputs(self) -> RunInputs:
        workload = self._run.workload
        stated = TrialInputs(
            requested_input_tokens=workload.least_input,
            requested_output_tokens=workload.least_output,
            ignore_eos=self._run.target.ignore_eos,
            concurrency=workload.concurrency,
            warmup_requests=self._run.warmup_requests,
            endpoint=self._run.endpoint_name,
            tool_version=VERSION,
        )
        return RunInputs(self._context.plan, self._context.deployment, stated, self._run.enclose)

    def _manifest(self) -> RunManifest:
        workload = self._run.workload
        return RunManifest(
            run=self._name,
            plan=self._context.plan,
            deployment=identify(self._context.deployment),
            announced=True,
            state="open",
            planned_trials=self._run.trials,
            planned_requests=workload.requests,
            requested_input_tokens=workload.least_input,
            requested_output_tokens=workload.least_output,
            declared_concurrency=workload.concurrency,
            warmup_requests=self._run.warmup_requests,
            trials=(),
        )

    async def _trial(self, target: Target, number: int, journal: Journal) -> bool:
        """Run one trial and list it; return whether the run is to go on."""
        self._say(f"trial {number} of {self._run.trials}: making prompts")
        plan = plan_load(self._run.workload, str(number))
        bodies = self._bodies(target, plan)
        raw: bytes | None = None
        try:
            before = await self._page(target)
            warmed = await self._warm_up(target, number)
            self._say(f"trial {number} of {self._run.trials}: {len(bodies)} requests")
            started, seen = await self._load(target, plan, bodies, self._progress(number))
            raw = self._raw(plan, seen, warmed, started)
            if seen.interrupted:
                raise asyncio.CancelledError
            after = await self._page(target)
        except asyncio.CancelledError:
            self._abort(number, raw, journal)
            self._say(f"stopped in trial {number}")
            return False
        file = GivenFile(f"trial-{number}.jsonl", raw)
        self._record(number, ENDPOINT_IMPORTER, file, (), (before, after), journal, raw)
        return True

    def _bodies(self, target: Target, plan: LoadPlan) -> list[bytes]:
        make = self._run.prompts.prompt
        return [target.request(make(request.blocks), request.output_tokens) for request in plan.requests]

    async def _warm_up(self, target: Target, number: int) -> tuple[ObservedRequest, ...]:
        count = self._run.warmup_requests
        if not count:
            return ()
        workload = self._run.workload
        ahead = attrs.evolve(
            workload,
            schedule="closed",
            requests=count,
            concurrency=workload.concurrency or 1,
            input_tokens=workload.least_input,
            output_tokens=workload.least_output,
        )
        plan = plan_load(ahead, f"warmup/{number}")
        self._say(f"trial {number}: {count} requests to warm up")
        _started, seen = await self._load(target, plan, self._bodies(target, plan))
        if seen.interrupted:
            raise asyncio.CancelledError
        return seen.requests

    def _raw(self, plan: LoadPlan, seen: ObservedTrial, warmed: tuple[ObservedRequest, ...], started_ns: int) -> bytes:
        run = self._run
        head = TrialHead(
            api=run.target.api,
            schedule=plan.schedule,
            path=run.target.through,
            endpoint=run.endpoint_name,
            concurrency=plan.concurrency,
            ignore_eos=run.target.ignore_eos,
            requested_input_tokens=run.workload.least_input,
            requested_output_tokens=run.workload.least_output,
            seed=run.workload.seed,
        )
        complete = [one for one in warmed if judge(attrs.asdict(one, recurse=False), run.target.ignore_eos)[1]]
        counted = len(complete) == run.warmup_requests
        tail = TrialTail(
            started_s=started_ns // NS_PER_S,
            started_rest_ns=started_ns % NS_PER_S,
            wall_ns=seen.wall_ns,
            cpu_ns=seen.cpu_ns,
            lag_p99_ns=seen.lag_p99_ns,
            warmup_requests=run.warmup_requests,
            warmup_complete=len(complete),
            warmup_input_tokens=sum(one.prompt_tokens or 0 for one in complete) if counted else None,
            warmup_output_tokens=sum(one.completion_tokens or 0 for one in complete) if counted else None,
        )
        return dump_raw(head, seen.requests, tail)

    def _record(
        self,
        number: int,
        importer: Importer,
        file: GivenFile,
        summaries: tuple[GivenFile, ...],
        pages: tuple[bytes | None, bytes | None],
        journal: Journal,
        raw: bytes | None = None,
    ) -> None:
        """Make a trial's record of its raw file, and list it; ``raw`` is kept where no record can be made."""
        before, after = pages
        around = None
        if before is not None and after is not None:
            around = (GivenFile("metrics-before.prom", before), GivenFile("metrics-after.prom", after))
        inputs = attrs.evolve(self._inputs(), summaries=summaries)
        try:
            made = import_trial(importer, file, around, TrialRef(self._name, number), inputs)
        except InputError as error:  # the engine restarted meanwhile, or another one answered
            issue = error.issues[0]
            message = f"the trial is no evidence: {issue}"
            self._findings.append(Finding(issue.code, "error", message, f"trial {number}"))
            self._abort(number, raw, journal)
            return
        journal.add_trial(made.listed(), {path: chunks_of(content) for path, content in made.files.items()})
        self._made.append(made)
        self._findings += made.findings

    def _abort(self, number: int, raw: bytes | None, journal: Journal) -> None:
        """List a trial that was begun and is no evidence, with what was seen of it."""
        kept = {} if raw is None else {f"attachments/{self._name}/trial-{number}-tool-output.jsonl": (raw,)}
        digests = tuple(digest_bytes(chunks[0]) for chunks in kept.values())
        journal.add_trial(RunTrial(number, "aborted", None, digests), kept)

    def _progress(self, number: int) -> Callable[[int], None]:
        last, total = [time.monotonic()], self._run.workload.requests

        def done(count: int) -> None:
            if time.monotonic() - last[0] >= _PROGRESS_EVERY_S:
                last[0] = time.monotonic()
                self._say(f"trial {number}: {count} of {total} requests have ended")

        return done
