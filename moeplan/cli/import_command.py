"""``moeplan import``: turn a tool's output into evidence records."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moeplan.cli.actions import add_action, add_actions
from moeplan.cli.deployment_options import add_runtime, add_serving, read_deployment, runtime_identity
from moeplan.cli.enclose_option import add_enclose, enclosed

if TYPE_CHECKING:
    from moeplan.importers.run import GivenFile, ImportedRun, RunInputs
    from moeplan.importers.table import Importer
    from moeplan.model.deployment import Deployment

EXAMPLE = (
    "moeplan import vllm-bench trial-1.json trial-2.json trial-3.json --plan plan.json --checkpoint checkpoint.json "
    "--runtime-packages packages.txt --requested-input 128 --requested-output 64 --ignore-eos --concurrency 4 "
    "--warmup-requests 16 --utc-offset +00:00 --metrics before.prom after-1.prom after-2.prom after-3.prom -o imported"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare one action a load tool, each with the same options, and those that read one observation."""
    from moeplan.cli.import_observations import add_observation_imports
    from moeplan.importers.table import IMPORTERS

    actions = add_actions(parser, "TOOL")
    add_observation_imports(actions)
    for importer in IMPORTERS.values():
        description = f"Import the output of '{importer.title}': its files hold the trials of one run."
        action = add_action(actions, importer.tool, importer.title, EXAMPLE, description)
        _add_files(action, importer)
        _add_stated(action, importer)


