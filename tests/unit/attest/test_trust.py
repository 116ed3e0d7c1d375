"""The keys a policy trusts, one negative case a rule."""

from __future__ import annotations

import hashlib
import subprocess

import attrs
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from moeplan.attest.trust import trusted_keys
from moeplan.errors import InputError
from moeplan.model.policy import Signer
from moeplan.signing.keys import PrivateKey, public_key_of
from moeplan.signing.test_key import TEST_KEY_FINGERPRINTS
from tests.build import TEST_KEY_PUBLIC, digest_of
from tests.unit.attest.conftest import policy_of, signer_of


def faults(*signers: Signer, test_keys: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        trusted_keys(policy_of(*signers, test_keys=test_keys))
    assert caught.value.source == "policy"
    return [(issue.path, issue.code) for issue in caught.value.issues]


def test_two_signers_each_with_their_own_roles(key: PrivateKey, other_key: PrivateKey) -> None:
    found = trusted_keys(policy_of(signer_of("lab", key, "runner"), signer_of("desk", other_key, "packer", "verifier")))
    names = {}
    for private in (key, other_key):
        der = public_key_of(private).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        names[private] = "sha256:" + hashlib.sha256(der).hexdigest()
    assert set(found.keys) == set(found.signers) == set(names.values())
    assert [found.signers[names[private]].roles for private in (key, other_key)] == [
        ("runner",),
        ("packer", "verifier"),
    ]
    assert [found.signers[names[private]].id for private in (key, other_key)] == ["lab", "desk"]
    assert not found.uses_test_key


def test_nobody_is_trusted_by_an_empty_policy() -> None:
    found = trusted_keys(policy_of())
    assert (found.keys, found.signers, found.uses_test_key) == ({}, {}, False)


def test_a_fingerprint_of_another_key_is_refused(key: PrivateKey, other_key: PrivateKey) -> None:
    mine = signer_of("lab", key)
    wrong = attrs.evolve(mine, fingerprint=signer_of("desk", other_key).fingerprint)
    assert faults(wrong) == [("$.signers[0].fingerprint", "fingerprint_mismatch")]


def test_a_key_that_is_none_is_refused_where_it_stands(key: PrivateKey) -> None:
    broken = attrs.evolve(
        signer_of("lab", key), public_key="-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    )
    assert faults(signer_of("first", key), broken) == [("$.signers[1].publicKey", "key_malformed")]


def test_every_fault_is_named(key: PrivateKey, other_key: PrivateKey) -> None:
    one = attrs.evolve(signer_of("one", key), fingerprint=digest_of("one"))
    two = attrs.evolve(signer_of("two", other_key), fingerprint=digest_of("two"))
    assert [path for path, _ in faults(one, two)] == ["$.signers[0].fingerprint", "$.signers[1].fingerprint"]


def test_the_published_test_key_needs_the_policys_word(test_key: PrivateKey) -> None:
    signer = signer_of("tests", test_key)
    assert faults(signer) == [("$.signers[0].publicKey", "test_key")]
    assert trusted_keys(policy_of(signer, test_keys=True)).uses_test_key


def test_the_word_alone_makes_no_key_a_test_key(key: PrivateKey) -> None:
    assert not trusted_keys(policy_of(signer_of("lab", key), test_keys=True)).uses_test_key


def test_the_test_key_cannot_hide_behind_another_fingerprint(test_key: PrivateKey, key: PrivateKey) -> None:
    disguised = attrs.evolve(signer_of("tests", test_key), fingerprint=signer_of("lab", key).fingerprint)
    assert faults(disguised) == [
        ("$.signers[0].fingerprint", "fingerprint_mismatch"),
        ("$.signers[0].publicKey", "test_key"),
    ]


def test_the_listed_fingerprint_is_openssls_of_the_published_key() -> None:
    try:
        der = subprocess.run(
            ["openssl", "pkey", "-pubin", "-in", str(TEST_KEY_PUBLIC), "-outform", "DER"],
            capture_output=True,
            check=True,
        ).stdout
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    assert ("sha256:" + hashlib.sha256(der).hexdigest(),) == TEST_KEY_FINGERPRINTS
