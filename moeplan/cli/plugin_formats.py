"""``moeplan import FORMAT`` for the formats that plugins read; plugins are loaded only where such a word is given."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from moeplan.cli.actions import Actions, add_action
from moeplan.cli.deployment_options import add_runtime, add_serving, read_deployment, runtime_identity
from moeplan.cli.enclose_option import add_enclose, enclosed
from moeplan.cli.observation_options import pseudonym_key
from moeplan.cli.plugin_options import add_plugin

if TYPE_CHECKING:
    from moeplan.importers.preflight import PreflightInputs
    from moeplan.workflows.preflight import ReadFiles

__all__ = ["EXAMPLE", "add_format", "add_format_arguments", "run_format"]

EXAMPLE = (
    "moeplan import infera-preflight node-a.json node-b.json --plan plan.json --checkpoint checkpoint.json "
    "--runtime-image sha256:… --started 2026-11-30T17:00:00Z --utc-offset +00:00 --pseudonym-key site.key -o imported"
)


def add_format(actions: Actions[argparse.ArgumentParser], words: Sequence[str]) -> None:
    """Add the action that is called, where a plugin reads a format of that name."""
    if not words or words[0].startswith("-") or words[0] in actions.choices:
        return
    from moeplan.errors import InputError, Issue, escape
    from moeplan.hooks.host import open_host
    from moeplan.workflows.preflight import known_formats

    with open_host(_allowed(words), expects=["moeplan_importers"]) as host:
        formats = known_formats(host)
    if words[0] not in formats:
        known = ", ".join([*actions.choices, *sorted(formats)])
        step = "see 'moeplan import --help' and 'moeplan plugins'"
        raise InputError(
            Issue("TOOL", "unknown_tool", "no such tool", f"one of {known}", repr(escape(words[0], 80)), step)
        )
    title = formats[words[0]][1].title
    description = f"Import {title}: one record of all hosts."
    add_format_arguments(add_action(actions, words[0], title, EXAMPLE, description))


def _allowed(words: Sequence[str]) -> list[str] | None:
    """Return the plugins that ``--plugin`` names, which are asked for before the words are parsed; None: all."""
    named = [after for word, after in pairwise(words) if word == "--plugin"]
    named += [word.removeprefix("--plugin=") for word in words if word.startswith("--plugin=")]
    return named or None


def add_format_arguments(action: argparse.ArgumentParser) -> None:
    """Declare the options."""
    action.add_argument("files", nargs="+", metavar="FILE", help="the tool's files, one a host, of one run")
    action.add_argument("--plan", required=True, metavar="FILE", help="plan, form 1.1.0")
    action.add_argument(
        "--checkpoint", required=True, metavar="FILE", help="manifest of the checkpoint that is to serve; declared"
    )
    add_runtime(action, required=True)
    add_serving(action)
    action.add_argument("--started", required=True, metavar="INSTANT", help="instant before the first probe began, UTC")
    action.add_argument(
        "--utc-offset", required=True, metavar="±HH:MM", help="offset of the hosts' local clocks: --utc-offset=-07:00"
    )
    action.add_argument("--tool-version", metavar="TEXT", help="the tool's version or revision")
    action.add_argument("--site", metavar="FILE", help="what is known of the site, whole or in part")
    action.add_argument("-o", "--output", required=True, metavar="DIR", help="directory to make; missing or empty")
    add_enclose(action, "tool-output")
    names = action.add_mutually_exclusive_group(required=True)
    names.add_argument(
        "--pseudonym-key", metavar="FILE", help="key to make the hosts' pseudonyms with; made if missing, never packed"
    )
    names.add_argument("--host-names", action="store_true", help="record the hosts' names as the files hold them")
    add_plugin(action)
    action.add_argument("--json", action="store_true", help='print {"records": […], "findings": […]}')
    action.set_defaults(by_plugin=True)


def run_format(args: argparse.Namespace) -> int:
    """Let the plugin read the files, write record and table whole or not at all, and show what was found."""
    from moeplan.bundle.staging import staged_directory, write_member
    from moeplan.cli.inputs import read_site_values
    from moeplan.cli.output import emit_json, emit_text, note
    from moeplan.errors import escape
    from moeplan.findings.lines import text_lines
    from moeplan.hooks.host import open_host
    from moeplan.importers.preflight import import_preflight
    from moeplan.importers.preflight_names import with_pseudonyms
    from moeplan.importers.run import GivenFile
    from moeplan.wire.files import read_file
    from moeplan.workflows.preflight import MAX_TOOL_BYTES, PreflightReport, read_with_plugin

    files = {path: read_file(path, max_bytes=MAX_TOOL_BYTES) for path in args.files}
    site, _digest = read_site_values(args.site)
    with open_host(args.plugin, expects=["moeplan_importers", "moeplan_import"]) as host:
        read = read_with_plugin(host, files, site, args.action)
    given = [GivenFile(Path(path).name, data) for path, data in files.items()]
    imported = read.imported if args.host_names else with_pseudonyms(read.imported, pseudonym_key(args))
    made = import_preflight(given, imported, _inputs(args, read))
    with staged_directory(args.output) as root:
        for path, data in made.files.items():
            write_member(root, path, (data,))
    listed = PreflightReport(read).listed()
    if args.json:
        record = {"path": made.path, "digest": made.digest, "rows": len(read.imported.rows)}
        emit_json({"records": [record], "findings": listed.to_json()["findings"]})
    else:
        emit_text("\n".join(text_lines(listed)))
        emit_text(f"{made.path} {made.digest}")
    note(f"wrote {escape(args.output, 400)}")
    return 1 if listed.count("error") else 0


def _inputs(args: argparse.Namespace, read: ReadFiles) -> PreflightInputs:
    from moeplan.cli.inputs import read_document
    from moeplan.importers.preflight import PreflightInputs
    from moeplan.importers.trial import parse_utc_offset
    from moeplan.model.checkpoint import CheckpointManifest
    from moeplan.model.plan import Plan
    from moeplan.wire.documents import identify

    runtime = runtime_identity(args)
    assert runtime is not None, "one of the two options is required"
    root = read_document(args.checkpoint, CheckpointManifest).root
    return PreflightInputs(
        format=read.importer.format,
        plugin=read.plugin,
        plugin_version=read.version,
        plan=identify(read_document(args.plan, Plan)),
        deployment=read_deployment(args, root, runtime),
        started=_instant(args.started),
        utc_offset_seconds=parse_utc_offset(args.utc_offset),
        enclose=enclosed(args),
        tool_version=args.tool_version,
    )


def _instant(text: str) -> str:
    from moeplan.errors import InputError, Issue
    from moeplan.units import format_instant, parse_instant

    try:
        return format_instant(parse_instant(text))
    except InputError as error:
        issue = error.issues[0]
        raise InputError(Issue("--started", issue.code, issue.message, issue.expected, issue.got)) from None
