"""Attestation files: who said what, and each way in which a file is refused or does not count."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from moeplan.attest.attestations import Attestation, open_attestations, signers_of, verify_attestations
from moeplan.attest.statements import evidence_statement, index_statement, verdict_statement
from moeplan.attest.trust import TrustedKeys, trusted_keys
from moeplan.errors import VerificationError
from moeplan.model.attestation import EvidencePredicate, IndexPredicate, VerdictPredicate
from moeplan.signing.dsse import pae
from moeplan.signing.keys import PrivateKey, fingerprint, public_key_of, sign
from moeplan.signing.sigstore_bundle import attestation_name, seal
from moeplan.wire.documents import dump_document
from tests.build import build_plan, digest_of, make_trial, ready_case
from tests.unit.attest.conftest import policy_of, signer_of

PATH = "evidence/run-1-trial-1.json"
RECORD = make_trial(build_plan()).record
DATA = dump_document(RECORD)
DIGEST = "sha256:" + hashlib.sha256(DATA).hexdigest()
STATEMENT = evidence_statement(PATH, DATA, RECORD)


def file_of(key: PrivateKey, payload: bytes, kind: str = "evidence", number: int = 1) -> dict[str, bytes]:
    return {attestation_name(kind, payload, number): seal(key, payload)}


def trusting(*keys: PrivateKey) -> TrustedKeys:
    return trusted_keys(policy_of(*(signer_of(f"signer-{number}", key) for number, key in enumerate(keys))))


def verified(files: dict[str, bytes], *keys: PrivateKey) -> tuple[Attestation, ...]:
    return verify_attestations(open_attestations(files), trusting(*keys))


def refused(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(VerificationError) as caught:
        call()
    assert all(issue.path.startswith("attestations/") for issue in caught.value.issues)
    return caught.value.issues[0].code, caught.value.issues[0].path


def reworded(payload: bytes, change: Callable[[Any], object]) -> bytes:
    """Return a statement with its JSON changed, in canonical form by another implementation (all of it is ASCII)."""
    value = json.loads(payload)
    change(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def resealed(key: PrivateKey, payload: bytes, hint: bytes | None = None, signed: bytes | None = None) -> bytes:
    """Seal by hand: any hint, and a signature over any payload."""
    own = bytes.fromhex(fingerprint(public_key_of(key)).removeprefix("sha256:"))
    signature = sign(key, pae("application/vnd.in-toto+json", payload if signed is None else signed))
    value = {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": base64.b64encode(own if hint is None else hint).decode()}},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": "application/vnd.in-toto+json",
            "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
        },
    }
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


class TestVerify:
    def test_evidence_by_a_trusted_key(self, key: PrivateKey) -> None:
        (found,) = verified(file_of(key, STATEMENT), key)
        assert found.kind == "evidence"
        assert found.signer.fingerprint == fingerprint(public_key_of(key))
        assert found.payload == STATEMENT
        assert found.payload_digest == "sha256:" + hashlib.sha256(STATEMENT).hexdigest()
        assert isinstance(found.predicate, EvidencePredicate)
        assert (found.predicate.document, found.predicate.plan) == ("evidence_record", RECORD.plan)
        assert found.is_about(PATH, DIGEST)
        assert not found.is_about(PATH, digest_of("another file"))
        assert not found.is_about("evidence/other.json", DIGEST)

    def test_index_and_verdict(self, key: PrivateKey) -> None:
        index = index_statement(b"{}\n", [("evidence-0123456789abcdef-1.sigstore.json", digest_of("payload"))])
        verdict = verdict_statement(ready_case().judge())
        files = file_of(key, index, "index") | file_of(key, verdict, "verdict")
        by_kind = {item.kind: item.predicate for item in verified(files, key)}
        assert isinstance(by_kind["index"], IndexPredicate)
        assert isinstance(by_kind["verdict"], VerdictPredicate)
        assert by_kind["verdict"].verdict == ready_case().judge()

    def test_a_strangers_signature_counts_for_nothing(self, key: PrivateKey, other_key: PrivateKey) -> None:
        files = file_of(key, STATEMENT) | file_of(other_key, STATEMENT, number=2)
        assert len(verified(files, key)) == 1
        assert verified(files) == ()
        assert len(verified(files, key, other_key)) == 2

    def test_what_a_stranger_says_need_not_even_be_a_statement(self, key: PrivateKey, other_key: PrivateKey) -> None:
        assert verified(file_of(other_key, b"no statement at all"), key) == ()

    def test_files_come_in_name_order(self, key: PrivateKey) -> None:
        files = [
            file_of(key, reworded(STATEMENT, lambda v, n=n: v["subject"][0].update(name=f"evidence/{n}.json")))  # type: ignore[misc]
            for n in range(5)
        ]
        names = sorted(name for one in files for name in one)
        merged = {name: data for one in reversed(files) for name, data in one.items()}
        assert [item.name for item in verified(merged, key)] == names


class TestForm:
    def test_a_name_of_another_form(self, key: PrivateKey) -> None:
        (data,) = file_of(key, STATEMENT).values()
        for name in ("evidence.json", "evidence-0-1.sigstore.json", "../evidence-0123456789abcdef-1.sigstore.json"):
            assert refused(lambda name=name: open_attestations({name: data}))[0] == "attestation_name"  # type: ignore[misc]

    def test_a_kind_this_release_does_not_verify(self, key: PrivateKey) -> None:
        assert refused(lambda: open_attestations(file_of(key, STATEMENT, "runlog")))[0] == "attestation_kind"

    def test_the_name_of_another_payload(self, key: PrivateKey) -> None:
        name = attestation_name("evidence", b"another payload", 1)
        assert refused(lambda: open_attestations({name: seal(key, STATEMENT)})) == (
            "attestation_name",
            f"attestations/{name}",
        )

    def test_a_file_that_is_no_attestation(self) -> None:
        name = attestation_name("evidence", STATEMENT, 1)
        for data in (b"", b"{}\n", b"\xff", b'{"a":1,"a":2}\n'):
            assert refused(lambda data=data: open_attestations({name: data}))[0] == "attestation_malformed"  # type: ignore[misc]

    def test_another_spelling_of_the_same_file(self, key: PrivateKey) -> None:
        ((name, data),) = file_of(key, STATEMENT).items()
        assert refused(lambda: open_attestations({name: data.rstrip(b"\n")}))[0] == "attestation_not_canonical"


class TestSignature:
    def test_a_tampered_payload_under_a_trusted_hint(self, key: PrivateKey) -> None:
        tampered = STATEMENT.replace(b"trial-1", b"trial-2")
        name = attestation_name("evidence", tampered, 1)
        files = {name: resealed(key, tampered, signed=STATEMENT)}
        assert refused(lambda: verified(files, key))[0] == "signature_invalid"

    def test_the_hand_made_seal_is_the_real_one(self, key: PrivateKey) -> None:
        assert resealed(key, STATEMENT) == seal(key, STATEMENT)

    def test_a_trusted_signature_under_a_foreign_hint(self, key: PrivateKey, other_key: PrivateKey) -> None:
        name = attestation_name("evidence", STATEMENT, 1)
        stranger = bytes.fromhex(fingerprint(public_key_of(other_key)).removeprefix("sha256:"))
        for hint in (bytes(32), stranger):
            files = {name: resealed(key, STATEMENT, hint=hint)}
            assert refused(lambda files=files: verified(files, key)) == ("key_hint", f"attestations/{name}")  # type: ignore[misc]

    def test_a_trusted_signature_under_another_trusted_hint(self, key: PrivateKey, other_key: PrivateKey) -> None:
        other = bytes.fromhex(fingerprint(public_key_of(other_key)).removeprefix("sha256:"))
        files = {attestation_name("evidence", STATEMENT, 1): resealed(key, STATEMENT, hint=other)}
        assert refused(lambda: verified(files, key, other_key))[0] == "signature_invalid"


class TestStatement:
    def code(self, key: PrivateKey, payload: bytes, kind: str = "evidence") -> tuple[str, str]:
        return refused(lambda: verified(file_of(key, payload, kind), key))

    def test_a_predicate_of_another_kind(self, key: PrivateKey) -> None:
        assert self.code(key, STATEMENT, "index")[0] == "predicate_type"

    def test_a_payload_that_is_no_statement(self, key: PrivateKey) -> None:
        for payload in (b"", b"[]", b"{}", b"\xff", reworded(STATEMENT, lambda v: v.update(extra=1))):
            assert self.code(key, payload)[0] == "statement_malformed"

    def test_a_statement_in_another_spelling(self, key: PrivateKey) -> None:
        assert self.code(key, STATEMENT + b"\n")[0] == "statement_not_canonical"

    @pytest.mark.parametrize(
        ("change", "at"),
        [
            (lambda v: v["predicate"].update(extra=1), "$.predicate.extra"),
            (lambda v: v["predicate"].pop("plan"), "$.predicate.plan"),
            (lambda v: v["predicate"].update(plan="sha256:00"), "$.predicate.plan"),
            (lambda v: v["predicate"].update(document="policy"), "$.predicate.document"),
            (lambda v: v["predicate"].update(document=True), "$.predicate.document"),
            (lambda v: v["predicate"].update(deployment=None), "$.predicate.deployment"),
        ],
    )
    def test_a_malformed_predicate_is_named_with_its_file(
        self, key: PrivateKey, change: Callable[[Any], object], at: str
    ) -> None:
        payload = reworded(STATEMENT, change)
        code, path = self.code(key, payload)
        assert code == "predicate_malformed"
        assert path == f"attestations/{attestation_name('evidence', payload, 1)}: {at}"

    @pytest.mark.parametrize("number", ["1.5", "1.0", "1e3", "NaN", "9007199254740992"])
    def test_a_number_that_is_no_exact_integer(self, key: PrivateKey, number: str) -> None:
        payload = reworded(STATEMENT, lambda v: v["predicate"].update(plan="NUMBER"))
        assert self.code(key, payload.replace(b'"NUMBER"', number.encode()))[0] == "statement_malformed"


class TestSignersOf:
    def test_each_signer_once_in_order_of_fingerprint(self, key: PrivateKey, other_key: PrivateKey) -> None:
        files = {
            **file_of(key, STATEMENT, number=1),
            **file_of(other_key, STATEMENT, number=2),
            **file_of(key, STATEMENT, number=3),
        }
        found = signers_of(verified(files, key, other_key), PATH, DIGEST)
        prints = sorted(fingerprint(public_key_of(one)) for one in (key, other_key))
        assert [signer.fingerprint for signer in found] == prints

    def test_nobody_signed_another_file(self, key: PrivateKey) -> None:
        attestations = verified(file_of(key, STATEMENT), key)
        assert signers_of(attestations, PATH, digest_of("other bytes")) == ()
        assert signers_of(attestations, "evidence/other.json", DIGEST) == ()

    def test_an_index_is_no_evidence_of_what_it_names(self, key: PrivateKey) -> None:
        index = index_statement(DATA, [])
        attestations = verified(file_of(key, index, "index"), key)
        assert attestations[0].is_about("bundle.json", DIGEST)
        assert signers_of(attestations, "bundle.json", DIGEST) == ()
