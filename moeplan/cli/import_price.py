"""``moeplan import price``: a declared price becomes a ``price`` record."""

from __future__ import annotations

import argparse

from moeplan.cli.observation_options import add_observation, observation_context, write_observations

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import price --currency USD --per-accelerator-hour 2.49 --accelerators 8 --dated 2026-11-30 "
    '--source "the provider\'s price list" --plan plan.json --checkpoint checkpoint.json '
    "--runtime-packages packages.txt -o price"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument("--currency", required=True, metavar="CODE", help="currency, such as USD")
    parser.add_argument(
        "--per-accelerator-hour",
        required=True,
        metavar="AMOUNT",
        help="price of one accelerator for one hour, with at most six decimals",
    )
    parser.add_argument(
        "--accelerators", required=True, metavar="N", help="how many are paid for while the plan's serve"
    )
    parser.add_argument("--dated", required=True, metavar="YYYY-MM-DD", help="day of the price")
    parser.add_argument("--source", required=True, metavar="TEXT", help="where it was read: a list, a contract")
    add_observation(parser)


def run(args: argparse.Namespace) -> int:
    """Write the record of the price, declared now."""
    import time

    from moeplan.importers.price import declared_price, import_price
    from moeplan.planning.options import parse_integer
    from moeplan.units import format_instant

    now = format_instant(int(time.time()))
    price = declared_price(
        args.currency,
        args.per_accelerator_hour,
        parse_integer("--accelerators", args.accelerators, 1, 1_000_000),
        args.dated,
        args.source,
        now,
    )
    return write_observations(args, [import_price(price, now, observation_context(args))])
