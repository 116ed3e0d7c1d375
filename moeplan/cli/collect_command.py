"""``moeplan collect``: observe a live system and write what was seen as evidence records."""

from __future__ import annotations

import argparse
from importlib import import_module

from moeplan.cli.actions import add_action, add_actions

__all__ = ["COLLECTORS", "EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan collect smoke --url http://localhost:8000 --plan plan.json --checkpoint checkpoint.json "
    "--runtime-packages packages.txt -o smoke"
)

COLLECTORS: dict[str, str] = {
    "endpoint": "load an OpenAI-compatible endpoint and keep every request's times",
    "smoke": "ask one question with a deadline",
    "restart": "make one worker fail under load, and see service come back",
    "metrics": "poll memory, power and the engine's gauges from before its start to its end",
    "environment": "look at what an engine runs in, as its own process sees it",
}
"""Actions by name: each is the module ``moeplan.cli.collect_<name>`` with EXAMPLE, add_arguments and run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare one action a row of the table."""
    actions = add_actions(parser, "|".join(COLLECTORS))
    for name, title in COLLECTORS.items():
        module = import_module(f"moeplan.cli.collect_{name}")
        action = add_action(actions, name, title, module.EXAMPLE)
        module.add_arguments(action)


def run(args: argparse.Namespace) -> int:
    """Run the action that was called."""
    code: int = import_module(f"moeplan.cli.collect_{args.action}").run(args)
    return code
