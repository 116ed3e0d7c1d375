"""``moeplan import dcgm``: pages of NVIDIA's DCGM exporter become a ``memory_series`` record."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import write_observations
from moeplan.cli.telemetry_options import add_pages, add_telemetry, given_pages, telemetry_inputs

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import dcgm dcgm.prom --taken 2026-11-30T16:30:00Z --node node-a --plan plan.json "
    "--checkpoint checkpoint.json --runtime-image registry.example/vllm@sha256:… -o memory"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    add_pages(parser)
    add_telemetry(parser)


def run(args: argparse.Namespace) -> int:
    """Import the pages and write their record."""
    from moeplan.importers.telemetry import import_dcgm

    inputs = telemetry_inputs(args)
    scrapes, sides = given_pages(args)
    made, findings = import_dcgm(scrapes, inputs, sides)
    return write_observations(args, [made], findings)
