"""``moeplan profiles``: the profiles of the installed plugins, and how much is known of each."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, table
from moeplan.cli.plugins_command import add_plugin, note_failures

if TYPE_CHECKING:
    from moeplan.hooks.host import Host

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan profiles"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_plugin(parser)
    parser.add_argument("--json", action="store_true", help="print the profiles with their sources, and the failures")


def run(args: argparse.Namespace) -> int:
    """List the profiles."""
    from moeplan.hooks.host import open_host

    with open_host(args.plugin) as host:
        return _show(host, args.json)


def _show(host: Host, as_json: bool) -> int:
    from moeplan.wire.converter import unstructure

    found = [(plugin, profile) for plugin in host.plugins for profile in plugin.info.profiles]
    if as_json:
        listed = [
            {
                "plugin": plugin.name,
                "version": plugin.version,
                "engine": plugin.info.engine,
                "vendor": plugin.info.vendor,
                **unstructure(profile),
            }
            for plugin, profile in found
        ]
        emit_json({"profiles": listed, "failures": [unstructure(failure) for failure in host.failures]})
    elif found:
        rows = [
            (one.id, plugin.info.engine, plugin.info.vendor, plugin.name, one.status, one.sources[0].source)
            for plugin, one in found
        ]
        emit_text(table(("profile", "engine", "vendor", "plugin", "status", "source"), rows))
    return note_failures(host)
