"""``moeplan plugins``: what plugins are installed and what is wrong with them; the making of a new one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.actions import add_action
from moeplan.cli.output import emit_json, emit_text, note, table
from moeplan.cli.plugin_options import add_plugin, note_host

if TYPE_CHECKING:
    from moeplan.hooks.host import Host

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan plugins"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options, and the actions for authors; without an action the plugins are listed."""
    add_plugin(parser)
    parser.add_argument("--json", action="store_true", help="print the plugins and the failures")
    actions = parser.add_subparsers(dest="action", required=False, metavar="[new | update]")
    new = add_action(
        actions,
        "new",
        "make the distribution of a new plugin from the template",
        "moeplan plugins new sglang-amd moeplan-sglang-amd",
    )
    new.add_argument("name", metavar="NAME", help="name of the plugin: an engine and a vendor joined by a hyphen")
    new.add_argument("directory", metavar="DIR", help="directory to make; it may not hold anything yet")
    new.add_argument("--engine", metavar="E", help="the engine (default: the name up to its first hyphen)")
    new.add_argument("--vendor", metavar="V", help="vendor of the accelerators (default: the rest of the name)")
    update = add_action(
        actions,
        "update",
        "take this moeplan's template into a distribution that an earlier one made",
        "moeplan plugins update moeplan-sglang-amd",
    )
    update.add_argument("directory", metavar="DIR", help="the distribution: a git repository without open changes")


def run(args: argparse.Namespace) -> int:
    """List the plugins, make one, or update one."""
    if args.action is not None:
        return _author(args)
    from moeplan.hooks.host import open_host

    with open_host(args.plugin) as host:
        return _show(host, args.json)


def _author(args: argparse.Namespace) -> int:
    from moeplan.workflows.author_plugin import new_plugin, update_plugin

    if args.action == "update":
        update_plugin(args.directory)
        note("updated: look at it with 'git diff' and run its suite")
        return 0
    new_plugin(args.name, args.directory, args.engine, args.vendor)
    note(f"made {args.directory}: its README says what is to be added, and its suite fails until it is")
    return 0


def _show(host: Host, as_json: bool) -> int:
    from moeplan.wire.converter import unstructure

    if as_json:
        listed = [
            {
                "name": plugin.name,
                "version": plugin.version,
                "distribution": plugin.entry.distribution,
                "engine": plugin.info.engine,
                "vendor": plugin.info.vendor,
                "hooks": list(plugin.hooks),
                "profiles": [profile.id for profile in plugin.info.profiles],
                "rules": [unstructure(rule) for rule in plugin.info.rules],
            }
            for plugin in host.plugins
        ]
        emit_json({"plugins": listed, "failures": [unstructure(failure) for failure in host.failures]})
    elif host.plugins:
        rows = [
            (p.name, p.version, p.info.engine, p.info.vendor, len(p.info.profiles), p.entry.distribution)
            for p in host.plugins
        ]
        emit_text(table(("plugin", "version", "engine", "vendor", "profiles", "distribution"), rows))
    return note_host(host)
