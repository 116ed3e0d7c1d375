"""``moeplan import kubectl-events``: the cluster's warnings about the engine's pods become rows."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import (
    add_observation,
    add_pseudonym_key,
    observation_context,
    pseudonym_key,
    read_given,
    write_observations,
)

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import kubectl-events events.json --pseudonym-key site.key --plan plan.json --checkpoint checkpoint.json "
    "--runtime-image registry.example/vllm@sha256:… -o events"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("file", metavar="FILE", help="what 'kubectl get events -o json' wrote")
    add_pseudonym_key(parser)
    parser.add_argument("--role", default="serve", metavar="NAME", help="role of the deployment they are about")
    add_observation(parser)


def run(args: argparse.Namespace) -> int:
    """Import the events and write their record."""
    from moeplan.importers.kubectl_events import import_kubectl_events
    from moeplan.wire.pod_status import MAX_PODS_BYTES

    _name, data = read_given(args.file, MAX_PODS_BYTES)
    made, findings = import_kubectl_events(data, observation_context(args), pseudonym_key(args), args.role)
    return write_observations(args, [made], findings)
