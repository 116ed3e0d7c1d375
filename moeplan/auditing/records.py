"""Records against the rest of the bundle: their plan, their attachments, their signatures, their raw tables."""

from __future__ import annotations

from collections.abc import Sequence

from moeplan.attest.attestations import Attestation, signers_of
from moeplan.auditing.contents import Contents, Held
from moeplan.auditing.raw_tables import read_observations
from moeplan.bundle.source import BundleSource
from moeplan.errors import InputError, Issue, VerificationError, escape
from moeplan.model.attestation import EvidencePredicate
from moeplan.model.evidence import Attachment, EvidenceRecord, Preflight, ServingTrial
from moeplan.model.inventory import EvidenceBundle, InventoryFile
from moeplan.model.run_manifest import RunManifest
from moeplan.model.tables import ChunkGapTable, RequestTable, preflight_faults, table_faults
from moeplan.model.verified import VerifiedRecord, VerifiedRun, VerifiedSigner
from moeplan.wire.documents import identify
from moeplan.wire.tables import load_chunk_gaps, load_preflight, load_requests

__all__ = ["check_records", "check_runs", "check_signatures", "load_tables"]

_MAX_TABLE_BYTES = 4 << 30


def check_records(contents: Contents, inventory: EvidenceBundle) -> str:
    """Refuse records of another plan, attachments that are not the inventory's, and attachments nobody names.

    Raises:
        VerificationError: every such fault.
    """
    plan = identify(contents.plan)
    listed = {file.path: file for file in inventory.files if file.role == "attachment"}
    named: set[str] = set()
    issues: list[Issue] = []
    for held in (*contents.records, *contents.runs):
        if held.document.plan != plan:
            issues.append(
                Issue(f"{held.path}: $.plan", "other_plan", "made for another plan", plan, held.document.plan)
            )
        if isinstance(held.document, EvidenceRecord):
            for attachment in held.document.attachments:
                issues += _attachment_faults(held, attachment, listed, named)
    issues += [
        Issue(path, "attachment_unnamed", "no record names this attachment") for path in sorted(set(listed) - named)
    ]
    if issues:
        raise VerificationError(*issues)
    return f"{len(contents.records)} record(s), {len(contents.runs)} run(s), {len(named)} attachment(s)"


def _attachment_faults(
    held: Held, attachment: Attachment, listed: dict[str, InventoryFile], named: set[str]
) -> list[Issue]:
    if attachment.path is None:
        return []
    if attachment.path in named:
        return [Issue(held.path, "attachment_shared", f"{attachment.path} is named twice", "one record a file")]
    named.add(attachment.path)
    file = listed.get(attachment.path)
    wanted = (attachment.size, attachment.digest, attachment.media_type)
    if file is None:
        return [Issue(held.path, "attachment_missing", f"{attachment.path} is not in the bundle", attachment.digest)]
    if (file.size, file.digest, file.media_type) != wanted:
        return [
            Issue(
                held.path,
                "attachment_differs",
                f"{attachment.path} is not the file the record names",
                attachment.digest,
            )
        ]
    return []


def check_signatures(contents: Contents, attestations: Sequence[Attestation]) -> dict[str, tuple[VerifiedSigner, ...]]:
    """Return who signed each record and run manifest, by path; each needs a trusted runner.

    Raises:
        VerificationError: ``record_not_signed``, ``predicate_differs``, ``subject_unknown``.
    """
    signers: dict[str, tuple[VerifiedSigner, ...]] = {}
    issues: list[Issue] = []
    by_subject = {(held.path, held.digest): held for held in (*contents.records, *contents.runs)}
    for attestation in attestations:
        if attestation.kind == "evidence":
            issues += _predicate_faults(attestation, by_subject)
    for held in by_subject.values():
        signers[held.path] = signers_of(attestations, held.path, held.digest)
        if not any("runner" in signer.roles for signer in signers[held.path]):
            issues.append(
                Issue(
                    held.path,
                    "record_not_signed",
                    "no trusted runner signed this file",
                    "an evidence attestation",
                    next="have the runner sign it with 'moeplan attest', or name the runner in the policy",
                )
            )
    if issues:
        raise VerificationError(*issues)
    return signers


