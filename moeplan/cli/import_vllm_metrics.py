"""``moeplan import vllm-metrics``: pages of an engine's ``/metrics`` become a ``memory_series`` record."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import write_observations
from moeplan.cli.telemetry_options import add_pages, add_telemetry, given_pages, telemetry_inputs

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import vllm-metrics scrapes.jsonl --node node-a --plan plan.json --checkpoint checkpoint.json "
    "--runtime-image registry.example/vllm@sha256:… -o metrics"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    add_pages(parser)
    parser.add_argument("--role", metavar="NAME", help="role that the engine serves, such as decode")
    add_telemetry(parser)


def run(args: argparse.Namespace) -> int:
    """Import the pages and write their record."""
    import re

    from moeplan.errors import InputError, Issue, escape
    from moeplan.importers.telemetry import import_vllm_metrics

    if args.role is not None and re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", args.role) is None:
        expected = "lower-case letters, digits, '.', '_', '-'"
        raise InputError(Issue("--role", "invalid_value", "not a role", expected, escape(repr(args.role), 80)))
    inputs = telemetry_inputs(args)
    scrapes, sides = given_pages(args)
    made, findings = import_vllm_metrics(scrapes, inputs, role=args.role, sides=sides)
    return write_observations(args, [made], findings)
