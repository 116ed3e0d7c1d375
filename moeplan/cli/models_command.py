"""``moeplan models``: the registry's models, one a line."""

from __future__ import annotations

import argparse

from moeplan.cli.output import emit_json, emit_text, table

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan models"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--registry", metavar="X", help="registry version or file (default 1.1.0)")
    parser.add_argument("--json", action="store_true", help="print the models with their claims")


def run(args: argparse.Namespace) -> int:
    """List the models."""
    from moeplan.catalogue.registries import load_registry
    from moeplan.model.registry import KnownInteger
    from moeplan.units import format_bytes

    registry = load_registry(args.registry)
    if args.json:
        from moeplan.wire.converter import unstructure

        emit_json({"registryVersion": registry.registry_version, "models": [unstructure(m) for m in registry.models]})
        return 0
    rows = []
    for model in registry.models:
        claim = model.claims.artifact_tensor_bytes
        size = format_bytes(claim.value) if isinstance(claim, KnownInteger) else "unknown"
        rows.append((model.id, model.name, model.provider, size, model.repository))
    emit_text(table(("id", "name", "provider", "tensors", "repository"), rows))
    return 0
