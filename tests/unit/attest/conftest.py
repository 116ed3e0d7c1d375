"""Keys from fixed secrets, and attestation files made with them."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from moeplan.model.policy import Policy, Signer
from moeplan.signing.keys import PrivateKey, fingerprint, load_private_key, public_key_of, public_pem
from tests.build import TEST_KEY


def signer_of(name: str, key: PrivateKey, *roles: str) -> Signer:
    """Return the policy's entry for a key."""
    public = public_key_of(key)
    return Signer(name, roles or ("runner", "packer"), fingerprint(public), public_pem(public))


def policy_of(*signers: Signer, test_keys: bool = False) -> Policy:
    """Return a policy that only says whom it trusts."""
    return Policy(expects=None, signers=signers, least_binding=(), waivers=(), test_keys=test_keys)


@pytest.fixture
def key() -> PrivateKey:
    return ec.derive_private_key(0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721, ec.SECP256R1())


@pytest.fixture
def other_key() -> PrivateKey:
    return ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


@pytest.fixture
def test_key() -> PrivateKey:
    return load_private_key(TEST_KEY.read_bytes())