def _predicate_faults(attestation: Attestation, by_subject: dict[tuple[str, str], Held]) -> list[Issue]:
    at = f"attestations/{attestation.name}"
    subjects = [(subject.name, subject.digest) for subject in attestation.statement.subject]
    held = by_subject.get(subjects[0]) if len(subjects) == 1 else None
    if held is None:
        return [Issue(at, "subject_unknown", "its subject is no record of this bundle", "one record file")]
    document, predicate = held.document, attestation.predicate
    deployment = document.deployment if isinstance(document, RunManifest) else identify(document.deployment)
    if predicate != EvidencePredicate(document.kind, document.plan, deployment):
        return [Issue(at, "predicate_differs", f"says something else than {held.path} does", "the file's own values")]
    return []


def load_tables(
    source: BundleSource, contents: Contents, signers: dict[str, tuple[VerifiedSigner, ...]]
) -> tuple[VerifiedRecord, ...]:
    """Return every record with its raw tables, each read by its closed schema and checked against the record.

    Raises:
        VerificationError: a table that is malformed or contradicts itself or its record.
    """
    verified = []
    for held in contents.records:
        record = held.document
        assert isinstance(record, EvidenceRecord)
        if isinstance(record.payload, Preflight):
            _check_preflight(source, held, record)
        requests, gaps = _tables(source, held, record) if isinstance(record.payload, ServingTrial) else (None, None)
        tables = read_observations(source, held.path, record) or {"requests": requests, "chunk_gaps": gaps}
        verified.append(VerifiedRecord(record, held.digest, signers[held.path], **tables))
    return tuple(verified)


def _tables(source: BundleSource, held: Held, record: EvidenceRecord) -> tuple[RequestTable, ChunkGapTable]:
    paths = {attachment.role: attachment.path for attachment in record.attachments}
    payload = record.payload
    assert isinstance(payload, ServingTrial)
    at = held.path
    try:
        at = str(paths["requests"])
        requests = load_requests(source.read(at, _MAX_TABLE_BYTES))
        at = str(paths["chunk_gaps"])
        gaps = load_chunk_gaps(source.read(at, _MAX_TABLE_BYTES))
    except InputError as error:
        error.source = at
        raise
    issues = list(table_faults(requests, gaps, payload.duration_ns))
    if len(requests) != payload.request_count:
        issues.append(
            Issue(
                "$.payload.requestCount",
                "row_count",
                "not the rows of the table",
                str(len(requests)),
                str(payload.request_count),
            )
        )
    if issues:
        raise VerificationError(
            *(Issue(f"{held.path}: {i.path}", i.code, i.message, i.expected, i.got) for i in issues)
        )
    return requests, gaps


def _check_preflight(source: BundleSource, held: Held, record: EvidenceRecord) -> None:
    """Read a preflight's table by its closed schema; no criterion uses it, and none believes one that is malformed."""
    at = next(str(attachment.path) for attachment in record.attachments if attachment.role == "preflight")
    payload = record.payload
    assert isinstance(payload, Preflight)
    try:
        table = load_preflight(source.read(at, _MAX_TABLE_BYTES))
    except InputError as error:
        error.source = at
        raise
    issues = list(preflight_faults(table))
    if len(table) != payload.row_count:
        rows, wanted = str(payload.row_count), str(len(table))
        issues.append(Issue("$.payload.rowCount", "row_count", "not the rows of the table", wanted, rows))
    unknown = sorted(set(table.host) - {host.name for host in payload.hosts})
    if unknown:
        shown = escape(", ".join(unknown), 200)
        issues.append(
            Issue("preflight.host", "unknown_host", "rows of a host that the record does not name", None, shown)
        )
    if issues:
        raise VerificationError(
            *(Issue(f"{held.path}: {i.path}", i.code, i.message, i.expected, i.got) for i in issues)
        )


def check_runs(
    contents: Contents, signers: dict[str, tuple[VerifiedSigner, ...]]
) -> tuple[tuple[VerifiedRun, ...], str]:
    """Return the run manifests, and one sentence on what they list and is not here (which then is inconclusive)."""
    runs = []
    here = {held.digest for held in contents.records}
    missing = 0
    for held in contents.runs:
        assert isinstance(held.document, RunManifest)
        runs.append(VerifiedRun(held.document, held.digest, signers[held.path]))
        missing += sum(trial.record not in here for trial in held.document.trials)
    return tuple(runs), f"{len(runs)} run manifest(s); {missing} listed trial(s) missing"
