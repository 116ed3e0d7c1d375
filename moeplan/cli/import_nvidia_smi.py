"""``moeplan import nvidia-smi``: the CSV of ``nvidia-smi --query-gpu`` becomes a ``memory_series`` record."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import read_given, write_observations
from moeplan.cli.telemetry_options import add_telemetry, telemetry_inputs

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import nvidia-smi gpu.csv --utc-offset +00:00 --node node-a --plan plan.json "
    "--checkpoint checkpoint.json --runtime-image registry.example/vllm@sha256:… -o memory"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument(
        "file", metavar="FILE", help="what 'nvidia-smi --query-gpu=timestamp,… --format=csv -l 1' wrote"
    )
    parser.add_argument(
        "--utc-offset", required=True, metavar="±HH:MM", help="offset of the node's local time: --utc-offset=-07:00"
    )
    parser.add_argument("--columns", metavar="NAME,…", help="what was queried, where the file has no header")
    add_telemetry(parser)


def run(args: argparse.Namespace) -> int:
    """Import the output and write its record."""
    from moeplan.importers.telemetry import MAX_TELEMETRY_BYTES, import_nvidia_smi
    from moeplan.importers.trial import parse_utc_offset

    offset = parse_utc_offset(args.utc_offset)
    inputs = telemetry_inputs(args)
    name, data = read_given(args.file, MAX_TELEMETRY_BYTES)
    columns = None if args.columns is None else [part.strip() for part in args.columns.split(",")]
    made, findings = import_nvidia_smi(name, data, inputs, utc_offset=offset, columns=columns)
    return write_observations(args, [made], findings)
