"""``moeplan preflight``: what a preflight tool's files say of the hosts, judged again from their raw values."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, table
from moeplan.cli.plugin_options import add_plugin, note_failures, note_host
from moeplan.errors import InputError, Issue

if TYPE_CHECKING:
    from moeplan.workflows.preflight import PreflightReport

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan preflight node-a.json node-b.json --site site.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="the tool's files, one a host, of one run")
    parser.add_argument(
        "--checks", action="store_true", help="list what to check before a deployment, and how, instead"
    )
    parser.add_argument("--profile", metavar="P", help="with --checks: what this profile needs")
    parser.add_argument("--site", metavar="FILE", help="what is known of the site, whole or in part")
    parser.add_argument("--format", metavar="ID", help="format of the files (default: the only one that plugins read)")
    add_plugin(parser)
    parser.add_argument("--json", action="store_true", help="print findings, summary, hosts and comparisons")


def run(args: argparse.Namespace) -> int:
    """Read, judge and print; 1 for error findings, 3 where nothing could be judged."""
    if args.checks == bool(args.files):
        raise InputError(Issue("FILE", "usage", "give files, or --checks alone", "moeplan preflight FILE…"))
    if args.checks:
        return _list_checks(args)
    from moeplan.cli.inputs import read_site_values
    from moeplan.wire.files import read_file
    from moeplan.workflows.preflight import MAX_TOOL_BYTES, preflight

    files = {path: read_file(path, max_bytes=MAX_TOOL_BYTES) for path in args.files}
    site, _digest = read_site_values(args.site)
    report = preflight(files, site=site, format=args.format, plugins=args.plugin)
    note_failures(report.read.failures)
    if args.json:
        emit_json(report.to_json())
    else:
        _show(report)
    if report.errors:
        return 1
    return 0 if report.judged else 3


def _list_checks(args: argparse.Namespace) -> int:
    from moeplan.hooks.host import open_host
    from moeplan.wire.converter import unstructure
    from moeplan.workflows.preflight import preflight_checks

    with open_host(args.plugin, expects=["moeplan_preflight"]) as host:
        found = [(p.name, one) for p in host.plugins for one in preflight_checks(host, p.name, args.profile)]
        code = note_host(host)
    if args.json:
        emit_json({"checks": [{"plugin": name, **unstructure(one)} for name, one in found]})
        return code
    for name, one in found:
        commands = [f"    {line}" for command in one.commands for line in command.splitlines()]
        lines = [f"{one.id}: {one.title} ({name}, within {one.deadline_seconds} s)", f"  {one.how}", *commands]
        emit_text("\n".join([*lines, f"  in order: {one.proof}", ""]))
    return code


def _show(report: PreflightReport) -> None:
    from moeplan.findings.lines import text_lines

    imported = report.read.imported
    rows = [
        (host.host, section.name, section.claimed, section.found)
        for host in imported.hosts
        for section in host.sections
    ]
    emit_text(table(("host", "section", "the tool says", "its values give"), rows))
    compared = [
        (
            comparison.title,
            comparison.outcome,
            "; ".join(f"{one.subject}: {one.value or '-'}" for one in comparison.values),
        )
        for comparison in imported.comparisons
        if comparison.outcome != "not_judged" or comparison.id == "rdma-reachability"
    ]
    if compared:
        emit_text("\n" + table(("comparison", "outcome", "values"), compared))
    emit_text("\n" + "\n".join(text_lines(report.listed())))
