"""``moeplan import vllm-log``: a vLLM server's log becomes an ``engine_log`` record."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.observation_options import add_observation, observation_context, read_given, write_observations

if TYPE_CHECKING:
    from moeplan.importers.vllm_log import LogInputs

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import vllm-log serve.log --plan plan.json --checkpoint checkpoint.json --runtime-packages packages.txt "
    "--year 2026 --utc-offset +00:00 --engine-start 2026-11-30T16:16:45Z -o log"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("file", metavar="FILE", help="the server's log, from its first line")
    add_observation(parser)
    parser.add_argument("--role", default="serve", metavar="NAME", help="role of the deployment that wrote it")
    parser.add_argument("--year", type=int, metavar="N", help="year of the first line; vLLM writes none")
    parser.add_argument("--utc-offset", metavar="±HH:MM", help="offset of the lines' local time: --utc-offset=-07:00")
    parser.add_argument(
        "--engine-start", metavar="INSTANT", help="the engine's start (process_start_time_seconds of its /metrics)"
    )
    parser.add_argument("--runtime", metavar="NAME", help="engine or plugin whose log signatures count too")
    parser.add_argument(
        "--keep-logs", action="store_true", help="enclose the log after redaction; else its digest alone"
    )
    parser.add_argument(
        "--hide", action="append", default=[], metavar="TEXT", help="a name to take out of a kept log; once for each"
    )


def run(args: argparse.Namespace) -> int:
    """Import the log and write its record."""
    from moeplan.importers.vllm_log import MAX_LOG_BYTES, import_vllm_log

    _name, data = read_given(args.file, MAX_LOG_BYTES)
    made, findings = import_vllm_log(data, _inputs(args, data))
    return write_observations(args, [made], findings)


def _inputs(args: argparse.Namespace, data: bytes) -> LogInputs:
    from moeplan.importers.trial import parse_utc_offset, require_instant
    from moeplan.importers.vllm_log import LogInputs
    from moeplan.importers.vllm_log_lines import LogClock

    _check(args)
    offset = None if args.utc_offset is None else parse_utc_offset(args.utc_offset)
    lines = {}
    if args.runtime is not None:
        from moeplan.workflows.fatal_lines import fatal_lines

        lines = dict(fatal_lines(data, None, args.runtime))
    return LogInputs(
        context=observation_context(args),
        role=args.role,
        clock=LogClock(args.year, offset),
        engine_start=require_instant("--engine-start", args.engine_start),
        keep=args.keep_logs,
        hidden=tuple(args.hide),
        plugin_lines=lines,
    )


def _check(args: argparse.Namespace) -> None:
    import re

    from moeplan.errors import InputError, Issue, escape
    from moeplan.model.fields import ID_PATTERN

    if args.year is not None and not 1970 <= args.year <= 9998:
        raise InputError(Issue("--year", "invalid_value", "not a year", "1970 to 9998", str(args.year)))
    if re.fullmatch(ID_PATTERN[1:-1], args.role) is None:
        shown = escape(repr(args.role), 80)
        raise InputError(
            Issue("--role", "invalid_value", "not a role", "lower-case letters, digits, '.', '_', '-'", shown)
        )
