"""Load an endpoint with an installed tool, trial by trial, and import each raw file it leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from moeplan.collectors.endpoint_metrics import settled_page
from moeplan.collectors.endpoint_target import Target
from moeplan.collectors.journal import Journal
from moeplan.collectors.load_tools import LOAD_TOOLS, LoadTool, ToolLoad, find_tool, run_tool
from moeplan.errors import InputError, Issue, PluginError
from moeplan.importers.given import GivenFile, StoredFile
from moeplan.importers.table import IMPORTERS
from moeplan.importers.trial_record import RunInputs
from moeplan.model.finding import Finding
from moeplan.wire.observation import ObservationContext
from moeplan.workflows.collect_endpoint import CollectedRun, EndpointCollection, EndpointRun, run_until_stopped

__all__ = ["ToolRun", "collect_tool"]

_MOST_TOOL_BYTES = 8 << 30


@attrs.frozen
class ToolRun:
    """Which tool, with which tokenizer, and how long one trial may take."""

    name: str
    tokenizer: str
    trial_deadline_s: float


def collect_tool(
    run: EndpointRun,
    tool: ToolRun,
    context: ObservationContext,
    output: Path | str,
    say: Callable[[str], None] = lambda _text: None,
) -> CollectedRun:
    """Run every trial with the tool; as :func:`moeplan.workflows.collect_endpoint.collect_endpoint` otherwise.

    The tool's files hold prompts and answers: they stay in ``<output>/tool``, which no bundle takes, and the records
    name them by digest.

    Raises:
        InputError: the tool is not installed, or cannot do what is asked.
        StoreError: the directory cannot be written.
    """
    made = LOAD_TOOLS[tool.name]
    _require_able(made, run)
    return run_until_stopped(_ToolCollection(run, made, tool, find_tool(made), context, output, say).collect())


def _require_able(tool: LoadTool, run: EndpointRun) -> None:
    if run.workload.schedule != "closed" or run.workload.prefix_share_bps:
        message = "with a tool of others the load is a closed loop of unlike prompts"
        raise InputError(Issue("--schedule", "usage", message, "--schedule closed, no --prefix-share-bps"))
    if run.warmup_requests and not tool.warms_up:
        raise InputError(Issue("--warmup-requests", "usage", f"{tool.name} sends no warm-up by number", "0"))
    if run.target.key is not None and tool.key_variable is None:
        message = f"{tool.name} takes a key on its command line alone, where every user of the machine sees it"
        raise InputError(Issue("--api-key-env", "usage", message, "an endpoint without a key, or another tool"))


class _ToolCollection(EndpointCollection):
    def __init__(
        self,
        run: EndpointRun,
        tool: LoadTool,
        settings: ToolRun,
        program: str,
        context: ObservationContext,
        output: Path | str,
        say: Callable[[str], None],
    ) -> None:
        super().__init__(attrs.evolve(run, enclose=frozenset()), context, output, say)
        self._tool, self._settings, self._program = tool, settings, program

    async def _check_lengths(self, target: Target) -> None:
        """Nothing to check: the tool makes the prompts."""

    def _inputs(self) -> RunInputs:
        inputs = super()._inputs()
        stated = attrs.evolve(
            inputs.trial,
            utc_offset_seconds=time.localtime().tm_gmtoff,
            model="model",
            tool_version=None,
            path=self._run.target.through,
        )
        return attrs.evolve(inputs, trial=stated)

    async def _trial(self, target: Target, number: int, journal: Journal) -> bool:
        self._say(f"trial {number} of {self._run.trials}: {self._tool.name} runs")
        out = Path(self._output).absolute() / "tool" / f"trial-{number}"
        try:
            before = await settled_page(target.page)
            await run_tool(
                self._tool,
                self._program,
                self._tool_load(target, number),
                out,
                self._settings.trial_deadline_s,
                self._run.target.key,
            )
            after = await settled_page(target.page)
        except asyncio.CancelledError:
            self._abort(number, None, journal)
            self._say(f"stopped in trial {number}")
            return False
        except PluginError as error:
            issue = error.issues[0]
            self._findings.append(Finding(issue.code, "error", str(issue), f"trial {number}"))
            self._abort(number, None, journal)
            return True
        file = StoredFile(str(out / self._tool.raw), _MOST_TOOL_BYTES)
        summary = self._tool.summary
        given = [] if summary is None else [out / summary]
        summaries = tuple(GivenFile(path.name, path.read_bytes()) for path in given if path.is_file())
        self._record(number, IMPORTERS[self._tool.name], file, summaries, (before, after), journal)
        # The pages kept say "model" for whatever the tool asked for.
        self._findings = [finding for finding in self._findings if finding.code != "model_name_differs"]
        return True

    def _tool_load(self, target: Target, number: int) -> ToolLoad:
        workload = self._run.workload
        return ToolLoad(
            url=target.address.origin + target.address.path,
            model=target.dialect.model,
            api=target.dialect.api,
            tokenizer=self._settings.tokenizer,
            requests=workload.requests,
            input_tokens=workload.input_tokens,
            output_tokens=workload.output_tokens,
            concurrency=workload.concurrency or 1,
            warmup_requests=self._run.warmup_requests,
            ignore_eos=self._run.target.ignore_eos,
            # Another trial has other prompts; the tools take 32 bits.
            seed=(workload.seed + number) % 2**31,
        )
