"""``moeplan profiles``: the profiles of the installed plugins, and how much is known of each."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, table
from moeplan.cli.plugin_options import add_plugin, note_host
from moeplan.errors import InputError, Issue

if TYPE_CHECKING:
    from moeplan.hooks.host import Host

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan profiles --plan plan.json --aim lowest_latency"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    from moeplan.model.plugin import AIMS

    add_plugin(parser)
    parser.add_argument("--plan", metavar="FILE", help="say which profile suits this plan, for each aim")
    parser.add_argument("--aim", choices=AIMS, help="with --plan: for this aim alone")
    parser.add_argument("--json", action="store_true", help="print the profiles with their sources, and the failures")


def run(args: argparse.Namespace) -> int:
    """List the profiles, or hold them against a plan."""
    from moeplan.hooks.host import open_host

    if args.plan is not None:
        return _choose(args)
    if args.aim is not None:
        raise InputError(Issue("--aim", "usage", "an aim is held against a plan", "--plan FILE beside it"))
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
    return note_host(host)


def _choose(args: argparse.Namespace) -> int:
    from moeplan.cli.inputs import read_document
    from moeplan.hooks.host import open_host
    from moeplan.model.plan import Plan
    from moeplan.model.plugin import AIMS
    from moeplan.wire.converter import unstructure
    from moeplan.workflows.choose_profile import choose_profiles

    plan = read_document(args.plan, Plan)
    with open_host(args.plugin) as host:
        found = choose_profiles(host, plan, AIMS if args.aim is None else (args.aim,))
        code = note_host(host)
    if args.json:
        emit_json({"choices": [unstructure(one) for one in found], "failures": [unstructure(f) for f in host.failures]})
    elif not found:
        emit_text("no plugin for this plan's runtime and accelerators says anything of these aims")
    else:
        grouped: dict[tuple[str, str, str, str], list[str]] = {}
        for one in found:
            suits = one.suits if one.fits else "does not fit"
            why = one.statement if one.fits else one.obstacles[0]
            grouped.setdefault((one.aim, suits, one.status, why), []).append(one.profile)
        rows = [(aim, ", ".join(ids), suits, status, why) for (aim, suits, status, why), ids in grouped.items()]
        emit_text(table(("aim", "profile", "suits", "status", "why"), rows))
    return code or (0 if any(one.fits and one.suits == "yes" for one in found) else 3)
