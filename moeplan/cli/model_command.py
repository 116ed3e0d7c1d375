"""``moeplan model``: one model with every claim and where it stands."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.output import emit_json, emit_text, table
from moeplan.errors import InputError, escape

if TYPE_CHECKING:
    from moeplan.model.registry import Model, Registry

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan model kimi-k3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="MODEL", help="id, alias, name or repository")
    parser.add_argument("--registry", metavar="X", help="registry version or file (default 1.1.0)")
    parser.add_argument("--json", action="store_true", help="print the model, and the sources it refers to")


def run(args: argparse.Namespace) -> int:
    """Show one model."""
    from moeplan.catalogue.registries import find_model, load_registry
    from moeplan.planning.scenario import in_scenario_keys

    registry = load_registry(args.registry)
    try:
        model = find_model(registry, args.model)
    except InputError as error:
        raise in_scenario_keys(error, {"model": "MODEL"}) from None
    if args.json:
        _emit_json(registry, model)
    else:
        emit_text(_shown(registry, model))
    return 0


def _emit_json(registry: Registry, model: Model) -> None:
    from moeplan.wire.converter import unstructure

    value = unstructure(model)
    used = {item["source"] for claim in value["claims"].values() for item in claim["provenance"]}
    sources = [unstructure(source) for source in registry.sources if source.id in used]
    emit_json({"registryVersion": registry.registry_version, "model": value, "sources": sources})


def _shown(registry: Registry, model: Model) -> str:
    import attrs

    from moeplan.model.fields import camel
    from moeplan.model.registry import Unknown

    places = {source.id: source.url or source.publisher for source in registry.sources}
    rows = []
    for field in attrs.fields(type(model.claims)):
        claim = getattr(model.claims, field.name)
        value = f"unknown: {claim.reason}" if isinstance(claim, Unknown) else claim.value
        place = "; ".join(
            f"{places[item.source]} ({item.locator})" if item.locator is not None else places[item.source]
            for item in claim.provenance
        )
        rows.append((camel(field.name), value, place))
    head = [
        ("model", model.id),
        ("name", f"{model.name}, by {model.provider}"),
        ("aliases", ", ".join(model.aliases) or "none"),
        ("artifact", f"{model.repository}@{model.revision}"),
        ("manifest", model.manifest_url or "none"),
    ]
    lines = "\n".join(f"{name.ljust(10)}{escape(text, 400)}" for name, text in head)
    return lines + "\n\n" + table(("claim", "value", "source"), rows)
