"""Gather evidence for a bundle: records, run manifests and the attachments they name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import attrs

from moeplan.bundle.container import BundleSource
from moeplan.bundle.directory import DirectorySource
from moeplan.digest import digest_bytes, digest_chunks
from moeplan.errors import InputError, Issue, VerificationError, escape
from moeplan.model.evidence import RECORD_PATH, Attachment, EvidenceRecord
from moeplan.model.run_manifest import RunManifest
from moeplan.wire.documents import load_value, require_canonical
from moeplan.wire.files import read_file
from moeplan.wire.strict_json import parse_strict

__all__ = ["Member", "gather_evidence"]

_CLASSES: dict[str, type] = {"evidence_record": EvidenceRecord, "run_manifest": RunManifest}
_MEDIA_TYPES = {".json": "application/json", ".parquet": "application/vnd.apache.parquet"}


@attrs.frozen
class Member:
    """One file a bundle is to hold: where it goes, what it must be, and how to read it.

    Attributes:
        origin: where it comes from, escaped, for messages.
    """

    path: str
    role: str
    media_type: str
    size: int
    digest: str
    origin: str
    chunks: Callable[[], Iterable[bytes]]

    @classmethod
    def document(cls, path: str, data: bytes, role: str, origin: str | None = None) -> Self:
        """Return the member for a JSON document that is at hand."""
        digest = digest_bytes(data)
        return cls(path, role, "application/json", len(data), digest, origin or path, lambda: (data,))


def gather_evidence(
    inputs: Iterable[Path], plan_digest: str, say: Callable[[str], None], stack: ExitStack
) -> list[Member]:
    """Return every member the inputs make; their files stay open until ``stack`` closes.

    Args:
        inputs: import directories (``evidence/``, ``attachments/``) or single record files without attachments.
        plan_digest: the plan every record must belong to.
        say: told what is left out.
        stack: closes what is opened here.

    Raises:
        InputError: with every fault of every input.
        StoreError: an input cannot be read.
    """
    gathering = _Gathering(plan_digest, say)
    for item in inputs:
        try:
            if os.path.isdir(item):  # unlike Path.is_dir, raises for no name
                gathering.take_directory(str(item), stack.enter_context(DirectorySource(item)))
            else:
                gathering.take_file(item)
        except VerificationError as error:  # these files are the caller's own: exit 2, not 4
            gathering.issues += [issue.under(f"{escape(str(item), 400)}/") for issue in error.issues]
    if gathering.issues:
        raise InputError(*gathering.issues)
    return list(gathering.members.values())


class _Gathering:
    """Members by path, and the faults found on the way."""

    def __init__(self, plan_digest: str, say: Callable[[str], None]) -> None:
        self.members: dict[str, Member] = {}
        self.issues: list[Issue] = []
        self._plan = plan_digest
        self._say = say
        self._records: dict[str, str] = {}

    def take_file(self, path: Path) -> None:
        """Take one evidence record or run manifest without attachments."""
        where = escape(str(path), 400)
        document = self._document(f"evidence/{path.name}", read_file(path), where)
        for attachment in _enclosed(document):
            hint = "name the import directory that holds the record and its attachments"
            self._fault(where, "attachment_missing", f"attachment {attachment.path} is not at hand", next=hint)

    def take_directory(self, root: str, source: BundleSource) -> None:
        """Take an import's output directory."""
        paths = source.paths()
        records = [path for path in paths if path.startswith("evidence/")]
        if not records:
            hint = "name the directory that 'moeplan import … -o DIR' made"
            self._fault(escape(root, 400), "no_evidence", "no evidence in this directory", "evidence/*.json", next=hint)
        documents = [self._document(path, source.read(path), escape(f"{root}/{path}", 400)) for path in records]
        wanted = {attachment.path: attachment for item in documents for attachment in _enclosed(item)}
        for attachment in (attachment for item in documents for attachment in _enclosed(item)):
            self._attachment(attachment, source, root, wanted)
        logged = {digest for item in documents if isinstance(item, RunManifest) for digest in _logged(item)}
        for path in paths:
            if path.startswith("attachments/") and path not in wanted:
                self._unreferenced(path, source, escape(f"{root}/{path}", 400), logged)
            elif not path.startswith(("attachments/", "evidence/")):
                self._say(f"left out: {escape(f'{root}/{path}', 400)} is no evidence")

    def _document(self, path: str, data: bytes, where: str) -> EvidenceRecord | RunManifest | None:
        if not re.fullmatch(RECORD_PATH.strip("^$"), path):
            self._fault(where, "record_name", "no name for a record", "letters, digits, . _ - and the ending .json")
            return None
        try:
            document = _load(data)
        except InputError as error:
            self.issues += [attrs.evolve(issue, path=f"{where}: {issue.path}") for issue in error.issues]
            return None
        if document.plan != self._plan:
            hint = "import it again with this plan, or create the bundle with the plan it was made for"
            self._fault(where, "plan_mismatch", "made for another plan", self._plan, document.plan, hint)
        role = "evidence" if isinstance(document, EvidenceRecord) else "run_manifest"
        self._add(Member.document(path, data, role, where))
        return document

    def _attachment(
        self, attachment: Attachment, source: BundleSource, root: str, wanted: dict[str | None, Attachment]
    ) -> None:
        path = attachment.path
        assert path is not None
        where = escape(f"{root}/{path}", 400)
        first = wanted[path]
        if path not in source.paths():
            self._fault(where, "attachment_missing", "attachment is missing", f"{attachment.size} bytes")
        elif source.size(path) != attachment.size:
            got = f"{source.size(path)} bytes"
            self._fault(
                where, "attachment_digest", "size is not what the record states", f"{attachment.size} bytes", got
            )
        elif (first.digest, first.media_type) != (attachment.digest, attachment.media_type):
            self._fault(where, "attachment_collision", "two records state different contents", first.digest)
        else:
            made = (attachment.media_type, attachment.size, attachment.digest, where)
            self._add(Member(path, "attachment", *made, lambda: source.chunks(path)))

    def _unreferenced(self, path: str, source: BundleSource, where: str, logged: set[str]) -> None:
        digest, size = digest_chunks(source.chunks(path))
        if digest not in logged:
            self._fault(where, "attachment_unreferenced", "no record or run manifest names this file", "listed files")
            return
        media_type = _MEDIA_TYPES.get(Path(path).suffix, "text/plain")
        self._add(Member(path, "attachment", media_type, size, digest, where, lambda: source.chunks(path)))

    def _add(self, member: Member) -> None:
        earlier = self.members.get(member.path)
        if earlier is not None and earlier.digest != member.digest:
            code = "attachment_collision" if member.role == "attachment" else "record_collision"
            self._fault(member.origin, code, f"another file already goes to {member.path}", earlier.origin)
        elif earlier is None and member.role == "evidence" and member.digest in self._records:
            self._fault(member.origin, "record_repeated", "the same record again", self._records[member.digest])
        else:
            self._records.setdefault(member.digest, member.origin)
            self.members.setdefault(member.path, member)

    def _fault(
        self,
        where: str,
        code: str,
        message: str,
        expected: str | None = None,
        got: str | None = None,
        next: str | None = None,
    ) -> None:
        self.issues.append(Issue(where, code, message, expected, got, next))


def _load(data: bytes) -> EvidenceRecord | RunManifest:
    value = parse_strict(data)
    kind = value.get("kind") if type(value) is dict else None
    cls = _CLASSES.get(kind, EvidenceRecord) if type(kind) is str else EvidenceRecord
    document: EvidenceRecord | RunManifest = load_value(value, cls)
    require_canonical(data, document)
    return document


def _enclosed(document: EvidenceRecord | RunManifest | None) -> Iterator[Attachment]:
    if isinstance(document, EvidenceRecord):
        yield from (attachment for attachment in document.attachments if attachment.path is not None)


def _logged(run: RunManifest) -> Iterator[str]:
    for trial in run.trials:
        yield from trial.files
    for observation in run.observations:
        yield from observation.files
