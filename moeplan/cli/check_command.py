"""``moeplan check``: does the plan fit the site, as the runtime's plugin knows it?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_bytes, emit_text, note, table
from moeplan.cli.plugin_options import add_plugin, note_failures
from moeplan.errors import escape

if TYPE_CHECKING:
    from moeplan.model.compatibility import CompatibilityReport
    from moeplan.model.placement import Figure

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan check plan.json --site site.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("plan", metavar="PLAN", help="the plan, form 1.1.0")
    parser.add_argument(
        "--site", metavar="FILE", help="the site, whole or in part; it names the plugin and the profile"
    )
    parser.add_argument("--runtime", metavar="R", help="the plugin or engine (default: the site's, or the plan's)")
    parser.add_argument(
        "--manifests", metavar="FILE", nargs="+", default=[], help="what is to be deployed, judged along with it"
    )
    add_plugin(parser)
    parser.add_argument("--output", "-o", metavar="FILE", help="write the compatibility report to a file")
    parser.add_argument("--json", action="store_true", help="print the compatibility report's bytes")


def run(args: argparse.Namespace) -> int:
    """Check and print; 1 for errors, 3 where the plugin could not judge."""
    from moeplan.hooks.host import start_plugins

    # The plugins load while the files are read.
    started = start_plugins(args.plugin, expects=("moeplan_check", "moeplan_placement"))
    from moeplan.cli.inputs import read_document, read_site_values
    from moeplan.cli.manifest_files import read_manifest_files
    from moeplan.model.plan import Plan
    from moeplan.wire.documents import dump_document
    from moeplan.wire.files import write_file
    from moeplan.workflows.check import check_with

    plan = read_document(args.plan, Plan)
    site, digest = read_site_values(args.site)
    manifests = read_manifest_files(args.manifests)
    with started.host() as host:
        report = check_with(host, plan, site, digest, manifests, args.runtime)
    data = dump_document(report)
    if args.output is not None:
        write_file(args.output, data)
        note(f"wrote {escape(args.output, 400)}")
    note_failures(report.failures)
    if args.json:
        emit_bytes(data)
    else:
        emit_text("\n".join(_lines(report)))
    if report.summary.error:
        return 1
    return 3 if report.judged == "no" or report.failures else 0


def _lines(report: CompatibilityReport) -> list[str]:
    from moeplan.findings.lines import text_lines
    from moeplan.findings.listed import Listed

    lines = [f"plugin     {report.plugin.name} {report.plugin.version}"]
    if report.profile is not None:
        lines.append(f"profile    {report.profile.id}: {report.profile.status}: {report.profile.statement}")
    lines += [*_placement(report), ""]
    lines += list(text_lines(Listed(report.findings, judged={report.plugin.name: 1} if report.judged == "yes" else {})))
    lines += [f"acknowledged by the site: {one.id}: {one.message}" for one in report.acknowledged]
    return lines


def _placement(report: CompatibilityReport) -> list[str]:
    if report.placement is None:
        return []
    rows = [
        (
            role.role,
            role.ranks,
            _gigabytes(role.weight_bytes),
            _gigabytes(role.draft_bytes),
            _gigabytes(role.budget_bytes),
            _shown(role.kv_bytes_per_token),
            _shown(role.kv_tokens),
            _shown(role.concurrent_requests),
        )
        for role in report.placement.roles
    ]
    heads = ("role", "ranks", "weights", "draft", "budget", "KV B/token", "KV tokens", "requests")
    return ["", table(heads, rows)]


def _gigabytes(figure: Figure) -> str:
    from moeplan.units import format_bytes

    return "unknown" if figure.value is None else _marked(format_bytes(figure.value), figure)


def _shown(figure: Figure) -> str:
    return "unknown" if figure.value is None else _marked(str(figure.value), figure)


def _marked(text: str, figure: Figure) -> str:
    return text if figure.certainty in ("exact", "calculated") else f"~{text}"
