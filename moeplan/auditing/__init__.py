"""The auditor's path: verify, rebuild the inputs, evaluate, compare with the signed verdict. Runs no plugin."""

from __future__ import annotations

from moeplan.auditing.audit import Audit, Reproduction, audit
from moeplan.auditing.verification import (
    VerifiedBundle,
    inspect_evidence_bundle,
    load_evidence_bundle,
    verify_evidence_bundle,
)

__all__ = [
    "Audit",
    "Reproduction",
    "VerifiedBundle",
    "audit",
    "inspect_evidence_bundle",
    "load_evidence_bundle",
    "verify_evidence_bundle",
]
