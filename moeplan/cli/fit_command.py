"""``moeplan fit``: the static memory floor alone, on one accelerator or on all of them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, note, table
from moeplan.errors import InputError

if TYPE_CHECKING:
    from moeplan.model.plan import Residency
    from moeplan.model.registry import Accelerator, Model, Registry

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan fit kimi-k3 h200"

_PATHS = {"model": "MODEL", "hardware": "HARDWARE", "reserveBasisPoints": "--reserve-bps"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="MODEL", help="id, alias, name or repository of a model")
    parser.add_argument("hardware", metavar="HARDWARE", nargs="?", help="accelerator; all of them without it")
    parser.add_argument("--devices-per-node", metavar="N", help="accelerators of one node (default: the registry's, 8)")
    parser.add_argument(
        "--reserve-bps", metavar="BPS", help="memory held back on each accelerator, 0 to 9999 (default 1300)"
    )
    parser.add_argument("--reserve-pct", metavar="PCT", help="the same in percent, such as 12.5")
    parser.add_argument("--registry", metavar="X", help="registry version or file (default 1.1.0)")
    parser.add_argument("--json", action="store_true", help="print the floor in exact integers")


def run(args: argparse.Namespace) -> int:
    """Show the floor."""
    from moeplan.catalogue.registries import find_accelerator, find_model, load_registry
    from moeplan.planning.options import parse_integer, parse_reserve
    from moeplan.planning.scenario import in_scenario_keys

    registry = load_registry(args.registry)
    reserve = parse_reserve(args.reserve_bps, args.reserve_pct)
    if reserve is None:
        reserve = registry.defaults.reserve_basis_points
    per_node = registry.defaults.accelerators_per_node
    if args.devices_per_node is not None:
        per_node = parse_integer("--devices-per-node", args.devices_per_node, 1, 100_000)
    try:
        model = find_model(registry, args.model)
        shown = registry.hardware if args.hardware is None else (find_accelerator(registry, args.hardware),)
        floors = [(item, _floor(model, item, reserve, per_node)) for item in shown]
    except InputError as error:
        raise in_scenario_keys(error, _PATHS) from None
    if args.json:
        _emit_json(registry, model, floors, reserve, per_node)
    else:
        emit_text(
            table(("hardware", "usable a device", "minimum", f"in nodes of {per_node}"), [_row(*f) for f in floors])
        )
        note("tensor bytes only: KV cache, activations and the runtime's own memory come on top")
    return 0


def _floor(model: Model, hardware: Accelerator, reserve: int, per_node: int) -> Residency:
    from moeplan.planning.residency import model_residency

    return model_residency(model, hardware, None, reserve, 1, per_node)


def _row(hardware: Accelerator, floor: Residency) -> tuple[object, ...]:
    from moeplan.units import format_bytes

    usable = floor.usable_bytes_per_accelerator
    shown = "unknown" if usable is None else format_bytes(usable)
    if floor.minimum_accelerators is None:
        return (hardware.id, shown, "unknown", "unknown")
    return (hardware.id, shown, floor.minimum_accelerators, floor.rounded_accelerators)


def _emit_json(
    registry: Registry, model: Model, floors: list[tuple[Accelerator, Residency]], reserve: int, per_node: int
) -> None:
    emit_json(
        {
            "registryVersion": registry.registry_version,
            "modelId": model.id,
            "reserveBasisPoints": reserve,
            "acceleratorsPerNode": per_node,
            "tensorBytes": floors[0][1].tensor_bytes if floors else None,
            "hardware": [
                {
                    "hardwareId": hardware.id,
                    "bytesPerAccelerator": floor.bytes_per_accelerator,
                    "usableBytesPerAccelerator": floor.usable_bytes_per_accelerator,
                    "minimumAccelerators": floor.minimum_accelerators,
                    "roundedAccelerators": floor.rounded_accelerators,
                    "roundedNodes": floor.rounded_nodes,
                }
                for hardware, floor in floors
            ],
        }
    )
