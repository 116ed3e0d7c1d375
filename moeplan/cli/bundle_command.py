"""``moeplan bundle``: create, pack or unpack an evidence bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from moeplan.cli.actions import add_action, add_actions

if TYPE_CHECKING:
    from moeplan.model.inventory import EvidenceBundle

EXAMPLE = "moeplan bundle create BUNDLE --plan plan.json --checkpoint checkpoint.json --evidence IMPORTED"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = add_actions(parser, "create|pack|unpack")
    create = add_action(actions, "create", "write a bundle directory with its inventory", EXAMPLE)
    create.add_argument("out", metavar="OUT", help="directory to make; must not exist, or be empty")
    create.add_argument("--plan", required=True, metavar="FILE", help="plan, form 1.1.0")
    create.add_argument("--checkpoint", metavar="FILE", help="checkpoint manifest")
    create.add_argument("--registry", metavar="FILE", help="registry the plan was made with")
    create.add_argument(
        "--evidence", required=True, nargs="+", action="extend", metavar="PATH", help="import directory or record file"
    )
    pack = add_action(
        actions, "pack", "write a bundle's deterministic tar form", "moeplan bundle pack BUNDLE -o bundle.tar"
    )
    pack.add_argument("bundle", metavar="DIR", help="bundle directory")
    pack.add_argument("-o", "--output", required=True, metavar="FILE", help="tar file to write")
    unpack = add_action(
        actions, "unpack", "check a tar's inventory, then unpack it", "moeplan bundle unpack bundle.tar -o BUNDLE"
    )
    unpack.add_argument("bundle", metavar="TAR", help="tar file")
    unpack.add_argument("-o", "--output", required=True, metavar="DIR", help="directory to make")
    for action in (create, pack, unpack):
        action.add_argument("--json", action="store_true", help='print {"bundle": digest, "files": […]}')


def run(args: argparse.Namespace) -> int:
    """Carry out one action and print the inventory."""
    inventory, place = {"create": _create, "pack": _pack, "unpack": _unpack}[args.action](args)
    _show(inventory, place, args.json)
    return 0


def _create(args: argparse.Namespace) -> tuple[EvidenceBundle, str]:
    from moeplan.bundle.create import HEADS, create_bundle
    from moeplan.cli.inputs import read_authored
    from moeplan.cli.output import note
    from moeplan.wire.documents import dump_document

    given = {name: getattr(args, name) for name in HEADS}
    heads = {name: dump_document(read_authored(path, HEADS[name])) for name, path in given.items() if path is not None}
    inventory = create_bundle(args.out, **heads, evidence=[Path(item) for item in args.evidence], note=note)
    return inventory, args.out


def _require_outside(bundle: str, output: str) -> None:
    """Refuse an output that would become one of the bundle's files: the world of a bundle is closed."""
    import os

    from moeplan.errors import InputError, Issue, escape
    from moeplan.wire.files import lies_within

    if os.path.isdir(bundle) and lies_within(output, bundle):
        expected, got = "a path outside the bundle", escape(output, 400)
        raise InputError(
            Issue("--output", "output_inside_bundle", "the output would lie inside the bundle", expected, got)
        )


def _pack(args: argparse.Namespace) -> tuple[EvidenceBundle, str]:
    from moeplan.bundle.source import open_source
    from moeplan.bundle.tarform import write_tar

    _require_outside(args.bundle, args.output)
    with open_source(args.bundle) as source:
        return write_tar(source, args.output)[0], args.output


def _unpack(args: argparse.Namespace) -> tuple[EvidenceBundle, str]:
    from moeplan.bundle.source import open_source
    from moeplan.bundle.tarform import unpack

    _require_outside(args.bundle, args.output)
    with open_source(args.bundle) as source:
        return unpack(source, args.output)[0], args.output


def _show(inventory: EvidenceBundle, place: str, as_json: bool) -> None:
    from moeplan.cli.output import emit_json, emit_text, note, table
    from moeplan.errors import escape
    from moeplan.units import format_count
    from moeplan.wire.converter import unstructure
    from moeplan.wire.documents import identify

    digest = identify(inventory)
    if as_json:
        emit_json({"bundle": digest, "files": unstructure(inventory)["files"]})
    else:
        rows = [(file.path, file.role, format_count(file.size), file.digest) for file in inventory.files]
        emit_text(table(("path", "role", "bytes", "digest"), rows))
        emit_text(f"bundle.json {digest}")
    note(f"wrote {escape(place, 400)}")
