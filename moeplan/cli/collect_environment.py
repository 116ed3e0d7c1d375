"""``moeplan collect environment``: what an engine runs in, as its own process sees it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.observation_options import add_observation, observation_context, pseudonym_key, write_observations

if TYPE_CHECKING:
    from moeplan.workflows.environment import EngineTarget, PodTarget

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan collect environment --node node-a --serving-node node-a --plan plan.json --checkpoint checkpoint.json "
    "--runtime-packages packages.txt -o environment"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    process = parser.add_mutually_exclusive_group()
    process.add_argument(
        "--pid", type=int, metavar="PID", help="the API server's process (default: vLLM's server, found)"
    )
    process.add_argument("--process-name", metavar="TEXT", help="a text of the engine's command line")
    parser.add_argument(
        "--directory", metavar="PATH", help="model directory as the engine sees it (default: its model)"
    )
    parser.add_argument("--node", metavar="NAME", help="pseudonym of the node, as for --serving-node")
    parser.add_argument(
        "--pseudonym-key", metavar="FILE", help="key to make the node's pseudonym with; made if missing"
    )
    parser.add_argument("--server-info", metavar="FILE", help="what GET /server_info?config_format=json answered")
    parser.add_argument(
        "--pods-file", metavar="FILE", help="what 'kubectl get pod NAME -o json' wrote of the engine's pod"
    )
    parser.add_argument("--pod", metavar="NAME", help="look inside this pod, over 'kubectl exec'")
    parser.add_argument("--container", metavar="NAME", help="container of the pod that runs the engine")
    parser.add_argument("--namespace", "-n", metavar="NAME", help="namespace of the pod")
    parser.add_argument("--kube-context", metavar="NAME", help="context of kubectl")
    parser.add_argument("--deadline", type=int, default=120, metavar="S", help="seconds for each probe (default 120)")
    add_observation(parser)


def run(args: argparse.Namespace) -> int:
    """Look at the environment and write its record."""
    import time

    from moeplan.cli.output import note
    from moeplan.collectors.environment import environment_record
    from moeplan.wire.observation import enclosing_interval
    from moeplan.workflows.environment import see_environment

    _check(args)
    context = observation_context(args)
    note("looking at the engine's process and its node")
    begun = time.time_ns()
    seen = see_environment(
        _target(args),
        node=args.node,
        key=None if args.pseudonym_key is None else pseudonym_key(args),
        pod=_pod(args),
        pods_file=_read(args.pods_file),
        server_info=_read(args.server_info),
        deadline_s=args.deadline,
    )
    interval, _origin = enclosing_interval(begun, time.time_ns())
    made = environment_record(seen, context, interval)
    for gap in made.record.payload.gaps:  # type: ignore[union-attr]
        note(f"not seen: {gap.part}: {gap.reason}")
    return write_observations(args, [made])


def _read(path: str | None) -> bytes | None:
    from moeplan.wire.files import read_file
    from moeplan.wire.pod_status import MAX_PODS_BYTES

    return None if path is None else read_file(path, max_bytes=MAX_PODS_BYTES)


def _target(args: argparse.Namespace) -> EngineTarget:
    from moeplan.workflows.environment import EngineTarget

    return EngineTarget(args.pid, args.process_name, args.directory)


def _pod(args: argparse.Namespace) -> PodTarget | None:
    from moeplan.site.kubectl import Kubectl
    from moeplan.workflows.environment import PodTarget

    if args.pod is None:
        return None
    return PodTarget(Kubectl(args.kube_context, args.namespace), args.pod, args.container)


def _check(args: argparse.Namespace) -> None:
    import re

    from moeplan.errors import InputError, Issue, escape
    from moeplan.model.fields import ID_PATTERN

    issues = []
    if args.node is not None and re.fullmatch(ID_PATTERN[1:-1], args.node) is None:
        shown = escape(repr(args.node), 80)
        issues.append(Issue("--node", "invalid_value", "not a pseudonym", "such as node-3f2a9c0d1b7e", shown))
    if args.node is None and args.pseudonym_key is None:
        issues.append(Issue("--node", "usage", "the node has no pseudonym", "--node NAME, or --pseudonym-key FILE"))
    if not 1 <= args.deadline <= 3600:
        issues.append(Issue("--deadline", "invalid_value", "not a deadline", "1 to 3600 seconds", str(args.deadline)))
    if args.pid is not None and args.pid < 1:
        issues.append(Issue("--pid", "invalid_value", "not a process", "an integer from 1", str(args.pid)))
    words = (
        (option, getattr(args, option.strip("-").replace("-", "_")))
        for option in ("--pod", "--container", "--namespace", "--kube-context")
    )
    issues += [
        Issue(option, "invalid_value", "not a name of Kubernetes", "a name", escape(repr(value), 80))
        for option, value in words
        if value is not None and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,252}", value) is None
    ]
    if issues:
        raise InputError(*issues)
