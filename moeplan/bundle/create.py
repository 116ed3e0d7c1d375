"""Create an evidence bundle from a plan, a checkpoint manifest, a registry and evidence, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from moeplan.bundle.container import BUNDLE_FILE
from moeplan.bundle.gather import Member, gather_evidence
from moeplan.bundle.staging import staged_directory, write_member
from moeplan.bundle.ustar import header
from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, VerificationError
from moeplan.model.checkpoint import CheckpointManifest
from moeplan.model.inventory import EvidenceBundle, InventoryFile
from moeplan.model.plan import Plan
from moeplan.model.registry import Registry
from moeplan.wire.documents import dump_document, load_document

__all__ = ["HEADS", "create_bundle"]

HEADS: dict[str, type] = {"plan": Plan, "checkpoint": CheckpointManifest, "registry": Registry}
"""Documents that stand at a bundle's top, by name."""


def create_bundle(
    out_dir: Path | str,
    *,
    plan: bytes,
    checkpoint: bytes | None = None,
    registry: bytes | None = None,
    evidence: Sequence[Path | str] = (),
    note: Callable[[str], None] | None = None,
) -> EvidenceBundle:
    """Write an evidence bundle to ``out_dir`` and return its inventory.

    Signs nothing and judges nothing: a bundle of weak evidence is a bundle.

    Args:
        out_dir: a directory that does not exist yet, or an empty one.
        plan: the plan, form 1.1.0, in any layout.
        checkpoint: the checkpoint manifest, in any layout.
        registry: the registry the plan was made with, in any layout.
        evidence: output directories of ``moeplan import``, or single evidence record files.
        note: told, in one sentence each, what was written in another layout than it was given, or left out.

    Raises:
        InputError: a document is malformed, a record belongs to another plan, an attachment is missing or differs from
            its digest, or two inputs claim one path.
        StoreError: an input cannot be read, ``out_dir`` is in the way or cannot be written; nothing is left behind.
    """
    say = note or (lambda _text: None)
    given = {"plan": plan, "checkpoint": checkpoint, "registry": registry}
    heads = [_head(name, data, say) for name, data in given.items() if data is not None]
    with ExitStack() as stack:
        members = heads + gather_evidence([Path(item) for item in evidence], heads[0].digest, say, stack)
        inventory = EvidenceBundle(files=tuple(sorted(map(_listed, members), key=lambda file: file.path)))
        _require_sound(inventory)
        with staged_directory(out_dir) as staging:
            issues = [issue for member in members for issue in _write(staging, member)]
            if issues:
                raise InputError(*issues)
            write_member(staging, BUNDLE_FILE, (dump_document(inventory),))
    return inventory


def _head(name: str, data: bytes, say: Callable[[str], None]) -> Member:
    document: Plan | CheckpointManifest | Registry = load_document(data, HEADS[name], source=f"{name}.json")
    made = dump_document(document)
    if made != data:
        say(f"{name}.json was not in canonical form; written as RFC 8785 and one LF, {digest_bytes(made)}")
    return Member.document(f"{name}.json", made, name)


def _listed(member: Member) -> InventoryFile:
    return InventoryFile(
        path=member.path, size=member.size, digest=member.digest, media_type=member.media_type, role=member.role
    )


def _require_sound(inventory: EvidenceBundle) -> None:
    """Refuse what no tar form could carry before anything is written."""
    issues = list(inventory.faults())
    for file in inventory.files:
        try:
            header(file.path, file.size)
        except VerificationError as error:
            issues += error.issues
    if issues:
        raise InputError(*issues)


def _write(staging: Path, member: Member) -> Iterator[Issue]:
    digest, size = write_member(staging, member.path, member.chunks())
    if (digest, size) != (member.digest, member.size):
        expected, got = f"{member.size} bytes, {member.digest}", f"{size} bytes, {digest}"
        yield Issue(member.origin, "attachment_digest", "content is not what the record states", expected, got)
