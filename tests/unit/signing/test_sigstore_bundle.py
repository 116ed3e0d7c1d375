"""The one form of a sealed attestation: built a second time by hand, and refused in every other form."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils

from moeplan.errors import InputError, VerificationError
from moeplan.signing.keys import PrivateKey, fingerprint, public_key_of, sign
from moeplan.signing.sigstore_bundle import (
    attestation_name,
    open_sealed,
    parse_attestation_name,
    seal,
    verify_sealed,
)

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
PAYLOAD = b'{"_type":"https://in-toto.io/Statement/v1"}'
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def rewrite(data: bytes, change: Callable[[Any], object]) -> bytes:
    """Return the bundle with its JSON changed, in canonical form by another implementation (all of it is ASCII)."""
    value = json.loads(data)
    change(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def refused(data: bytes) -> tuple[str, str]:
    with pytest.raises(VerificationError) as caught:
        open_sealed(data)
    return caught.value.issues[0].code, caught.value.issues[0].path


@pytest.fixture
def sealed_bytes(test_key: PrivateKey) -> bytes:
    return seal(test_key, PAYLOAD)


class TestSeal:
    def test_exact_bytes(self, any_key: PrivateKey) -> None:
        signature = b64(sign(any_key, b"DSSEv1 28 application/vnd.in-toto+json 43 " + PAYLOAD))
        hint = b64(bytes.fromhex(fingerprint(public_key_of(any_key)).removeprefix("sha256:")))
        assert seal(any_key, PAYLOAD).decode() == (
            f'{{"dsseEnvelope":{{"payload":"{b64(PAYLOAD)}","payloadType":"application/vnd.in-toto+json",'
            f'"signatures":[{{"keyid":"","sig":"{signature}"}}]}},'
            '"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json",'
            f'"verificationMaterial":{{"publicKey":{{"hint":"{hint}"}}}}}}\n'
        )

    def test_round_trip(self, any_key: PrivateKey) -> None:
        sealed = open_sealed(seal(any_key, PAYLOAD))
        assert sealed.payload == PAYLOAD
        assert sealed.payload_type == "application/vnd.in-toto+json"
        assert sealed.payload_digest == "sha256:" + hashlib.sha256(PAYLOAD).hexdigest()
        assert sealed.hint_fingerprint == fingerprint(public_key_of(any_key))
        verify_sealed(sealed, public_key_of(any_key))

    @pytest.mark.shared
    @pytest.mark.skipif(not SHARED.is_dir(), reason="the shared vectors are not beside the repository")
    def test_a_published_schema_of_sigstore_bundles_accepts_it(self, any_key: PrivateKey) -> None:
        from jsonschema import Draft202012Validator
        from referencing import Registry, Resource

        folder = SHARED / "vectors/oms-spec/schemas"
        schemas = [json.loads((folder / f"{name}.schema.json").read_text()) for name in ("bundle", "envelope")]
        registry: Registry[Any] = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in schemas)
        validator = Draft202012Validator(schemas[0], registry=registry)
        value = json.loads(seal(any_key, PAYLOAD))
        assert not list(validator.iter_errors(value))
        del value["dsseEnvelope"]["payloadType"]
        assert list(validator.iter_errors(value))


class TestVerify:
    def test_another_key_is_refused_by_its_hint(self, any_key: PrivateKey, sealed_bytes: bytes) -> None:
        with pytest.raises(VerificationError) as caught:
            verify_sealed(open_sealed(sealed_bytes), public_key_of(any_key))
        assert caught.value.issues[0].code == "key_hint"

    def test_a_forged_hint_is_refused_by_the_signature(self, any_key: PrivateKey, sealed_bytes: bytes) -> None:
        sealed = open_sealed(sealed_bytes)
        forged = attrs.evolve(sealed, hint_fingerprint=fingerprint(public_key_of(any_key)))
        with pytest.raises(VerificationError) as caught:
            verify_sealed(forged, public_key_of(any_key))
        assert caught.value.issues[0].code == "signature_invalid"

    def test_another_payload_is_refused(self, test_key: PrivateKey, sealed_bytes: bytes) -> None:
        altered = rewrite(sealed_bytes, lambda v: v["dsseEnvelope"].update(payload=b64(PAYLOAD + b" ")))
        with pytest.raises(VerificationError) as caught:
            verify_sealed(open_sealed(altered), public_key_of(test_key))
        assert caught.value.issues[0].code == "signature_invalid"

    def test_the_signature_covers_the_payload_type(self, test_key: PrivateKey, sealed_bytes: bytes) -> None:
        with pytest.raises(VerificationError) as caught:
            verify_sealed(attrs.evolve(open_sealed(sealed_bytes), payload_type="text/plain"), public_key_of(test_key))
        assert caught.value.issues[0].code == "signature_invalid"

    def test_the_high_s_twin_is_refused(self, test_key: PrivateKey, sealed_bytes: bytes) -> None:
        assert isinstance(test_key, ec.EllipticCurvePrivateKey)
        r, s = utils.decode_dss_signature(open_sealed(sealed_bytes).signature)
        twin = b64(utils.encode_dss_signature(r, ORDER - s))
        altered = rewrite(sealed_bytes, lambda v: v["dsseEnvelope"]["signatures"][0].update(sig=twin))
        with pytest.raises(VerificationError) as caught:
            verify_sealed(open_sealed(altered), public_key_of(test_key))
        assert caught.value.issues[0].code == "signature_invalid"

    def test_any_byte_changed_anywhere_is_refused(self, test_key: PrivateKey, sealed_bytes: bytes) -> None:
        rng = random.Random(8785)
        for position in range(len(sealed_bytes)):
            altered = bytearray(sealed_bytes)
            altered[position] ^= rng.randrange(1, 256)
            with pytest.raises(VerificationError):
                verify_sealed(open_sealed(bytes(altered)), public_key_of(test_key))

    def test_any_byte_left_out_is_refused(self, test_key: PrivateKey, sealed_bytes: bytes) -> None:
        for position in range(len(sealed_bytes)):
            altered = sealed_bytes[:position] + sealed_bytes[position + 1 :]
            with pytest.raises(VerificationError):
                verify_sealed(open_sealed(altered), public_key_of(test_key))


HINT = "$.verificationMaterial.publicKey.hint"
SIGNATURES = "$.dsseEnvelope.signatures"
MALFORMED: list[tuple[str, Callable[[Any], object]]] = [
    ("$", lambda v: v.update(extra=1)),
    ("$", lambda v: v.pop("mediaType")),
    ("$.mediaType", lambda v: v.update(mediaType="application/vnd.dev.sigstore.bundle+json;version=0.2")),
    ("$.mediaType", lambda v: v.update(mediaType=None)),
    ("$.verificationMaterial", lambda v: v.update(verificationMaterial=[])),
    ("$.verificationMaterial", lambda v: v["verificationMaterial"].update(tlogEntries=[])),
    ("$.verificationMaterial", lambda v: v.update(verificationMaterial={"certificate": {"rawBytes": ""}})),
    ("$.verificationMaterial.publicKey", lambda v: v["verificationMaterial"].update(publicKey={})),
    (HINT, lambda v: v["verificationMaterial"]["publicKey"].update(hint=b64(bytes(31)))),
    (HINT, lambda v: v["verificationMaterial"]["publicKey"].update(hint="ab" * 32)),
    (HINT, lambda v: v["verificationMaterial"]["publicKey"].update(hint=7)),
    ("$.dsseEnvelope", lambda v: v.pop("dsseEnvelope") and v.update(dsseEnvelope=None)),
    ("$.dsseEnvelope", lambda v: v["dsseEnvelope"].pop("payload")),
    ("$.dsseEnvelope.payload", lambda v: v["dsseEnvelope"].update(payload="e30")),
    ("$.dsseEnvelope.payload", lambda v: v["dsseEnvelope"].update(payload="e3-_")),
    ("$.dsseEnvelope.payload", lambda v: v["dsseEnvelope"].update(payload="e30\u00e9")),
    ("$.dsseEnvelope.payload", lambda v: v["dsseEnvelope"].update(payload="e30=\n")),
    (SIGNATURES, lambda v: v["dsseEnvelope"].update(signatures=[])),
    (SIGNATURES, lambda v: v["dsseEnvelope"].update(signatures=v["dsseEnvelope"]["signatures"] * 2)),
    (SIGNATURES, lambda v: v["dsseEnvelope"].update(signatures={})),
    (SIGNATURES + "[0]", lambda v: v["dsseEnvelope"].update(signatures=["x"])),
    (SIGNATURES + "[0]", lambda v: v["dsseEnvelope"]["signatures"][0].pop("keyid")),
    (SIGNATURES + "[0].sig", lambda v: v["dsseEnvelope"]["signatures"][0].update(sig="*")),
]


class TestForm:
    @pytest.mark.parametrize(("path", "change"), MALFORMED)
    def test_other_shapes_refused(self, sealed_bytes: bytes, path: str, change: Callable[[Any], object]) -> None:
        assert refused(rewrite(sealed_bytes, change)) == ("attestation_malformed", path)

    @pytest.mark.parametrize("data", [b"", b"{}\n", b"[]\n", b"null\n", b"\xff", b'{"a":1,"a":1}\n', b"\xef\xbb\xbf{}"])
    def test_other_documents_refused(self, data: bytes) -> None:
        assert refused(data)[0] == "attestation_malformed"

    def test_other_layouts_refused(self, sealed_bytes: bytes) -> None:
        value = json.loads(sealed_bytes)
        unsorted = json.dumps(dict(reversed(value.items())), separators=(",", ":")).encode() + b"\n"
        escaped = sealed_bytes.replace(b'"keyid"', b'"\\u006beyid"')
        for data in (sealed_bytes[:-1], sealed_bytes + b"\n", b" " + sealed_bytes, unsorted, escaped):
            assert data != sealed_bytes
            assert refused(data)[0] == "attestation_not_canonical"

    def test_another_payload_type_refused(self, sealed_bytes: bytes) -> None:
        altered = rewrite(sealed_bytes, lambda v: v["dsseEnvelope"].update(payloadType="text/plain"))
        assert refused(altered) == ("payload_type", "$.dsseEnvelope.payloadType")

    def test_a_keyid_refused(self, sealed_bytes: bytes) -> None:
        altered = rewrite(sealed_bytes, lambda v: v["dsseEnvelope"]["signatures"][0].update(keyid="me"))
        assert refused(altered) == ("attestation_not_canonical", SIGNATURES + "[0].keyid")

    def test_spare_base64_bits_refused(self, sealed_bytes: bytes) -> None:
        spare = base64.b64encode(PAYLOAD).decode()
        assert spare.endswith("fQ==")
        other = spare.removesuffix("fQ==") + "fR=="
        assert base64.b64decode(other) == PAYLOAD
        altered = rewrite(sealed_bytes, lambda v: v["dsseEnvelope"].update(payload=other))
        assert refused(altered) == ("attestation_not_canonical", "$.dsseEnvelope.payload")

    @pytest.mark.shared
    @pytest.mark.skipif(not SHARED.is_dir(), reason="the shared vectors are not beside the repository")
    @pytest.mark.parametrize("name", ["key", "certificate", "sigstore"])
    def test_foreign_bundles_refused(self, name: str) -> None:
        data = (SHARED / f"vectors/oms-spec/test-vectors/v1.0/valid/{name}.bundle.json").read_bytes()
        assert refused(data)[0] == "attestation_malformed"


class TestName:
    def test_made_and_parsed(self) -> None:
        digits = hashlib.sha256(PAYLOAD).hexdigest()[:16]
        name = attestation_name("evidence", PAYLOAD, 2)
        assert name == f"evidence-{digits}-2.sigstore.json"
        parsed = parse_attestation_name(name)
        assert (parsed.kind, parsed.prefix, parsed.number) == ("evidence", digits, 2)
        assert str(parsed) == name

    @pytest.mark.parametrize(
        ("kind", "number"), [("verdicts", 1), ("", 1), ("index", 0), ("index", -1), ("index", 10**6)]
    )
    def test_make_refuses(self, kind: str, number: int) -> None:
        with pytest.raises(InputError):
            attestation_name(kind, PAYLOAD, number)

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "evidence-0123456789abcdef-1.json",
            "evidence-0123456789abcde-1.sigstore.json",
            "evidence-0123456789ABCDEF-1.sigstore.json",
            "evidence-0123456789abcdef-0.sigstore.json",
            "evidence-0123456789abcdef-01.sigstore.json",
            "evidence-0123456789abcdef-\u0661.sigstore.json",
            "evidence-0123456789abcdef-1.sigstore.json\n",
            "../evidence-0123456789abcdef-1.sigstore.json",
            "policy-0123456789abcdef-1.sigstore.json",
        ],
    )
    def test_parse_refuses(self, name: str) -> None:
        with pytest.raises(VerificationError) as caught:
            parse_attestation_name(name)
        assert caught.value.issues[0].code == "attestation_name"
