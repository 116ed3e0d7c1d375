"""The statements of a bundle, as bytes to be signed: pure, the same inputs give the same bytes."""

from __future__ import annotations

from collections.abc import Iterable

from moeplan.digest import digest_bytes
from moeplan.model.attestation import AttestationRef, EvidencePredicate, IndexPredicate, VerdictPredicate
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.run_manifest import RunManifest
from moeplan.model.verdict import Verdict
from moeplan.signing.statement import EVIDENCE_PREDICATE, INDEX_PREDICATE, VERDICT_PREDICATE, make_statement
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import identify

__all__ = ["evidence_statement", "index_statement", "verdict_statement"]


def evidence_statement(path: str, data: bytes, document: EvidenceRecord | RunManifest) -> bytes:
    """Return the statement of who measured: the subject is the file as it lies."""
    deployment = document.deployment if isinstance(document, RunManifest) else identify(document.deployment)
    predicate = EvidencePredicate(document.kind, document.plan, deployment)
    return make_statement([(path, digest_bytes(data))], EVIDENCE_PREDICATE, unstructure(predicate))


def index_statement(inventory: bytes, attestations: Iterable[tuple[str, str]]) -> bytes:
    """Return the statement of who packed: the subject is ``bundle.json`` as it lies.

    Args:
        inventory: the bytes of ``bundle.json``.
        attestations: file name and payload digest of each evidence and verdict attestation present.
    """
    refs = tuple(AttestationRef(name, payload) for name, payload in sorted(attestations))
    return make_statement(
        [("bundle.json", digest_bytes(inventory))], INDEX_PREDICATE, unstructure(IndexPredicate(refs))
    )


def verdict_statement(verdict: Verdict) -> bytes:
    """Return the statement of who judged: the subjects are the plan, the checkpoint root and the runtime identities."""
    subjects = [("plan.json", verdict.plan)]
    if verdict.subject.checkpoint_root is not None:
        subjects.append(("checkpoint", verdict.subject.checkpoint_root))
    subjects += [(f"runtime-{number}", digest) for number, digest in enumerate(verdict.subject.runtimes, 1)]
    return make_statement(subjects, VERDICT_PREDICATE, unstructure(VerdictPredicate(verdict)))
