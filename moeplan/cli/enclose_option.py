"""``--enclose``: which of the given files a record's directory may hold. One meaning in every command that has it."""

from __future__ import annotations

import argparse

__all__ = ["add_enclose", "enclosed"]

_HOLDS = {
    "tool-output": "the tool's files, with prompts, answers and addresses",
    "tool-summary": "its summaries",
    "metrics": "the engine's pages, with names of hosts and paths",
}


def add_enclose(parser: argparse._ActionsContainer, *words: str) -> None:
    """Add ``--enclose``, which takes these words."""
    told = "; ".join(f"'{word}': {_HOLDS[word]}" for word in words)
    help_text = f"kinds of given files to enclose, joined by commas (default: none, their digests alone). {told}"
    parser.add_argument("--enclose", metavar="KIND[,KIND]", help=help_text)
    parser.set_defaults(enclosable=words)


def enclosed(args: argparse.Namespace) -> frozenset[str]:
    """Return the roles of attachments that ``--enclose`` allows; raises as ``enclosed_roles``."""
    from moeplan.importers.enclosing import enclosed_roles

    return enclosed_roles(args.enclose, args.enclosable)
