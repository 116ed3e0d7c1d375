"""``moeplan import restart-timeline``: a failure's timeline becomes a ``failure_timeline`` record."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import add_observation, observation_context, read_given, write_observations

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import restart-timeline timeline.jsonl --requested-output 96 --plan plan.json "
    "--checkpoint checkpoint.json --runtime-packages packages.txt -o restart"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("file", metavar="FILE", help="the timeline: requests, health and the fault, one a line")
    add_observation(parser)
    parser.add_argument(
        "--requested-output", metavar="N", help="tokens each request asked for, where the file does not tell"
    )
    parser.add_argument("--engine-start", metavar="INSTANT", help="start of the engine that was made to fail, UTC")


def run(args: argparse.Namespace) -> int:
    """Import the timeline and write its record."""
    from moeplan.importers.given import GivenFile
    from moeplan.importers.restart_timeline import TimelineInputs, import_restart_timeline
    from moeplan.importers.tool_json import MAX_TOOL_BYTES
    from moeplan.importers.trial import require_instant
    from moeplan.planning.options import parse_integer

    asked = args.requested_output
    inputs = TimelineInputs(
        context=observation_context(args),
        engine_start=require_instant("--engine-start", args.engine_start),
        requested_output_tokens=None if asked is None else parse_integer("--requested-output", asked, 1, 10**9),
    )
    made, findings = import_restart_timeline(GivenFile(*read_given(args.file, MAX_TOOL_BYTES)), inputs)
    return write_observations(args, [made], findings)
