"""``moeplan compare``: two plans, or two verdicts, side by side."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, table
from moeplan.errors import InputError, Issue, escape

if TYPE_CHECKING:
    from moeplan.model.plan import Plan
    from moeplan.model.verdict import Verdict

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan compare plan-h200.json plan-mi355x.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("a", metavar="A", help="a plan or a verdict")
    parser.add_argument("b", metavar="B", help="another one of the same kind")
    parser.add_argument("--all", action="store_true", help="show what is equal, too")
    parser.add_argument("--json", action="store_true", help="print both digests and the rows")


def run(args: argparse.Namespace) -> int:
    """Print the rows that differ; 0 whether or not there are any."""
    from moeplan.comparison.compare import compare

    made = compare(_read(args.a), _read(args.b))
    rows = made.rows if args.all else made.differences
    if args.json:
        listed = [{"path": row.path, "a": row.left, "b": row.right} for row in rows]
        emit_json({"kind": made.kind, "a": made.left, "b": made.right, "rows": listed})
        return 0
    shown = [(row.path, _shown(row.left), _shown(row.right)) for row in rows]
    count = f"{len(made.differences)} of {len(made.rows)} figures differ"
    emit_text((table((made.kind, "A", "B"), shown) + "\n\n" if shown else "") + count)
    return 0


def _shown(value: object) -> str:
    if value is None:
        return "-"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text[:19] + "…" if text.startswith("sha256:") else text


def _read(path: str) -> Plan | Verdict:
    from moeplan.model.plan import Plan
    from moeplan.model.verdict import Verdict
    from moeplan.wire.documents import load_value
    from moeplan.wire.files import read_file
    from moeplan.wire.strict_json import parse_strict

    try:
        value = parse_strict(read_file(path))
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "deployment_validation_plan":
            return load_value(value, Plan)
        if kind == "readiness_verdict":
            return load_value(value, Verdict)
        expected = "deployment_validation_plan or readiness_verdict"
        raise InputError(Issue("$.kind", "wrong_kind", "not what can be compared", expected, escape(repr(kind), 80)))
    except InputError as error:
        error.source = escape(path, 400)
        raise
