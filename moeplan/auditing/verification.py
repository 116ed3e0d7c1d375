"""Verification of an evidence bundle: numbered, strict, offline, fails closed.

No digest is trusted before the signature over it, and nothing else before its digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from moeplan.attest.attestations import Attestation, OpenedAttestation, open_attestations, verify_attestations
from moeplan.attest.trust import TrustedKeys, trusted_keys
from moeplan.auditing.contents import Contents, read_contents
from moeplan.auditing.rebuild import check_plan
from moeplan.auditing.records import check_records, check_runs, check_signatures, load_tables
from moeplan.auditing.steps import Steps
from moeplan.bundle.inventory import check_inventory, load_inventory, no_inventory
from moeplan.bundle.source import ATTESTATIONS, BUNDLE_FILE, BundleSource, open_source
from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, VerificationError, escape
from moeplan.model.attestation import IndexPredicate
from moeplan.model.evidence import EvidenceRecord
from moeplan.model.inventory import EvidenceBundle
from moeplan.model.plan import Plan
from moeplan.model.policy import Policy
from moeplan.model.registry import Registry
from moeplan.model.run_manifest import RunManifest
from moeplan.model.verified import EvidenceSet, Inspection

__all__ = ["VerifiedBundle", "inspect_evidence_bundle", "load_evidence_bundle", "verify_evidence_bundle"]

_MAX_ATTESTATION_BYTES = 64 << 20
_MAX_ATTESTATIONS_BYTES = 256 << 20
"""Most bytes of all attestations: they are held in memory before any signature is known to be good."""


@attrs.frozen(eq=False)
class VerifiedBundle:
    """A bundle that passed every step under one policy.

    Attributes:
        plan: the plan, rebuilt and found equal.
        evidence: what ``evaluate`` takes.
        attestations: every attestation a key of the policy made.
        digest: the digest of ``bundle.json``.
    """

    plan: Plan
    evidence: EvidenceSet
    attestations: tuple[Attestation, ...]
    digest: str


def load_evidence_bundle(path: Path | str, policy: Policy, *, registries: Sequence[Registry] = ()) -> VerifiedBundle:
    """Return a verified evidence bundle.

    Args:
        path: a bundle directory or its tar form, read in place.
        policy: the auditor's policy.
        registries: registries of the auditor's own beside the built-in ones.

    Raises:
        VerificationError: the bundle or a signature is at fault.
        InputError: the policy is at fault.
        StoreError: the bundle cannot be read.
    """
    return verify_evidence_bundle(path, policy, Steps(), registries=registries)


def verify_evidence_bundle(
    path: Path | str, policy: Policy, steps: Steps, *, registries: Sequence[Registry] = ()
) -> VerifiedBundle:
    """Verify a bundle and record each numbered step in ``steps``; raises as :func:`load_evidence_bundle`."""
    keys = steps.run("policy", lambda: _policy(policy), own_input=True)
    with steps.run("container", lambda: _container(path)) as source:
        opened = steps.run("attestation_form", lambda: _forms(source))
        attestations = steps.run("signatures", lambda: _signatures(opened, keys))
        steps.run("index", lambda: _index(source, opened, attestations))
        inventory = steps.run("inventory", lambda: _inventory(source))
        contents = steps.run("documents", lambda: _documents(source, inventory))
        steps.run("plan", lambda: (None, check_plan(contents, policy, registries)))
        steps.run("records", lambda: (None, check_records(contents, inventory)))
        signers = steps.run(
            "record_signatures",
            lambda: (check_signatures(contents, attestations), "every record and run manifest is signed by a runner"),
        )
        records = steps.run(
            "tables", lambda: (load_tables(source, contents, signers), "closed schemas; rows agree with their records")
        )
        runs = steps.run("runs", lambda: check_runs(contents, signers))
        listed = tuple(
            file.digest for file in inventory.files if file.role in ("checkpoint", "evidence", "run_manifest")
        )
        evidence = EvidenceSet(contents.checkpoint, contents.checkpoint_digest, records, runs, listed)
        digest = digest_bytes(source.read(BUNDLE_FILE))
    return VerifiedBundle(contents.plan, evidence, attestations, digest)


def inspect_evidence_bundle(path: Path | str) -> Inspection:
    """Return what a bundle says of itself, with no signature looked at. Claims only: ``evaluate`` refuses the result.

    Raises:
        VerificationError, InputError, StoreError: the bundle is malformed or cannot be read.
    """
    with open_source(path) as source:
        inventory, _ = load_inventory(source)
        check_inventory(source, inventory)
        contents = read_contents(source, inventory)
    records = tuple(held.document for held in contents.records if isinstance(held.document, EvidenceRecord))
    runs = tuple(held.document for held in contents.runs if isinstance(held.document, RunManifest))
    return Inspection(contents.plan, inventory, contents.checkpoint, records, runs)


def _policy(policy: Policy) -> tuple[TrustedKeys, str]:
    keys = trusted_keys(policy)
    if not keys.keys:
        raise InputError(
            Issue(
                "policy: $.signers",
                "no_signers",
                "the policy trusts nobody",
                "at least one signer",
                next="moeplan policy init --trust-key k.pub",
            )
        )
    detail = f"{len(keys.keys)} trusted key(s)"
    return keys, detail + ("; the PUBLISHED TEST KEY is among them" if keys.uses_test_key else "")


def _container(path: Path | str) -> tuple[BundleSource, str]:
    try:
        source = open_source(path)
    except VerificationError as error:
        error.source = escape(str(path), 400)
        raise
    return source, f"{len(source.paths())} regular files"


def _forms(source: BundleSource) -> tuple[tuple[OpenedAttestation, ...], str]:
    names = [path for path in source.paths() if path.startswith(ATTESTATIONS)]
    total = sum(source.size(name) for name in names)
    if total > _MAX_ATTESTATIONS_BYTES:
        expected = f"at most {_MAX_ATTESTATIONS_BYTES} bytes in all"
        raise VerificationError(
            Issue(ATTESTATIONS, "attestations_too_large", "too much to hold", expected, f"{total} bytes")
        )
    files = {path.removeprefix(ATTESTATIONS): source.read(path, _MAX_ATTESTATION_BYTES) for path in names}
    opened = open_attestations(files)
    return opened, f"{len(opened)} attestation(s) in canonical form"


def _signatures(opened: tuple[OpenedAttestation, ...], keys: TrustedKeys) -> tuple[tuple[Attestation, ...], str]:
    verified = verify_attestations(opened, keys)
    strangers = len(opened) - len(verified)
    return verified, f"{len(verified)} by trusted keys" + (
        f"; {strangers} by strangers, not counted" if strangers else ""
    )


def _index(
    source: BundleSource, opened: tuple[OpenedAttestation, ...], attestations: tuple[Attestation, ...]
) -> tuple[None, str]:
    if BUNDLE_FILE not in source.paths():
        raise no_inventory()
    digest = digest_bytes(source.read(BUNDLE_FILE))
    indexes = [item for item in attestations if item.kind == "index" and "packer" in item.signer.roles]
    if not indexes:
        raise VerificationError(
            Issue(
                "attestations/",
                "index_not_signed",
                "no trusted packer signed this bundle's index",
                "an index attestation",
                next="have the packer sign it with 'moeplan attest', or name the packer in the policy",
            )
        )
    present = {item.name: item.sealed.payload_digest for item in opened}
    for item in indexes:
        at = f"attestations/{item.name}"
        if not (len(item.statement.subject) == 1 and item.is_about(BUNDLE_FILE, digest)):
            raise VerificationError(
                Issue(
                    at,
                    "index_subject",
                    "the signed index is not this bundle.json",
                    item.statement.subject[0].digest,
                    digest,
                )
            )
        assert isinstance(item.predicate, IndexPredicate)
        for ref in item.predicate.attestations:
            if present.get(ref.name) != ref.payload:
                raise VerificationError(
                    Issue(
                        f"attestations/{ref.name}",
                        "attestation_dropped",
                        "was there at packing and is not now",
                        ref.payload,
                    )
                )
    return None, f"bundle.json {digest} signed by {', '.join(sorted({item.signer.id for item in indexes}))}"


def _inventory(source: BundleSource) -> tuple[EvidenceBundle, str]:
    inventory, _ = load_inventory(source)
    check_inventory(source, inventory)
    return inventory, f"{len(inventory.files)} files, each with its size and digest; nothing extra, nothing missing"


def _documents(source: BundleSource, inventory: EvidenceBundle) -> tuple[Contents, str]:
    contents = read_contents(source, inventory)
    return contents, "strict JSON, schema, model and canonical form hold for each"
