"""DSSE: the published pre-authentication vectors, and the protocol's own signed example."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import VerificationError
from moeplan.signing.dsse import pae
from moeplan.signing.keys import verify_signature

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
VECTORS = SHARED / "vectors/dsse/pae_vectors.json"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not VECTORS.is_file(), reason="the shared DSSE vectors are not beside the repository"),
]


@pytest.fixture
def vectors() -> Any:
    return json.loads(VECTORS.read_text("utf-8"))


def test_every_vector(vectors: Any) -> None:
    assert len(vectors["vectors"]) >= 2
    for row in vectors["vectors"]:
        payload = row["payload_utf8"].encode("utf-8")
        assert pae(row["payloadType"], payload) == row["pae_utf8"].encode("utf-8")


def test_the_protocol_example_verifies_in_der_and_is_refused_raw(vectors: Any) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    example = vectors["es256_example"]
    public = ec.EllipticCurvePublicNumbers(int(example["x"]), int(example["y"]), ec.SECP256R1()).public_key()
    envelope = example["envelope"]
    message = pae(envelope["payloadType"], base64.b64decode(envelope["payload"]))
    raw = base64.b64decode(envelope["signatures"][0]["sig"])
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    verify_signature(public, utils.encode_dss_signature(r, min(s, order - s)), message)
    with pytest.raises(VerificationError) as caught:
        verify_signature(public, raw, message)
    assert caught.value.issues[0].code == "signature_invalid"
