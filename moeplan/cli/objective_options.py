"""Options that say what is asked of a deployment beside its workload."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from moeplan.errors import InputError, Issue, escape
from moeplan.planning.command_line import OBJECTIVE_OPTIONS

if TYPE_CHECKING:
    from moeplan.model.plan import Objectives, QualityReference

__all__ = ["add_objectives", "objectives"]

_HELP = {
    "ready_within_seconds": ("S", "seconds from start to ready (default 3600)"),
    "goodput_basis_points_at_least": (
        "BPS",
        "least share of requests within both latency targets, in basis points (default: reported)",
    ),
    "expert_load_ratio_basis_points_at_most": (
        "BPS",
        "busiest expert over the mean, worst layer, in basis points: 40000 is four times (default: reported)",
    ),
    "cost_micros_per_million_tokens_at_most": (
        "MICROS",
        "millionths of the price's currency for a million output tokens (default: reported)",
    ),
    "restart_within_seconds": (
        "S",
        "seconds from a worker's failure to ready again (default: reported)",
    ),
    "energy_millijoules_per_token_at_most": (
        "MJ",
        "millijoules of the accelerators for an output token, from measured power (default: not asked)",
    ),
}
"""Metavar and help by attribute of ``Objectives``."""

_QUALITY = re.compile(
    r"([a-z0-9][a-z0-9._-]{0,127}):([a-z0-9][a-z0-9._-]{0,127}):([0-9]{1,9})/([0-9]{1,9}):([0-9]{1,5})", re.ASCII
)


def add_objectives(parser: argparse.ArgumentParser) -> None:
    """Add the options; values stay text, so that a bad one is named as an issue with its option."""
    group = parser.add_argument_group("objectives", "what is asked beside the workload")
    for name, option in OBJECTIVE_OPTIONS.items():
        metavar, text = _HELP[name]
        group.add_argument(option, dest=name, metavar=metavar, help=text)
    group.add_argument(
        "--quality",
        action="append",
        metavar="TASK:METRIC:CORRECT/DOCUMENTS:MARGIN",
        help="reference of a quality task, and by how many basis points the deployment may score lower; once for each",
    )


def objectives(args: argparse.Namespace) -> Objectives:
    """Return the objectives that the options state.

    Raises:
        InputError: with the option as its path.
    """
    from moeplan.model.plan import Objectives
    from moeplan.planning.options import parse_integer

    values = {
        name: parse_integer(option, getattr(args, name), 1)
        for name, option in OBJECTIVE_OPTIONS.items()
        if getattr(args, name) is not None
    }
    quality = tuple(sorted(map(_quality, args.quality or ()), key=lambda item: (item.task, item.metric)))
    made = Objectives(**values, quality=quality)
    issues = tuple(made.faults())
    if issues:
        raise InputError(*(Issue("--quality", i.code, i.message, i.expected, i.got) for i in issues))
    return made


def _quality(text: str) -> QualityReference:
    from moeplan.model.plan import QualityReference

    match = _QUALITY.fullmatch(text)
    if match is None:
        expected = "TASK:METRIC:CORRECT/DOCUMENTS:MARGIN, such as gsm8k:exact_match:1180/1319:200"
        raise InputError(
            Issue("--quality", "invalid_value", "not a quality reference", expected, escape(repr(text), 80))
        )
    return QualityReference(match[1], match[2], int(match[3]), int(match[4]), int(match[5]))
