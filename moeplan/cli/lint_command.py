"""``moeplan lint``: what is wrong in manifests and launch scripts, before a cluster shows it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text
from moeplan.cli.plugin_options import add_plugin, note_failures

if TYPE_CHECKING:
    from moeplan.findings.listed import Listed

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan lint deploy.yaml --site site.yaml --format github"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="manifests (YAML or JSON, many to a file) or launch scripts; a directory with such files; - for stdin",
    )
    parser.add_argument("--site", metavar="FILE", help="what is known of the site, whole or in part")
    parser.add_argument("--runtime", metavar="R", help="the plugin or engine they are for (default: the plugins say)")
    parser.add_argument("--profile", metavar="P", help="the profile they are for (default: the plugin recognises it)")
    add_plugin(parser)
    parser.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text", help="how to print (default: text)"
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    parser.add_argument(
        "--fail-on", choices=("error", "warning"), default="error", help="the mildest finding that exits 1"
    )


def run(args: argparse.Namespace) -> int:
    """Lint and print; 1 for findings, 3 where something could not be judged or nothing was."""
    from moeplan.hooks.host import start_plugins

    # The plugins load while the files are read.
    started = start_plugins(args.plugin, expects=("moeplan_owns_manifest", "moeplan_lint"))
    from moeplan.cli.inputs import read_site_values
    from moeplan.cli.manifest_files import read_manifest_files
    from moeplan.workflows.lint import lint_sources, read_sources

    site, _digest = read_site_values(args.site)
    sources = read_sources(read_manifest_files(args.files))
    with started.host() as host:
        listed = lint_sources(host, sources, site, args.runtime, args.profile)
    note_failures(listed.failures)
    _print(listed, args.format)
    if listed.count("error") or (args.fail_on == "warning" and listed.count("warning")):
        return 1
    unanswered = any(why == "its plugin failed" for _, why in listed.not_judged)
    return 3 if unanswered or not listed.judged else 0


def _print(listed: Listed, form: str) -> None:
    from moeplan.findings.lines import github_lines, text_lines
    from moeplan.findings.sarif import sarif_log

    if form == "json":
        emit_json(listed.to_json())
    elif form == "sarif":
        emit_json(sarif_log(listed))
    else:
        emit_text("\n".join(github_lines(listed) if form == "github" else text_lines(listed)))
