"""How docs/cli.md writes a command's arguments, from its parser."""

from __future__ import annotations

import argparse
from importlib import import_module

from moeplan.cli.main import COMMANDS

Rows = list[tuple[str, str]]


def example(command: str) -> str:
    """Return a command's example line."""
    text: str = import_module(f"moeplan.cli.{command}_command").EXAMPLE
    return text


def documented_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command, or of each of its actions, by the words that call it."""
    found: dict[str, argparse.ArgumentParser] = {}
    for command in COMMANDS:
        parser = argparse.ArgumentParser(prog=command, add_help=False)
        import_module(f"moeplan.cli.{command}_command").add_arguments(parser)
        actions = next((a for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)
        if actions is None or not actions.required:
            found[command] = parser
        if actions is not None:
            found |= {f"{command} {name}": inner for name, inner in actions.choices.items()}
    return found


def rows(parser: argparse.ArgumentParser) -> Rows:
    """Return argument and help of a parser, ``--help`` left out; a bar within a cell is escaped."""
    return [
        (_name(action).replace("|", r"\|"), (action.help or "").replace("|", r"\|"))
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]


def _name(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ", ".join(action.choices or ())
    value = "" if action.nargs == 0 else metavar + (" …" if action.nargs == "+" else "")
    if not action.option_strings:
        return f"`{value}`"
    shown = ", ".join(action.option_strings)
    return f"`{shown} {value}`" if value else f"`{shown}`"
