"""moeplan verify: signatures, inventory and records of a bundle."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.errors import InputError, Issue, VerificationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moeplan.auditing.steps import Step

EXAMPLE = "moeplan verify bundle.tar --policy policy.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from moeplan.cli.inputs import add_registries

    parser.add_argument("path", metavar="PATH", help="bundle directory or tar")
    parser.add_argument("--policy", metavar="FILE", help="the auditor's policy, JSON or YAML")
    parser.add_argument(
        "--unsigned", action="store_true", help="only show what the bundle says of itself; never exits 0"
    )
    add_registries(parser)
    parser.add_argument("--json", action="store_true", help="print the steps as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from moeplan.auditing.steps import Steps
    from moeplan.auditing.verification import verify_evidence_bundle
    from moeplan.cli.inputs import read_policy, read_registries
    from moeplan.cli.main import EXIT_FAULT, EXIT_OK
    from moeplan.cli.output import emit_json, emit_text, note_error

    if args.unsigned:
        return _inspect(args)
    if args.policy is None:
        raise InputError(
            Issue("--policy", "usage", "which policy?", "a policy file", next="or --unsigned to look without trust")
        )
    policy, registries, steps = read_policy(args.policy), read_registries(args.registry), Steps()
    try:
        verify_evidence_bundle(args.path, policy, steps, registries=registries)
    except VerificationError as error:
        if args.json:
            emit_json({"ok": False, "steps": [step.to_json() for step in steps.done], **error.to_json()})
        else:
            emit_text(steps_table(steps.done))
        note_error(error)
        return EXIT_FAULT
    if args.json:
        emit_json({"ok": True, "steps": [step.to_json() for step in steps.done]})
    else:
        emit_text(steps_table(steps.done))
    return EXIT_OK


def steps_table(steps: Sequence[Step]) -> str:
    """Return numbered steps as a table for people."""
    from moeplan.cli.output import table

    return table(("step", "name", "outcome", "detail"), [(s.number, s.name, s.outcome, s.detail) for s in steps])


def _inspect(args: argparse.Namespace) -> int:
    from moeplan.auditing.verification import inspect_evidence_bundle
    from moeplan.cli.main import EXIT_INCONCLUSIVE
    from moeplan.cli.output import emit_json, emit_text, note

    note("UNSIGNED INSPECTION: no signature was looked at; everything below is a claim")
    seen = inspect_evidence_bundle(args.path)
    shown = {
        "verified": False,
        "plan": seen.plan.scenario_key,
        "checkpointRoot": seen.checkpoint.root if seen.checkpoint is not None else None,
        "files": len(seen.inventory.files),
        "records": [record.type for record in seen.records],
        "runs": [run.run for run in seen.runs],
    }
    if args.json:
        emit_json(shown)
    else:
        emit_text("UNSIGNED INSPECTION: no signature was looked at; everything below is a claim")
        for key, value in shown.items():
            emit_text(f"{key}: {value}")
    return EXIT_INCONCLUSIVE
