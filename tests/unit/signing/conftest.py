from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from moeplan.signing.keys import PrivateKey, load_private_key

TEST_KEY = Path(__file__).resolve().parents[2] / "data/published-test-key.pem"


@pytest.fixture
def test_key() -> PrivateKey:
    return load_private_key(TEST_KEY.read_bytes())


@pytest.fixture(params=["p256", "p384", "ed25519"])
def any_key(request: pytest.FixtureRequest) -> PrivateKey:
    """One key of each kind, from fixed secrets."""
    if request.param == "ed25519":
        return ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    curve = ec.SECP256R1() if request.param == "p256" else ec.SECP384R1()
    return ec.derive_private_key(0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721, curve)
