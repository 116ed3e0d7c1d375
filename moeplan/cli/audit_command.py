"""moeplan audit: verify, judge, and reproduce the signed verdict byte for byte."""

from __future__ import annotations

import argparse

EXAMPLE = "moeplan audit bundle.tar --policy policy.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from moeplan.cli.inputs import add_at, add_registries

    parser.add_argument("path", metavar="PATH", help="bundle directory or tar")
    parser.add_argument("--policy", required=True, metavar="FILE", help="the auditor's policy, JSON or YAML")
    parser.add_argument(
        "--signer-policy", action="append", default=[], metavar="FILE", help="policy under which a verdict was signed"
    )
    add_at(parser)
    add_registries(parser)
    parser.add_argument("--json", action="store_true", help="print steps, reproductions and the own verdict as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from moeplan.auditing.audit import audit
    from moeplan.cli.inputs import instant_or_now, read_policy, read_registries
    from moeplan.cli.main import EXIT_FAULT
    from moeplan.cli.output import emit_json, emit_text, note_error
    from moeplan.cli.verdict_command import verdict_code, verdict_text
    from moeplan.cli.verify_command import steps_table
    from moeplan.wire.converter import unstructure

    done = audit(
        args.path,
        read_policy(args.policy),
        instant_or_now(args.at),
        signer_policies=[read_policy(path) for path in args.signer_policy],
        registries=read_registries(args.registry),
    )
    if args.json:
        emit_json(
            {
                "ok": done.ok,
                "steps": [step.to_json() for step in done.steps],
                "reproduced": [unstructure(item) for item in done.reproductions],
                "own": unstructure(done.own) if done.own is not None else None,
                **(done.error.to_json() if done.error is not None else {}),
            }
        )
    else:
        emit_text(steps_table(done.steps))
        for item in done.reproductions:
            emit_text(f"signed verdict {item.outcome}: signed by {item.signer}, policy {item.policy}, at {item.at}")
        if not done.reproductions:
            emit_text("signed verdict: none by a trusted verifier")
        if done.own is not None:
            emit_text("own:\n" + verdict_text(done.own))
    if done.error is not None:
        note_error(done.error)
        return EXIT_FAULT
    assert done.own is not None
    return verdict_code(done.own)
