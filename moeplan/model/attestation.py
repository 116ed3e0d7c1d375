"""What each attestation says: the predicates of the in-toto statements in an evidence bundle."""

from __future__ import annotations

import attrs

from moeplan.model.fields import choice, digest, nested, sequence, text
from moeplan.model.verdict import Verdict

__all__ = [
    "AttestationRef",
    "EvidencePredicate",
    "IndexPredicate",
    "VerdictPredicate",
]


@attrs.frozen
class EvidencePredicate:
    """I measured this: one record or run manifest, for one plan, on one deployment."""

    document: str = choice("evidence_record", "run_manifest")
    plan: str = digest()
    deployment: str = digest()


@attrs.frozen
class AttestationRef:
    """An attestation present when the bundle was packed, by file name and payload digest."""

    name: str = text(pattern=r"^(evidence|verdict)-[0-9a-f]{16}-[1-9][0-9]{0,3}\.sigstore\.json$", max_length=64)
    payload: str = digest()


@attrs.frozen
class IndexPredicate:
    """I packed this: the inventory is the statement's subject; these attestations were there."""

    attestations: tuple[AttestationRef, ...] = sequence(AttestationRef)


@attrs.frozen
class VerdictPredicate:
    """I judged this: the full verdict, recomputable from the bundle, the policy and the instant it names."""

    verdict: Verdict = nested(Verdict)
