"""moeplan verdict: verify a bundle and judge its evidence."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moeplan.model.verdict import Verdict

EXAMPLE = "moeplan verdict bundle/ --policy policy.json --at 2026-11-30T18:00:00Z"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from moeplan.cli.inputs import add_at, add_registries

    parser.add_argument("path", metavar="PATH", help="bundle directory or tar")
    parser.add_argument("--policy", required=True, metavar="FILE", help="the auditor's policy, JSON or YAML")
    add_at(parser)
    add_registries(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="also write the verdict here")
    parser.add_argument("--json", action="store_true", help="print the verdict document")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from moeplan.auditing.verification import load_evidence_bundle
    from moeplan.cli.inputs import instant_or_now, read_policy, read_registries
    from moeplan.cli.output import emit_bytes, emit_text, note
    from moeplan.errors import escape
    from moeplan.evaluation.evaluate import evaluate
    from moeplan.wire.documents import dump_document
    from moeplan.wire.files import write_file

    policy = read_policy(args.policy)
    bundle = load_evidence_bundle(args.path, policy, registries=read_registries(args.registry))
    verdict = evaluate(bundle.plan, bundle.evidence, policy, instant_or_now(args.at))
    data = dump_document(verdict)
    if args.output is not None:
        write_file(args.output, data)
        note(f"wrote {escape(args.output, 400)}")
    if args.json:
        emit_bytes(data)
    else:
        emit_text(verdict_text(verdict))
    return verdict_code(verdict)


def verdict_code(verdict: Verdict) -> int:
    """Return the exit code of a verdict."""
    from moeplan.cli.main import EXIT_INCONCLUSIVE, EXIT_NOT_READY, EXIT_OK

    return {"ready": EXIT_OK, "not_ready": EXIT_NOT_READY, "inconclusive": EXIT_INCONCLUSIVE}[verdict.readiness]


def verdict_text(verdict: Verdict) -> str:
    """Return a verdict as a table for people, with the next step of every criterion that does not pass."""
    from moeplan.cli.output import table

    rows: list[tuple[object, ...]] = []
    steps: dict[str, list[str]] = {}
    for gate in verdict.gates:
        rows.append((f"{gate.order} {gate.id}", gate.outcome, "", "", "", ""))
        for item in gate.criteria:
            word = item.outcome if item.outcome == item.underlying else f"{item.outcome} ({item.underlying})"
            observed, limit = _shown(item.observed, item.unit), _shown(item.limit, item.unit)
            rows.append((f"  {item.id}", word, observed, limit, item.unit, item.reason or ""))
            if item.next is not None:
                steps.setdefault(item.next, []).append(item.id)
    lines = [table(("gate, criterion", "outcome", "observed", "limit", "unit", "reason"), rows), ""]
    lines += [f"next: {text} ({', '.join(ids)})" for text, ids in steps.items()]
    lines += [f"reason: {reason.code}: {reason.message}" for reason in verdict.reasons]
    lines.append(f"readiness: {verdict.readiness} at {verdict.at}")
    return "\n".join(lines)


def _shown(value: int | str | None, unit: str) -> str:
    from moeplan.units import format_ns

    if value is None:
        return "-"
    if type(value) is int:
        return format_ns(value) if unit == "ns" else f"{value:,}"
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "…"
