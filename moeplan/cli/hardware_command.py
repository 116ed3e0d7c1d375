"""``moeplan hardware``: the registry's accelerators, or one with its source."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, table
from moeplan.errors import InputError

if TYPE_CHECKING:
    from moeplan.model.registry import Accelerator, Registry

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan hardware mi355x"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("hardware", metavar="HARDWARE", nargs="?", help="id, alias or name; all of them without it")
    parser.add_argument("--registry", metavar="X", help="registry version or file (default 1.1.0)")
    parser.add_argument("--json", action="store_true", help="print the accelerators, and the sources they refer to")


def run(args: argparse.Namespace) -> int:
    """List the accelerators, or show one."""
    from moeplan.catalogue.registries import find_accelerator, load_registry
    from moeplan.planning.scenario import in_scenario_keys

    registry = load_registry(args.registry)
    shown = registry.hardware
    if args.hardware is not None:
        try:
            shown = (find_accelerator(registry, args.hardware),)
        except InputError as error:
            raise in_scenario_keys(error, {"hardware": "HARDWARE"}) from None
    if args.json:
        _emit_json(registry, shown)
    elif args.hardware is None:
        emit_text(table(("id", "name", "vendor", "memory a device"), [_row(item)[:4] for item in shown]))
    else:
        emit_text(_details(registry, shown[0]))
    return 0


def _emit_json(registry: Registry, shown: tuple[Accelerator, ...]) -> None:
    from moeplan.wire.converter import unstructure

    used = {item.source for accelerator in shown for item in accelerator.memory_gigabytes.provenance}
    emit_json(
        {
            "registryVersion": registry.registry_version,
            "hardware": [unstructure(item) for item in shown],
            "sources": [unstructure(source) for source in registry.sources if source.id in used],
        }
    )


def _row(item: Accelerator) -> tuple[str, str, str, str]:
    from moeplan.model.registry import KnownInteger

    claim = item.memory_gigabytes
    memory = f"{claim.value} GB" if isinstance(claim, KnownInteger) else f"unknown: {claim.reason}"
    return (item.id, item.name, item.vendor, memory)


def _details(registry: Registry, item: Accelerator) -> str:
    places = {source.id: source.url or source.publisher for source in registry.sources}
    id, name, vendor, memory = _row(item)
    rows = [
        ("hardware", id),
        ("name", name),
        ("vendor", vendor),
        ("aliases", ", ".join(item.aliases) or "none"),
        ("memory", memory),
    ]
    rows += [
        ("source", places[place.source] if place.locator is None else f"{places[place.source]} ({place.locator})")
        for place in item.memory_gigabytes.provenance
    ]
    return table(("what", "value"), rows)
