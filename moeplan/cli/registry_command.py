"""``moeplan registry validate``: every fault of a registry file, with its JSON path."""

from __future__ import annotations

import argparse

from moeplan.cli.actions import add_action, add_actions
from moeplan.cli.output import emit_json, emit_text, note
from moeplan.errors import InputError, escape

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan registry validate registry.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action and its options."""
    validate = add_action(
        add_actions(parser, "validate"),
        "validate",
        "check a registry file and print its digest",
        EXAMPLE,
        "Check a registry file (JSON, or YAML where the name ends in .yaml or .yml) and print its digest.\n"
        "Exit 0 where it is valid, 2 with every fault and its JSON path where it is not.",
    )
    validate.add_argument("file", metavar="FILE", help="the registry")
    validate.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Validate a registry file."""
    from moeplan.catalogue.registries import parse_registry, registry_digest
    from moeplan.wire.documents import dump_document
    from moeplan.wire.files import read_file

    data, shown = read_file(args.file), escape(args.file, 400)
    try:
        registry = parse_registry(data, yaml=args.file.lower().endswith((".yaml", ".yml")), source=shown)
    except InputError as error:
        if args.json:
            emit_json({"ok": False, **error.to_json()})
        for issue in error.issues:
            note(f"error: {shown}: {issue}")
        return 2
    if data != dump_document(registry):
        note(f"{shown}: not in a document's one form; identified by the form's digest")
    digest = registry_digest(registry)
    if args.json:
        emit_json({"ok": True, "kind": registry.kind, "digest": digest})
    else:
        emit_text(f"{shown}: valid, registry {registry.registry_version}, {digest}")
    return 0
