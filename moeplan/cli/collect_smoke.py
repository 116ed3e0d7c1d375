"""``moeplan collect smoke``: one question with a deadline."""

from __future__ import annotations

import argparse

from moeplan.cli.endpoint_options import add_target, require_range, seconds, target_options
from moeplan.cli.observation_options import add_observation, observation_context

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan collect smoke --url http://localhost:8000 --deadline 120 --plan plan.json --checkpoint checkpoint.json "
    "--runtime-packages packages.txt -o smoke"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare endpoint, question and output."""
    add_target(parser)
    question = parser.add_argument_group("the question")
    question.add_argument("--deadline", default="120", metavar="S", help="seconds to the whole answer (default 120)")
    question.add_argument(
        "--output-tokens", type=int, default=1024, metavar="N", help="most tokens of the answer (default 1024)"
    )
    add_observation(parser)


def run(args: argparse.Namespace) -> int:
    """Ask, write the record, and return 1 unless the endpoint answered."""
    from moeplan.cli.main import EXIT_NOT_READY, EXIT_OK
    from moeplan.cli.output import emit_json, emit_text, note
    from moeplan.errors import escape
    from moeplan.model.observations import Smoke
    from moeplan.units import format_ns
    from moeplan.workflows.collect_smoke import collect_smoke

    require_range("--output-tokens", args.output_tokens, 1, 1_000_000)
    limit = seconds("--deadline", args.deadline)
    require_range("--deadline", limit, 1, 86_400 * 10**9)
    done = collect_smoke(
        target_options(args),
        observation_context(args),
        args.output,
        deadline_ns=limit,
        output_tokens=args.output_tokens,
    )
    smoke = done.made.record.payload
    assert isinstance(smoke, Smoke)
    if args.json:
        record = {"path": done.made.path, "digest": done.made.digest, "type": "smoke"}
        emit_json({"records": [record], "outcome": smoke.outcome, "fault": done.fault, "findings": []})
    else:
        tokens = "" if smoke.output_tokens is None else f", {smoke.output_tokens} tokens"
        reason = done.fault or smoke.finish_reason or "no finish reason"
        emit_text(f"{smoke.outcome}: {reason} after {format_ns(smoke.elapsed_ns)}{tokens}")
        emit_text(f"{done.made.path} {done.made.digest}")
    note(f"wrote {escape(args.output, 400)}")
    return EXIT_OK if smoke.outcome == "answered" else EXIT_NOT_READY
