"""``moeplan collect endpoint``: load an OpenAI-compatible endpoint, trial by trial."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.endpoint_options import add_target, add_way, endpoint_name, seconds, target_options
from moeplan.cli.load_pod_options import add_pod, load_pod, show_pod
from moeplan.cli.observation_options import add_observation, observation_context

if TYPE_CHECKING:
    from fractions import Fraction

    from moeplan.collectors.load_plan import PlannedRequest, Workload
    from moeplan.collectors.prompts import PromptMaker
    from moeplan.workflows.collect_endpoint import CollectedRun, EndpointRun

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan collect endpoint --url http://localhost:8000 --tokenizer model --requests 240 --input-tokens 128 "
    "--output-tokens 64 --concurrency 4 --warmup-requests 16 --trials 3 --plan plan.json --checkpoint checkpoint.json "
    "--runtime-packages packages.txt -o trials"
)

_MOST_TRACE_BYTES = 1 << 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare endpoint, load and output."""
    add_target(parser)
    add_way(parser)
    load = parser.add_argument_group("the load")
    load.add_argument("--tokenizer", required=True, metavar="DIR", help="checkpoint directory with tokenizer.json")
    load.add_argument(
        "--prompt",
        choices=("text", "token-ids"),
        default="text",
        help="send text of exact length, or token ids as they are: completions alone (default text)",
    )
    load.add_argument(
        "--schedule",
        choices=("closed", "poisson", "constant", "trace"),
        default="closed",
        help="when requests are due: as one before has ended, at a rate, or as a trace says (default closed)",
    )
    load.add_argument("--requests", type=int, metavar="N", help="requests of a trial (default: a trace's all)")
    load.add_argument(
        "--input-tokens", type=int, metavar="N", help="prompt tokens, before a chat template adds its own"
    )
    load.add_argument("--output-tokens", type=int, metavar="N", help="output tokens asked for")
    load.add_argument("--concurrency", type=int, metavar="N", help="cap on requests in flight; needed for closed")
    load.add_argument("--rate", metavar="R", help="requests a second, such as 2.5: for poisson and constant")
    load.add_argument("--trace", metavar="FILE", help="trace in JSON Lines: timestamp, input_length, output_length")
    load.add_argument(
        "--trace-block-tokens", type=int, default=512, metavar="N", help="tokens of one hash id (default 512)"
    )
    load.add_argument(
        "--prefix-share-bps",
        type=int,
        default=0,
        metavar="BPS",
        help="share of each prompt that all have in common, in basis points (default 0)",
    )
    load.add_argument(
        "--warmup-requests", type=int, default=0, metavar="N", help="requests before each trial (default 0)"
    )
    load.add_argument("--trials", type=int, default=3, metavar="N", help="trials of the run (default 3)")
    load.add_argument("--seed", type=int, metavar="N", help="of prompts and arrivals (default: drawn anew)")
    load.add_argument(
        "--ignore-eos",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="have the engine generate every token asked for (default)",
    )
    load.add_argument(
        "--continuous-usage",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="ask for the server's counts with every chunk (default)",
    )
    tool = parser.add_argument_group("a tool of others, beyond what this client can do")
    tool.add_argument(
        "--tool", choices=("vllm-bench", "aiperf", "guidellm"), help="run this installed tool and import its raw file"
    )
    tool.add_argument("--trial-deadline", default="3600", metavar="S", help="seconds for one trial (default 3600)")
    limits = parser.add_argument_group("deadlines of each request, in seconds")
    limits.add_argument("--connect-deadline", default="10", metavar="S", help="to connect (default 10)")
    limits.add_argument("--first-byte-deadline", default="120", metavar="S", help="to the first byte (default 120)")
    limits.add_argument("--deadline", default="600", metavar="S", help="to the end (default 600)")
    add_pod(parser)
    add_observation(parser)


def run(args: argparse.Namespace) -> int:
    """Run the trials, show them, and return 130 where the run was stopped."""
    from moeplan.cli.main import EXIT_INTERRUPTED, EXIT_NOT_READY, EXIT_OK
    from moeplan.cli.output import note
    from moeplan.errors import escape

    pod = load_pod(args)
    if args.render_only:
        return show_pod(args)
    settings, context = _settings(args), observation_context(args)
    if pod is not None:
        from moeplan.workflows.collect_in_pod import collect_in_pod

        deadline = seconds("--trial-deadline", args.trial_deadline) // 10**9
        made = collect_in_pod(settings, pod, context, args.output, note, deadline)
    elif args.tool is None:
        from moeplan.workflows.collect_endpoint import collect_endpoint

        made = collect_endpoint(settings, context, args.output, note)
    else:
        from moeplan.workflows.collect_tool import ToolRun, collect_tool

        tool = ToolRun(args.tool, args.tokenizer, seconds("--trial-deadline", args.trial_deadline) / 10**9)
        made = collect_tool(settings, tool, context, args.output, note)
    _show(made, args.json)
    if made.interrupted:
        note(f"stopped; what was made lies in {escape(args.output, 400)}, and its run is open")
        return EXIT_INTERRUPTED
    note(f"wrote {escape(args.output, 400)}")
    return EXIT_NOT_READY if any(finding.severity == "error" for finding in made.findings) else EXIT_OK


