"""What commands that ask plugins have in common: which plugins to load, and saying which failed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moeplan.cli.output import note

if TYPE_CHECKING:
    from moeplan.hooks.host import Host
    from moeplan.model.plugin import PluginFailure

__all__ = ["add_plugin", "note_failures", "note_host"]


def add_plugin(parser: argparse.ArgumentParser) -> None:
    """Add ``--plugin``, which may be given several times."""
    parser.add_argument(
        "--plugin",
        action="append",
        metavar="NAME",
        help="load this plugin and no other; may be repeated (default: all)",
    )


def note_failures(failures: Iterable[PluginFailure]) -> None:
    """Name the plugins that failed on stderr, each with its code."""
    for failure in failures:
        note(f"error: [{failure.code}] {failure}")


def note_host(host: Host) -> int:
    """Name the plugins that failed on stderr, say so where there is none at all, and return the exit code."""
    note_failures(host.failures)
    if not host.plugins and not host.failures:
        note("no plugin is installed")
    return 1 if host.failures else 0
