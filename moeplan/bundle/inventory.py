"""The closed-world inventory: what ``bundle.json`` lists is there, unchanged, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.bundle.container import ATTESTATIONS, BUNDLE_FILE, BundleSource
from moeplan.digest import digest_chunks
from moeplan.errors import InputError, Issue, VerificationError, escape
from moeplan.model.inventory import EvidenceBundle, InventoryFile
from moeplan.signing.sigstore_bundle import is_attestation_name
from moeplan.wire.documents import load_document, require_canonical

__all__ = ["check_inventory", "load_inventory", "no_inventory"]


def load_inventory(source: BundleSource) -> tuple[EvidenceBundle, bytes]:
    """Return the inventory and its bytes as they lie; the index attestation's subject is their SHA-256.

    Raises:
        VerificationError: absent (``inventory_absent``), malformed, or not in canonical form (``not_canonical``).
    """
    if BUNDLE_FILE not in source.paths():
        raise no_inventory()
    data = source.read(BUNDLE_FILE)
    try:
        inventory = load_document(data, EvidenceBundle)
        require_canonical(data, inventory)
    except InputError as error:
        raise VerificationError(*error.issues, source=BUNDLE_FILE) from None
    return inventory, data


def no_inventory() -> VerificationError:
    """Return the error for a bundle without ``bundle.json``."""
    hint = "an evidence bundle is made with 'moeplan bundle create'"
    return VerificationError(Issue(BUNDLE_FILE, "inventory_absent", "no inventory", BUNDLE_FILE, next=hint))


def check_inventory(source: BundleSource, inventory: EvidenceBundle) -> None:
    """Compare every file of the bundle with the inventory; reads each listed file once.

    Does not look into any file, and trusts the inventory: whose it is, the index attestation says.

    Raises:
        VerificationError: with every ``inventory_missing``, ``inventory_extra``, ``inventory_size``,
            ``inventory_digest`` and ``inventory_attestation``, each with the file's path.
    """
    issues = [*_misplaced(source, inventory), *_differing(source, inventory)]
    if issues:
        raise VerificationError(*sorted(issues, key=lambda issue: issue.path))


def _misplaced(source: BundleSource, inventory: EvidenceBundle) -> Iterator[Issue]:
    listed = {file.path for file in inventory.files}
    for path in source.paths():
        if path.startswith(ATTESTATIONS):
            if not is_attestation_name(path.removeprefix(ATTESTATIONS)):
                wanted = "attestations/KIND-HEX16-N.sigstore.json"
                yield Issue(escape(path, 600), "inventory_attestation", "not the name of an attestation", wanted)
        elif path != BUNDLE_FILE and path not in listed:
            yield Issue(escape(path, 600), "inventory_extra", "file is not in the inventory", "listed files only")


def _differing(source: BundleSource, inventory: EvidenceBundle) -> Iterator[Issue]:
    present = set(source.paths())
    for file in inventory.files:
        if file.path not in present:
            yield Issue(file.path, "inventory_missing", "listed file is missing", f"{file.size} bytes, {file.digest}")
        elif source.size(file.path) != file.size:
            got = f"{source.size(file.path)} bytes"
            yield Issue(file.path, "inventory_size", "size differs from the inventory", f"{file.size} bytes", got)
        else:
            yield from _changed(source, file)


def _changed(source: BundleSource, file: InventoryFile) -> Iterator[Issue]:
    digest, _size = digest_chunks(source.chunks(file.path))
    if digest != file.digest:
        yield Issue(file.path, "inventory_digest", "content differs from the inventory", file.digest, digest)
