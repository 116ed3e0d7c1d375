"""``moeplan status``: what a plan's evidence has, what it lacks, and what gets it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, note, table
from moeplan.errors import escape

if TYPE_CHECKING:
    from moeplan.workflows.status import Status

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan status evidence/tiny-moe-cpu/bundle --plan evidence/tiny-moe-cpu/bundle/plan.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "directories", nargs="+", metavar="DIR", help="where evidence lies, at any depth: imports, collections, bundles"
    )
    parser.add_argument("--plan", required=True, metavar="FILE", help="plan, form 1.1.0")
    parser.add_argument("--json", action="store_true", help='print {"criteria": […], "steps": […], …}')


def run(args: argparse.Namespace) -> int:
    """Look, count and print. Nothing is verified and nothing is judged, so the exit code is 0 whatever is there."""
    from moeplan.cli.inputs import read_document
    from moeplan.model.plan import Plan
    from moeplan.wire.converter import unstructure
    from moeplan.workflows.status import find_records, status

    plan = read_document(args.plan, Plan)
    seen = status(plan, find_records([Path(item) for item in args.directories]))
    if args.json:
        emit_json(unstructure(seen))
        return 0
    _show(seen)
    return 0


def _show(seen: Status) -> None:
    rows = [
        (item.gate, item.criterion, item.state, _counted(item.records), ", ".join(item.lacks)) for item in seen.criteria
    ]
    emit_text(table(("gate", "criterion", "state", "records", "lacks"), rows))
    if seen.steps:
        emit_text("")
        for step in seen.steps:
            emit_text(f"{step.type}, about {step.minutes} min:\n    {escape(step.command, 1000)}")
        emit_text(f"about {seen.minutes} min in all")
    for path in seen.other_plan:
        note(f"made for another plan, counts for nothing: {escape(path, 400)}")
    for path in seen.interrupted:
        note(f"interrupted, keeps its criteria inconclusive: {escape(path, 400)}")
    if seen.deployments > 1:
        note(f"records of {seen.deployments} deployments; they never meet in one verdict")
    note("counted, not judged: 'moeplan verdict' judges")


def _counted(records: tuple[str, ...]) -> str:
    return "-" if not records else str(len(records))
