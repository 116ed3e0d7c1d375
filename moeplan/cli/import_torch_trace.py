"""``moeplan import torch-trace``: torch profiler traces become a ``communication_trace`` record."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import add_observation, observation_context, write_observations

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import torch-trace rank0.pt.trace.json.gz rank1.pt.trace.json.gz --plan plan.json "
    "--checkpoint checkpoint.json --runtime-packages packages.txt -o trace"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="traces of the workers, one a rank, plain or gzip")
    add_observation(parser)
    parser.add_argument(
        "--step-name", metavar="TEXT", help="what names of steps begin with (default: as vLLM and torch name them)"
    )
    parser.add_argument("--engine-start", metavar="INSTANT", help="the engine's start, UTC")


def run(args: argparse.Namespace) -> int:
    """Import the traces and write their record."""
    from moeplan.importers.given import StoredFile
    from moeplan.importers.torch_trace import import_torch_trace
    from moeplan.importers.trace_file import MAX_TRACE_BYTES
    from moeplan.importers.trial import require_instant

    files = [StoredFile(path, MAX_TRACE_BYTES) for path in args.files]
    start = require_instant("--engine-start", args.engine_start)
    made, findings = import_torch_trace(files, observation_context(args), step_name=args.step_name, engine_start=start)
    return write_observations(args, [made], findings)
