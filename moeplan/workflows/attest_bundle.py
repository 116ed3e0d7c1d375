"""Sign a bundle: an evidence attestation for each record and run manifest, then the index over all that is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from moeplan.attest.attestations import OpenedAttestation, open_attestations
from moeplan.attest.statements import evidence_statement, index_statement
from moeplan.auditing.contents import Contents, read_contents
from moeplan.auditing.records import check_records
from moeplan.bundle.inventory import check_inventory, load_inventory
from moeplan.bundle.source import ATTESTATIONS, DirectorySource
from moeplan.errors import InputError, Issue, escape
from moeplan.signing.keys import PrivateKey, fingerprint, public_key_of
from moeplan.signing.sigstore_bundle import attestation_name, open_sealed, parse_attestation_name, seal
from moeplan.wire.files import store_error, write_file

__all__ = ["Signed", "attest_bundle", "place_attestation"]


@attrs.frozen
class Signed:
    """What was written: attestation file names, and those of this signer's older indexes that were removed."""

    written: tuple[str, ...]
    removed: tuple[str, ...]


def attest_bundle(path: Path | str, key: PrivateKey, *, records: bool = True, index: bool = True) -> Signed:
    """Sign a bundle directory. Signing again adds nothing that stands already and renews this signer's index.

    Nothing is signed before the inventory holds, every document is in its one form and every attachment is the one its
    record names. The index is written last.

    Args:
        path: a bundle directory.
        key: the signer's private key.
        records: sign each record and run manifest, as who measured them.
        index: sign the inventory and the list of attestations present, as who packed them.

    Raises:
        VerificationError, InputError: the bundle is at fault; nothing was written.
        StoreError: it cannot be read or written.
    """
    root = Path(path)
    if not os.path.isdir(root):  # unlike Path.is_dir, raises for no name
        raise InputError(
            Issue(
                escape(str(path), 400),
                "not_a_directory",
                "only a bundle directory can be signed",
                "a directory",
                next="unpack a tar first with 'moeplan bundle unpack'",
            )
        )
    me = fingerprint(public_key_of(key))
    with DirectorySource(root) as source:
        inventory, raw = load_inventory(source)
        check_inventory(source, inventory)
        contents = read_contents(source, inventory)
        check_records(contents, inventory)
        statements = list(_statements(source, contents)) if records else []
        present = {item.name: item for item in open_attestations(_files(source))}
    written = [_place(root, present, kind, payload, key, me) for kind, payload in statements]
    removed: list[str] = []
    if index:
        listed = [(name, item.sealed.payload_digest) for name, item in present.items() if item.kind != "index"]
        old = [name for name, item in present.items() if item.kind == "index" and item.sealed.hint_fingerprint == me]
        name = _place(root, present, "index", index_statement(raw, listed), key, me)
        written.append(name)
        kept = name or next(n for n in old if present[n].sealed.payload == index_statement(raw, listed))
        removed = [stale for stale in old if stale != kept]
        for stale in removed:
            _remove(root / ATTESTATIONS / stale)
    return Signed(tuple(name for name in written if name is not None), tuple(removed))


def place_attestation(path: Path | str, kind: str, data: bytes) -> str:
    """Put a sealed attestation into a bundle directory under the next free canonical name; return the name."""
    root = Path(path)
    payload = open_sealed(data).payload
    with DirectorySource(root) as source:
        present = open_attestations(_files(source))
    name = attestation_name(kind, payload, _next_number({item.name for item in present}, kind, payload))
    _write(root, name, data)
    return name


def _files(source: DirectorySource) -> dict[str, bytes]:
    names = [path for path in source.paths() if path.startswith(ATTESTATIONS)]
    return {name.removeprefix(ATTESTATIONS): source.read(name) for name in names}


def _statements(source: DirectorySource, contents: Contents) -> Iterator[tuple[str, bytes]]:
    for held in (*contents.records, *contents.runs):
        yield "evidence", evidence_statement(held.path, source.read(held.path), held.document)


def _place(
    root: Path, present: dict[str, OpenedAttestation], kind: str, payload: bytes, key: PrivateKey, me: str
) -> str | None:
    """Sign and write one statement unless this signer's attestation of it stands already."""
    if any(item.sealed.payload == payload and item.sealed.hint_fingerprint == me for item in present.values()):
        return None
    data = seal(key, payload)
    name = attestation_name(kind, payload, _next_number(set(present), kind, payload))
    _write(root, name, data)
    present[name] = OpenedAttestation(name, kind, open_sealed(data))
    return name


def _next_number(names: set[str], kind: str, payload: bytes) -> int:
    first = parse_attestation_name(attestation_name(kind, payload, 1))
    taken = [parse_attestation_name(name) for name in names]
    return 1 + max((t.number for t in taken if (t.kind, t.prefix) == (first.kind, first.prefix)), default=0)


def _write(root: Path, name: str, data: bytes) -> None:
    folder = root / ATTESTATIONS
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise store_error(folder, error, "write") from None
    write_file(folder / name, data)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise store_error(path, error, "remove") from None
