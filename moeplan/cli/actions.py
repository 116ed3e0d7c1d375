"""Sub-actions of a command, each with a description and an example."""

from __future__ import annotations

import argparse

__all__ = ["Actions", "add_action", "add_actions"]

Actions = argparse._SubParsersAction


def add_actions(parser: argparse.ArgumentParser, metavar: str) -> Actions[argparse.ArgumentParser]:
    """Make a command take one of several actions; ``metavar`` is how its usage names them."""
    return parser.add_subparsers(dest="action", required=True, metavar=metavar)


def add_action(
    actions: Actions[argparse.ArgumentParser], name: str, help: str, example: str, description: str | None = None
) -> argparse.ArgumentParser:
    """Add one action; without a description its help text is the description."""
    return actions.add_parser(
        name,
        help=help,
        description=description or help[0].upper() + help[1:] + ".",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
