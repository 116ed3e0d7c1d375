"""``moeplan import kubectl-pods``: the engine's pods become ``environment`` records, one a node."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import (
    add_observation,
    observation_context,
    pseudonym_key,
    read_given,
    write_observations,
)

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import kubectl-pods pods.json --taken 2026-11-30T16:30:00Z --pseudonym-key site.key --plan plan.json "
    "--checkpoint checkpoint.json --runtime-image registry.example/vllm@sha256:… -o pods"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("file", metavar="FILE", help="what 'kubectl get pods -l … -o json' wrote of the engine's pods")
    parser.add_argument("--taken", required=True, metavar="INSTANT", help="when kubectl was asked, UTC")
    parser.add_argument("--node", metavar="NAME", help="pseudonym of the node, where all pods are on one")
    parser.add_argument(
        "--pseudonym-key", metavar="FILE", help="key to make the nodes' pseudonyms with; made if missing"
    )
    add_observation(parser)


def run(args: argparse.Namespace) -> int:
    """Import the pods and write their records."""
    from moeplan.importers.kubectl_pods import import_kubectl_pods
    from moeplan.importers.trial import require_instant
    from moeplan.wire.pod_status import MAX_PODS_BYTES

    taken = require_instant("--taken", args.taken)
    _name, data = read_given(args.file, MAX_PODS_BYTES)
    key = None if args.pseudonym_key is None else pseudonym_key(args)
    made, findings = import_kubectl_pods(data, observation_context(args), str(taken), node=args.node, key=key)
    return write_observations(args, made, findings)
