"""What the imports of telemetry share: node, key, phases, and when a page was read. One meaning in every command."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.observation_options import add_observation, observation_context

if TYPE_CHECKING:
    from moeplan.importers.scrapes import Scrape
    from moeplan.importers.telemetry import TelemetryInputs
    from moeplan.wire.observation import SideFile

__all__ = ["add_pages", "add_telemetry", "given_pages", "node_and_key", "telemetry_inputs"]


def add_telemetry(parser: argparse.ArgumentParser) -> None:
    """Add node, key, phases, and what every observation has."""
    parser.add_argument("--node", metavar="NAME", help="pseudonym of the node, as for --serving-node")
    parser.add_argument(
        "--pseudonym-key",
        metavar="FILE",
        help="key of the pseudonyms of devices and processes; made if missing (default: of this import alone)",
    )
    parser.add_argument(
        "--phase",
        action="append",
        default=[],
        metavar="NAME=FROM/TO",
        help="idle, warm or loaded between two instants; once for each",
    )
    add_observation(parser)


def add_pages(parser: argparse.ArgumentParser) -> None:
    """Add the pages, and when they were read."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help='a page, JSON Lines of {"scrape_ts_ms", "text"} (.gz too), or samples with timestamps',
    )
    parser.add_argument(
        "--taken",
        action="append",
        default=[],
        metavar="INSTANT",
        help="when a page without timestamps was read, UTC; once for each such file, in order",
    )


def given_pages(args: argparse.Namespace) -> tuple[list[Scrape], list[SideFile]]:
    """Return the pages in order of time, and the files, named by their digests."""
    from moeplan.importers.given import StoredFile
    from moeplan.importers.scrapes import read_scrapes
    from moeplan.importers.telemetry import MAX_TELEMETRY_BYTES
    from moeplan.importers.trial import require_instant
    from moeplan.units import NS_PER_S, parse_instant
    from moeplan.wire.observation import SideFile

    taken = [parse_instant(str(require_instant("--taken", text))) * NS_PER_S for text in args.taken]
    files = [StoredFile(path, MAX_TELEMETRY_BYTES) for path in args.files]
    sides = [SideFile("tool_output", "metrics.prom", file.data, "prom", enclosed=False) for file in files]
    return read_scrapes(files, taken), sides


def telemetry_inputs(args: argparse.Namespace) -> TelemetryInputs:
    """Return what the files do not say.

    Raises:
        InputError: neither node nor key, or a name or a phase is malformed.
    """
    from moeplan.importers.telemetry import TelemetryInputs
    from moeplan.importers.telemetry_times import read_phase

    phases = tuple(read_phase(text) for text in args.phase)
    node, key = node_and_key(args)
    return TelemetryInputs(observation_context(args), node, key, phases)


def node_and_key(args: argparse.Namespace) -> tuple[str, bytes]:
    """Return the pseudonym of the node, and the key of those of its devices: without a file a key of this call alone.

    Raises:
        InputError: neither of the two options, or the name is no pseudonym.
    """
    import re
    import secrets
    import socket

    from moeplan.errors import InputError, Issue, escape
    from moeplan.model.fields import ID_PATTERN
    from moeplan.model.pseudonyms import KEY_BYTES, pseudonym
    from moeplan.wire.pseudonym_key import read_pseudonym_key

    if args.node is None and args.pseudonym_key is None:
        expected = "--node NAME, or --pseudonym-key FILE"
        raise InputError(Issue("--node", "usage", "the node has no pseudonym", expected))
    if args.node is not None and (len(args.node) > 100 or re.fullmatch(ID_PATTERN[1:-1], args.node) is None):
        shown = escape(repr(args.node), 80)
        raise InputError(Issue("--node", "invalid_value", "not a pseudonym", "such as node-3f2a9c0d1b7e", shown))
    key = secrets.token_bytes(KEY_BYTES) if args.pseudonym_key is None else read_pseudonym_key(args.pseudonym_key)
    return args.node or pseudonym(key, "node", socket.gethostname().lower()), key
