"""``moeplan import probe``: the directory of an in-engine probe becomes ``loaded_bytes`` and ``expert_counts``."""

from __future__ import annotations

import argparse
from pathlib import Path

from moeplan.cli.observation_options import add_observation, observation_context, read_given, write_observations

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import probe probe --metrics before.prom after.prom --plan plan.json --checkpoint checkpoint.json "
    "--runtime-packages packages.txt -o counted"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("directory", metavar="DIR", help="what MOEPLAN_PROBE_DIR named, of one engine start")
    add_observation(parser)
    parser.add_argument(
        "--metrics",
        nargs=2,
        metavar="FILE",
        help="the engine's /metrics before and after what was counted; the counts are believed where both agree",
    )
    parser.add_argument("--from", dest="since", metavar="INSTANT", help="take intervals from this instant on, UTC")
    parser.add_argument("--until", metavar="INSTANT", help="take intervals up to this instant, UTC")


def run(args: argparse.Namespace) -> int:
    """Import the directory and write its records."""
    from moeplan.importers.given import StoredFile
    from moeplan.importers.probe import import_probe
    from moeplan.importers.probe_record import MAX_RECORD_BYTES
    from moeplan.importers.prometheus import MAX_METRICS_BYTES

    files = [StoredFile(str(path), MAX_RECORD_BYTES) for path in _records(args.directory)]
    scrapes = None
    if args.metrics is not None:
        before, after = (read_given(path, MAX_METRICS_BYTES)[1] for path in args.metrics)
        scrapes = (before, after)
    made, findings = import_probe(files, observation_context(args), scrapes=scrapes, between=_between(args))
    return write_observations(args, made, findings)


def _records(directory: str) -> list[Path]:
    from moeplan.errors import InputError, Issue, escape

    found = sorted(Path(directory).glob("*.jsonl")) if Path(directory).is_dir() else []
    if not found:
        message = "no record of a probe in the directory"
        raise InputError(Issue("DIR", "missing_record", message, "files *.jsonl", escape(directory, 400)))
    return found


def _between(args: argparse.Namespace) -> tuple[int, int] | None:
    from moeplan.importers.trial import require_instant
    from moeplan.units import NS_PER_S, parse_instant

    if args.since is None and args.until is None:
        return None
    since, until = require_instant("--from", args.since), require_instant("--until", args.until)
    first = 0 if since is None else parse_instant(since) * NS_PER_S
    last = 2**63 - 1 if until is None else parse_instant(until) * NS_PER_S
    return first, last
