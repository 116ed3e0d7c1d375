"""``moeplan collect restart``: make one worker fail under load, and record how service comes back."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.endpoint_options import add_target, require_range, seconds, target_options
from moeplan.cli.observation_options import add_observation, observation_context, show_collected

if TYPE_CHECKING:
    from moeplan.collectors.restart import RestartPlan
    from moeplan.collectors.restart_fault import Fault

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan collect restart --url http://localhost:8000 --pid 4711 --signal KILL --restart-command './serve.sh' "
    "--plan plan.json --checkpoint checkpoint.json --runtime-packages packages.txt -o restart --yes"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare endpoint, fault, load and output."""
    add_target(parser)
    fault = parser.add_argument_group("the fault; nothing is done without --yes")
    how = fault.add_mutually_exclusive_group(required=True)
    how.add_argument("--pid", metavar="N", help="process of the worker that is sent a signal")
    how.add_argument(
        "--command", metavar="TEXT", help="command that makes a worker fail, such as one that deletes a pod"
    )
    fault.add_argument("--signal", default="KILL", metavar="NAME", help="signal that --pid is sent (default KILL)")
    fault.add_argument("--restart-command", metavar="TEXT", help="command that starts the worker again; left running")
    fault.add_argument(
        "--restart-after", default="0", metavar="S", help="seconds from the fault to --restart-command (default 0)"
    )
    fault.add_argument("--yes", action="store_true", help="do it; without, say what would be done and exit with 2")
    load = parser.add_argument_group("the load and the wait")
    load.add_argument("--rate", default="4", metavar="R", help="requests a second (default 4)")
    load.add_argument("--output-tokens", type=int, default=32, metavar="N", help="tokens of each answer (default 32)")
    load.add_argument(
        "--ignore-eos",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="have the engine generate every token asked for (default)",
    )
    load.add_argument("--before", default="10", metavar="S", help="seconds of load before the fault (default 10)")
    load.add_argument("--after", default="10", metavar="S", help="seconds of load once it is ready again (default 10)")
    load.add_argument("--deadline", default="600", metavar="S", help="most seconds to ready again (default 600)")
    load.add_argument("--request-deadline", default="60", metavar="S", help="most seconds of one request (default 60)")
    load.add_argument(
        "--health-url", metavar="URL", help="where the worker that fails tells its health (default: URL/health)"
    )
    add_observation(parser)
    parser.add_argument(
        "--pseudonym-key",
        metavar="FILE",
        help="key of the process's pseudonym; made where it is missing (default: a key of this run alone)",
    )


def run(args: argparse.Namespace) -> int:
    """Say what would be done, or do it and write the record; 130 where it was stopped, 1 where it is incomplete."""
    from moeplan.cli.main import EXIT_INPUT, EXIT_INTERRUPTED, EXIT_NOT_READY, EXIT_OK
    from moeplan.cli.output import note
    from moeplan.errors import escape
    from moeplan.workflows.collect_restart import collect_restart

    options = target_options(args)
    plan = _plan(args)
    if not args.yes:
        _announce(args, plan)
        plan.fault.close()
        return EXIT_INPUT
    try:
        context, name = observation_context(args), _target_name(args)
        made = collect_restart(options, plan, name, context, args.output, note)
    finally:
        plan.fault.close()
    show_collected(made, args.json)
    if made.interrupted:
        note(f"stopped; what was seen lies in {escape(args.output, 400)}, and its run is open")
        return EXIT_INTERRUPTED
    note(f"wrote {escape(args.output, 400)}")
    whole = not any(finding.code == "timeline_incomplete" for finding in made.findings)
    return EXIT_OK if whole else EXIT_NOT_READY


def _announce(args: argparse.Namespace, plan: RestartPlan) -> None:
    from moeplan.cli.output import emit_json, note

    steps = [
        f"load the endpoint with {args.rate} requests a second for {args.before} s",
        plan.fault.described,
        *([] if plan.restart is None else [plan.restart.described]),
        f"wait at most {args.deadline} s until it is ready again, and load it for {args.after} s more",
    ]
    if args.json:
        emit_json({"wouldDo": steps, "done": False})
    for number, step in enumerate(steps, 1):
        note(f"would, {number}: {step}")
    note("nothing was done; give --yes to do it")


def _plan(args: argparse.Namespace) -> RestartPlan:
    from moeplan.collectors.restart import RestartPlan
    from moeplan.collectors.restart_fault import Restart, command_words

    require_range("--output-tokens", args.output_tokens, 1, 1_000_000)
    after = seconds("--restart-after", args.restart_after)
    again = args.restart_command
    restart = None if again is None else Restart(command_words("--restart-command", again), after)
    limit = seconds("--deadline", args.deadline)
    each = seconds("--request-deadline", args.request_deadline)
    require_range("--deadline", limit, 1, 86_400 * 10**9)
    require_range("--request-deadline", each, 1, 86_400 * 10**9)
    before, rest = seconds("--before", args.before), seconds("--after", args.after)
    return RestartPlan(
        fault=_fault(args),
        restart=restart,
        period_ns=_period(args.rate),
        output_tokens=args.output_tokens,
        before_ns=before,
        after_ns=rest,
        deadline_ns=limit,
        request_deadline_ns=each,
        health=args.health_url,
        ca_file=args.ca_file,
    )


def _fault(args: argparse.Namespace) -> Fault:
    from moeplan.collectors.restart_fault import CommandFault, command_words, signal_fault
    from moeplan.planning.options import parse_integer

    if args.command is not None:
        return CommandFault(command_words("--command", args.command))
    return signal_fault(parse_integer("--pid", args.pid, 1, 2**22), args.signal.upper().removeprefix("SIG"))


def _period(text: str) -> int:
    import re
    from fractions import Fraction

    from moeplan.errors import InputError, Issue, escape

    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", text, re.ASCII) or not Fraction(text):
        got = escape(repr(text), 40)
        raise InputError(
            Issue("--rate", "invalid_value", "not a rate", "requests a second, above 0 and below 1000", got)
        )
    return round(10**9 / Fraction(text))


def _target_name(args: argparse.Namespace) -> str:
    """Return the pseudonym of the process that fails; of a command's worker only that it is one."""
    import platform
    import secrets

    from moeplan.model.pseudonyms import KEY_BYTES, pseudonym

    if args.command is not None:
        return "worker"
    if args.pseudonym_key is None:
        key = secrets.token_bytes(KEY_BYTES)
    else:
        from moeplan.wire.pseudonym_key import read_pseudonym_key

        key = read_pseudonym_key(args.pseudonym_key)
    return pseudonym(key, "process", f"{platform.node()}/{args.pid}")
