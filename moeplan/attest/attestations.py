"""Attestation files of a bundle: strict form, signature, statement, predicate; in that order, each failing closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from moeplan.attest.trust import TrustedKeys
from moeplan.digest import hex_of
from moeplan.errors import InputError, Issue, VerificationError
from moeplan.model.attestation import EvidencePredicate, IndexPredicate, VerdictPredicate
from moeplan.model.verified import VerifiedSigner
from moeplan.signing.sigstore_bundle import AttestationName, Sealed, open_sealed, parse_attestation_name, verify_sealed
from moeplan.signing.statement import (
    EVIDENCE_PREDICATE,
    INDEX_PREDICATE,
    VERDICT_PREDICATE,
    Statement,
    parse_statement,
)
from moeplan.wire.converter import structure

__all__ = ["Attestation", "OpenedAttestation", "open_attestations", "signers_of", "verify_attestations"]

Predicate = EvidencePredicate | IndexPredicate | VerdictPredicate

_KINDS: dict[str, tuple[str, type[EvidencePredicate] | type[IndexPredicate] | type[VerdictPredicate]]] = {
    "evidence": (EVIDENCE_PREDICATE, EvidencePredicate),
    "index": (INDEX_PREDICATE, IndexPredicate),
    "verdict": (VERDICT_PREDICATE, VerdictPredicate),
}
"""Predicate type and class of each kind of attestation that this release verifies."""


@attrs.frozen(eq=False)
class OpenedAttestation:
    """An attestation file whose form is right and whose signature is not yet looked at."""

    name: str
    kind: str
    sealed: Sealed


@attrs.frozen(eq=False)
class Attestation:
    """An attestation whose signature a trusted key made and whose statement and predicate are well formed."""

    name: str
    kind: str
    payload_digest: str
    payload: bytes
    signer: VerifiedSigner
    statement: Statement
    predicate: Predicate

    def is_about(self, name: str, digest: str) -> bool:
        """Return whether one of the statement's subjects has this name and digest."""
        return any(subject.name == name and subject.digest == digest for subject in self.statement.subject)


def open_attestations(files: Mapping[str, bytes]) -> tuple[OpenedAttestation, ...]:
    """Return the attestation files in name order, each in its one form and named for its payload.

    Args:
        files: file name (without directory) to bytes.

    Raises:
        VerificationError: a name or a form is not the one allowed.
    """
    opened = []
    for name in sorted(files):
        named = _parse_name(name)
        with _in_file(name):
            sealed = open_sealed(files[name])
        if named.kind not in _KINDS:
            raise _fault(name, "attestation_kind", "kind is not one this release verifies", ", ".join(_KINDS))
        if hex_of(sealed.payload_digest)[:16] != named.prefix:
            raise _fault(
                name, "attestation_name", "name is not that of the payload", "the payload's digest in the name"
            )
        opened.append(OpenedAttestation(name, named.kind, sealed))
    return tuple(opened)


def _parse_name(name: str) -> AttestationName:
    try:
        return parse_attestation_name(name)
    except VerificationError as error:
        issues = (attrs.evolve(issue, path=f"attestations/{issue.path}") for issue in error.issues)
        raise VerificationError(*issues) from None


def verify_attestations(opened: Iterable[OpenedAttestation], keys: TrustedKeys) -> tuple[Attestation, ...]:
    """Return those attestations that a trusted key signed. Signatures of strangers count for nothing and are left out.

    Raises:
        VerificationError: a signature by a trusted key's hint that does not verify, a trusted signature under a
            foreign hint, a wrong payload type, statement or predicate.
    """
    verified = []
    for item in opened:
        key = keys.keys.get(item.sealed.hint_fingerprint)
        if key is None:
            _refuse_disguised(item, keys)
            continue
        predicate_type, predicate = _KINDS[item.kind]
        with _in_file(item.name):
            verify_sealed(item.sealed, key)
            statement = parse_statement(item.sealed.payload, predicate_type)
        verified.append(
            Attestation(
                item.name,
                item.kind,
                item.sealed.payload_digest,
                item.sealed.payload,
                keys.signers[item.sealed.hint_fingerprint],
                statement,
                _predicate(item.name, statement.predicate, predicate),
            )
        )
    return tuple(verified)


def _refuse_disguised(item: OpenedAttestation, keys: TrustedKeys) -> None:
    """Refuse a trusted key's signature whose hint was altered: the hint is signed by nobody, so one form only."""
    for fingerprint, key in keys.keys.items():
        try:
            verify_sealed(attrs.evolve(item.sealed, hint_fingerprint=fingerprint), key)
        except VerificationError:
            continue
        raise _fault(item.name, "key_hint", "hint names another key than the one that signed", fingerprint)


def _predicate(name: str, value: Any, cls: type[Predicate]) -> Predicate:
    with _in_file(name, "predicate_malformed", "$.predicate"):
        return structure(value, cls)


@contextmanager
def _in_file(name: str, code: str | None = None, prefix: str = "$") -> Iterator[None]:
    """Turn a fault of an attestation's contents into the bundle's, naming the file."""
    try:
        yield
    except (InputError, VerificationError) as error:
        issues = [issue.under(f"attestations/{name}: {prefix}") for issue in error.issues]
        raise VerificationError(*(attrs.evolve(issue, code=code or issue.code) for issue in issues)) from None


def _fault(name: str, code: str, message: str, expected: str) -> VerificationError:
    return VerificationError(Issue(f"attestations/{name}", code, message, expected))


def signers_of(attestations: Iterable[Attestation], path: str, digest: str) -> tuple[VerifiedSigner, ...]:
    """Return who signed evidence attestations whose subject is this file with this digest, without repeats."""
    found = {
        item.signer.fingerprint: item.signer
        for item in attestations
        if item.kind == "evidence" and item.is_about(path, digest)
    }
    return tuple(found[fingerprint] for fingerprint in sorted(found))