def add_called(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Declare the action that ``words`` call, where it is a format that only a plugin knows."""
    from moeplan.cli.plugin_formats import add_format

    actions = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    add_format(actions, words)


def _add_files(action: argparse.ArgumentParser, importer: Importer) -> None:
    action.add_argument("files", nargs="+", metavar="FILE", help="the tool's files, in order of their trials")
    action.add_argument("--plan", required=True, metavar="FILE", help="plan, form 1.1.0")
    action.add_argument("--checkpoint", required=True, metavar="FILE", help="manifest of the checkpoint that served")
    add_runtime(action, required=True)
    add_serving(action)
    action.add_argument(
        "--metrics",
        nargs="+",
        default=[],
        metavar="FILE",
        help="the engine's /metrics before the first trial, then after each trial",
    )
    if importer.summary is not None:
        help_text = f"the tool's own {importer.summary}: its figures are kept as claims and recomputed"
        action.add_argument("--summary", nargs="+", default=[], metavar="FILE", help=help_text)
    action.add_argument("-o", "--output", required=True, metavar="DIR", help="directory to make; missing or empty")
    add_enclose(action, "tool-output", *(["tool-summary"] if importer.summary is not None else []), "metrics")
    action.add_argument("--json", action="store_true", help='print {"records": […], "findings": […]}')


def _add_stated(action: argparse.ArgumentParser, importer: Importer) -> None:
    stated = action.add_argument_group("what the tool's file does not hold")
    stated.add_argument("--requested-input", required=True, type=int, metavar="N", help="prompt tokens asked for")
    stated.add_argument("--requested-output", required=True, type=int, metavar="N", help="output tokens asked for")
    stated.add_argument("--concurrency", type=int, metavar="N", help="cap on requests in flight")
    stated.add_argument(
        "--warmup-requests", type=int, metavar="N", help="requests before the measured ones, an initial test included"
    )
    stated.add_argument(
        "--ignore-eos",
        required=True,
        action=argparse.BooleanOptionalAction,
        help="whether the engine was told to generate all tokens asked for",
    )
    stated.add_argument(
        "--accept-early-stop",
        action="store_true",
        help="fewer tokens than asked for are the model's own stops (the file cannot tell them from broken streams)",
    )
    if not importer.shows_usage:
        stated.add_argument(
            "--continuous-usage",
            action="store_true",
            help="the tool asked for the server's counts with every chunk (continuous_usage_stats), and got them",
        )
    if importer.varies:
        stated.add_argument(
            "--output-varies",
            action="store_true",
            help="lengths asked for were drawn at random: with --ignore-eos the server's count is taken for each",
        )
    if importer.stages:
        stated.add_argument("--stage", type=int, metavar="N", help="the only stage to take, from 0 (default: all)")
    if importer.clock == "local":
        stated.add_argument(
            "--utc-offset",
            required=True,
            metavar="±HH:MM",
            help="offset of the tool's local clock: --utc-offset=-07:00",
        )
    if importer.clock == "none":
        stated.add_argument("--started", required=True, metavar="INSTANT", help="instant before the first request, UTC")
        stated.add_argument("--ended", required=True, metavar="INSTANT", help="instant after the last request, UTC")
    stated.add_argument("--endpoint", metavar="TEXT", help="what was called (default: the tool's word)")
    if importer.summary is not None:
        stated.add_argument("--model", metavar="TEXT", help="the model name asked for (default: the summary's)")
    stated.add_argument("--tool-version", metavar="TEXT", help="the tool's version, such as 0.32.0")


def run(args: argparse.Namespace) -> int:
    """Import the files, write the directory whole or not at all, and show what was found."""
    if getattr(args, "by_plugin", False):
        from moeplan.cli.plugin_formats import run_format

        return run_format(args)
    if getattr(args, "run_observation", None) is not None:
        return int(args.run_observation(args))
    from moeplan.bundle.staging import place_member, staged_directory
    from moeplan.cli.output import note
    from moeplan.errors import escape
    from moeplan.importers.given import StoredFile, chunks_of
    from moeplan.importers.prometheus import MAX_METRICS_BYTES
    from moeplan.importers.run import import_run
    from moeplan.importers.table import IMPORTERS
    from moeplan.importers.tool_json import MAX_STREAMED_BYTES, MAX_TOOL_BYTES

    inputs, importer = _inputs(args), IMPORTERS[args.action]
    most = MAX_STREAMED_BYTES if importer.streams else MAX_TOOL_BYTES
    tool_files = [StoredFile(path, most) for path in args.files]
    metrics = [_given(path, MAX_METRICS_BYTES) for path in args.metrics]
    made = import_run(importer, tool_files, metrics, inputs)
    with staged_directory(args.output) as root:
        for path, content in made.files.items():
            place_member(root, path, chunks_of(content))
    _show(made, args.json)
    note(f"wrote {escape(args.output, 400)}")
    return 1 if any(finding.severity == "error" for finding in made.findings) else 0


def _given(path: str, max_bytes: int) -> GivenFile:
    from moeplan.importers.run import GivenFile
    from moeplan.wire.files import read_file

    return GivenFile(Path(path).name, read_file(path, max_bytes=max_bytes))


def _inputs(args: argparse.Namespace) -> RunInputs:
    from moeplan.cli.inputs import read_document
    from moeplan.importers.run import RunInputs
    from moeplan.importers.tool_json import MAX_TOOL_BYTES
    from moeplan.importers.trial import TrialInputs, parse_utc_offset, require_instant
    from moeplan.model.plan import Plan
    from moeplan.wire.documents import identify

    for option, least in (("requested_input", 1), ("requested_output", 1), ("concurrency", 1), ("warmup_requests", 0)):
        _require_range(option, getattr(args, option), least)
    trial = TrialInputs(
        requested_input_tokens=args.requested_input,
        requested_output_tokens=args.requested_output,
        ignore_eos=args.ignore_eos,
        utc_offset_seconds=parse_utc_offset(getattr(args, "utc_offset", "Z")),
        concurrency=args.concurrency,
        warmup_requests=args.warmup_requests,
        accept_early_stop=args.accept_early_stop,
        endpoint=args.endpoint,
        tool_version=args.tool_version,
        started=require_instant("--started", getattr(args, "started", None)),
        ended=require_instant("--ended", getattr(args, "ended", None)),
        continuous_usage=getattr(args, "continuous_usage", False),
        model=getattr(args, "model", None),
        output_varies=getattr(args, "output_varies", False),
        stage=getattr(args, "stage", None),
    )
    plan = identify(read_document(args.plan, Plan))
    summaries = tuple(_given(path, MAX_TOOL_BYTES) for path in getattr(args, "summary", ()))
    return RunInputs(plan, _deployment(args), trial, enclosed(args), summaries)


def _require_range(option: str, value: int | None, least: int) -> None:
    from moeplan.errors import InputError, Issue

    if value is not None and not least <= value <= 10**9:
        name = "--" + option.replace("_", "-")
        raise InputError(
            Issue(name, "invalid_value", "value refused", f"an integer from {least} to {10**9}", str(value))
        )


def _deployment(args: argparse.Namespace) -> Deployment:
    from moeplan.cli.inputs import read_document
    from moeplan.model.checkpoint import CheckpointManifest

    runtime = runtime_identity(args)
    assert runtime is not None, "one of the two options is required"
    return read_deployment(args, read_document(args.checkpoint, CheckpointManifest).root, runtime)


def _show(made: ImportedRun, as_json: bool) -> None:
    from moeplan.cli.output import emit_json, emit_text, note, table
    from moeplan.importers.summary import summarize
    from moeplan.wire.converter import unstructure
    from moeplan.wire.documents import identify

    summaries = [summarize(record.trial) for record in made.records]
    if as_json:
        records: list[dict[str, Any]] = [
            {"path": record.path, "digest": record.digest, "trial": number, **unstructure(summary)}
            for number, (record, summary) in enumerate(zip(made.records, summaries, strict=True), 1)
        ]
        run = {"path": made.manifest_path, "digest": identify(made.manifest), "run": made.manifest.run}
        emit_json({"records": records, "run": run, "findings": [unstructure(item) for item in made.findings]})
        return
    headers = ("trial", "requests", "not complete", "TTFT p95", "by the tool", "chunk gap p95", "in flight at most")
    rows = [(str(number), *summary.cells()) for number, summary in enumerate(summaries, 1)]
    emit_text(table(headers, rows))
    for record in made.records:
        emit_text(f"{record.path} {record.digest}")
    for finding in made.findings:
        where = f" ({finding.where})" if finding.where else ""
        note(f"{finding.severity}: {finding.code}{where}: {finding.message}")