def _settings(args: argparse.Namespace) -> EndpointRun:
    from moeplan.cli.endpoint_options import require_range
    from moeplan.collectors.endpoint_connection import Deadlines
    from moeplan.workflows.collect_endpoint import EndpointRun

    require_range("--trials", args.trials, 1, 100_000)
    require_range("--warmup-requests", args.warmup_requests, 0)
    workload = _workload(args)
    return EndpointRun(
        target=target_options(args),
        workload=workload,
        prompts=_prompts(args, workload.seed),
        trials=args.trials,
        warmup_requests=args.warmup_requests,
        endpoint_name=endpoint_name(args),
        deadlines=Deadlines(
            seconds("--connect-deadline", args.connect_deadline),
            seconds("--first-byte-deadline", args.first_byte_deadline),
            seconds("--deadline", args.deadline),
        ),
    )


def _workload(args: argparse.Namespace) -> Workload:
    import secrets

    from moeplan.cli.endpoint_options import require_given, require_range
    from moeplan.collectors.load_plan import Workload

    trace = _trace(args)
    if args.schedule != "trace":
        for option in ("--requests", "--input-tokens", "--output-tokens"):
            require_given(option, getattr(args, option[2:].replace("-", "_")), f"--schedule {args.schedule} needs it")
            require_range(option, getattr(args, option[2:].replace("-", "_")), 1, 100_000_000)
    if args.schedule == "closed":
        require_given("--concurrency", args.concurrency, "--schedule closed needs it")
    if args.concurrency is not None:
        require_range("--concurrency", args.concurrency, 1, 100_000)
    require_range("--prefix-share-bps", args.prefix_share_bps, 0, 10_000)
    if args.seed is not None:
        require_range("--seed", args.seed, 0, 2**53 - 1)
    requests = min(args.requests or len(trace), len(trace)) if trace else args.requests
    return Workload(
        schedule=args.schedule,
        requests=requests,
        input_tokens=args.input_tokens or 0,
        output_tokens=args.output_tokens or 0,
        concurrency=args.concurrency,
        rate=_rate(args),
        prefix_share_bps=args.prefix_share_bps,
        seed=secrets.randbits(53) if args.seed is None else args.seed,
        trace=trace,
    )


def _rate(args: argparse.Namespace) -> Fraction | None:
    import re
    from fractions import Fraction

    from moeplan.cli.endpoint_options import require_given
    from moeplan.errors import InputError, Issue, escape

    if args.schedule not in ("poisson", "constant"):
        return None
    require_given("--rate", args.rate, f"--schedule {args.schedule} needs it")
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", args.rate, re.ASCII) or not Fraction(args.rate):
        got = escape(repr(args.rate), 40)
        raise InputError(Issue("--rate", "invalid_value", "not a rate", "requests a second, such as 2.5", got))
    return Fraction(args.rate)


def _trace(args: argparse.Namespace) -> tuple[PlannedRequest, ...]:
    from moeplan.cli.endpoint_options import require_given, require_range
    from moeplan.collectors.load_plan import load_trace
    from moeplan.errors import InputError, escape
    from moeplan.wire.files import read_file

    if args.schedule != "trace":
        return ()
    require_given("--trace", args.trace, "--schedule trace needs it")
    require_range("--trace-block-tokens", args.trace_block_tokens, 1, 1_000_000)
    try:
        return load_trace(read_file(args.trace, max_bytes=_MOST_TRACE_BYTES), args.trace_block_tokens)
    except InputError as error:
        error.source = error.source or escape(args.trace, 400)
        raise


def _prompts(args: argparse.Namespace, seed: int) -> PromptMaker:
    from pathlib import Path

    from moeplan.collectors.prompts import TokenIdPrompts, read_token_ids, read_words
    from moeplan.errors import InputError, Issue

    if args.tool is not None:
        return TokenIdPrompts(1000, seed)  # never asked: a tool makes prompts of its own
    if args.prompt == "text":
        return read_words(Path(args.tokenizer), seed)
    if args.api != "completions":
        raise InputError(
            Issue("--prompt", "usage", "a chat takes no token ids", "--api completions", f"--api {args.api}")
        )
    return read_token_ids(Path(args.tokenizer), seed)


def _show(made: CollectedRun, as_json: bool) -> None:
    from moeplan.cli.output import emit_json, emit_text, note, table
    from moeplan.importers.summary import summarize
    from moeplan.wire.converter import unstructure
    from moeplan.wire.documents import identify

    trials = [one.record for one in made.trials]
    summaries = [summarize(one.trial) for one in trials]
    if as_json:
        records = [
            {"path": one.path, "digest": one.digest, **unstructure(summary)}
            for one, summary in zip(trials, summaries, strict=True)
        ]
        manifest = made.manifest
        run = {"digest": identify(manifest), "run": manifest.run, "state": manifest.state}
        emit_json({"records": records, "run": run, "findings": [unstructure(item) for item in made.findings]})
        return
    headers = ("trial", "requests", "not complete", "TTFT p95", "by the tool", "chunk gap p95", "in flight at most")
    emit_text(table(headers, [(one.path, *summary.cells()) for one, summary in zip(trials, summaries, strict=True)]))
    for finding in made.findings:
        where = f" ({finding.where})" if finding.where else ""
        note(f"{finding.severity}: {finding.code}{where}: {finding.message}")
