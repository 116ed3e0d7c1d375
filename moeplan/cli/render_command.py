"""``moeplan render``: write what deploys a plan on a site, or show what would change."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_bytes, emit_json, emit_text, note, table
from moeplan.cli.plugin_options import add_plugin, note_host
from moeplan.errors import escape

if TYPE_CHECKING:
    from moeplan.model.plan import Plan
    from moeplan.model.site import Site
    from moeplan.rendering.assembly import RenderedSet

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan render plan.json --site site.yaml -o deploy/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("plan", metavar="PLAN", help="the plan, form 1.1.0")
    parser.add_argument("--site", required=True, metavar="FILE", help="the site: runtime, profile, nodes, images, …")
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="the directory to write, whole or not at all"
    )
    parser.add_argument(
        "--diff", action="store_true", help="show what would change in DIR and write nothing; exit 1 when it differs"
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="ID",
        help="render the profile of this id although it is reported failing",
    )
    add_plugin(parser)
    parser.add_argument("--json", action="store_true", help="print the manifest set; with --diff, what would change")


def run(args: argparse.Namespace) -> int:
    """Render."""
    from concurrent.futures import ThreadPoolExecutor

    from moeplan.hooks.host import open_host
    from moeplan.wire.files import read_file
    from moeplan.wire.yaml_text import MAX_YAML_BYTES
    from moeplan.workflows.render import plugins_for, render

    data = read_file(args.site, max_bytes=MAX_YAML_BYTES)
    plugins = plugins_for(data) if args.plugin is None else args.plugin
    with ThreadPoolExecutor(1) as reader:  # plan and site are read while the plugin's process starts
        reading = reader.submit(_read, args, data)
        with open_host(plugins) as host:
            plan, site = reading.result()
            note_host(host)
            made = render(plan, site, host, accept=args.accept)
    if args.diff:
        return _diff(args, made)
    from moeplan.rendering.directory import write_directory

    written = write_directory(args.output, made.files)
    if args.json:
        emit_bytes(made.files["manifest-set.json"])
    else:
        rows = [(file.name, file.form, file.size, file.digest) for file in made.manifest_set.files]
        emit_text(table(("file", "form", "bytes", "digest"), rows))
    note(f"{args.output}: {'written' if written else 'unchanged'}; begin with README.md")
    return 0


def _read(args: argparse.Namespace, site: bytes) -> tuple[Plan, Site]:
    import moeplan.rendering.assembly  # noqa: F401  # what comes next is loaded here, too
    from moeplan.cli.inputs import read_document
    from moeplan.model.plan import Plan
    from moeplan.site.reading import load_site

    return read_document(args.plan, Plan), load_site(site, source=escape(args.site, 400))


def _diff(args: argparse.Namespace, made: RenderedSet) -> int:
    from moeplan.rendering.directory import compare_directory

    changes = compare_directory(args.output, made.files)
    if args.json:
        emit_json({"changes": [{"name": change.name, "change": change.word} for change in changes]})
    else:
        for change in changes:
            emit_text("\n".join(change.lines()))
    return 1 if changes else 0
