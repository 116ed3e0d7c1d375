"""``moeplan import reported``: a tool's summary without raw data becomes ``reported_summary`` records."""

from __future__ import annotations

import argparse

from moeplan.cli.enclose_option import add_enclose, enclosed
from moeplan.cli.observation_options import add_observation, observation_context, read_given, write_observations

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import reported agg_result.json --plan plan.json --checkpoint checkpoint.json --runtime-packages "
    "packages.txt --started 2026-11-30T16:00:00Z --ended 2026-11-30T17:00:00Z -o reported"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("file", metavar="FILE", help="a summary: figures without the raw data of each request")
    add_observation(parser)
    parser.add_argument("--started", required=True, metavar="INSTANT", help="instant before the first request, UTC")
    parser.add_argument("--ended", required=True, metavar="INSTANT", help="instant after the last request, UTC")
    parser.add_argument("--tool-version", metavar="TEXT", help="the tool's version, such as 0.32.0")
    add_enclose(parser, "tool-output")


def run(args: argparse.Namespace) -> int:
    """Import the summary and write its records."""
    from moeplan.errors import InputError, escape
    from moeplan.importers.reported import ReportedFile, record_reported
    from moeplan.importers.tool_json import MAX_TOOL_BYTES
    from moeplan.importers.trial import require_instant
    from moeplan.model.evidence import Interval

    started, ended = require_instant("--started", args.started), require_instant("--ended", args.ended)
    name, data = read_given(args.file, MAX_TOOL_BYTES)
    given = ReportedFile(name, data, Interval(str(started), str(ended)), args.tool_version, bool(enclosed(args)))
    context = observation_context(args)
    try:
        made, findings = record_reported(given, context)
    except InputError as error:
        error.source = escape(name)
        raise
    return write_observations(args, made, findings)
