"""A Sigstore bundle v0.3 with a DSSE envelope and a key hint, in exactly one form.

White space, base64 with spare bits, ``keyid`` and a second signature are signed by nobody. So that a file cannot be
altered without a signature failing, one form alone is read: RFC 8785 and one LF, canonical base64, empty ``keyid``, one
signature. A bundle's own hash is still no identity; the payload's digest is.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, NoReturn

import attrs

from moeplan.digest import digest_bytes, hex_of
from moeplan.errors import InputError, Issue, VerificationError, escape
from moeplan.signing.dsse import IN_TOTO_PAYLOAD_TYPE, pae
from moeplan.signing.keys import PrivateKey, PublicKey, fingerprint, public_key_of, sign, verify_signature
from moeplan.wire.canonical import canonical_line
from moeplan.wire.strict_json import MAX_BYTES, parse_strict

__all__ = [
    "ATTESTATION_KINDS",
    "BUNDLE_MEDIA_TYPE",
    "MAX_ATTESTATION_BYTES",
    "AttestationName",
    "Sealed",
    "attestation_name",
    "is_attestation_name",
    "open_sealed",
    "parse_attestation_name",
    "seal",
    "verify_sealed",
]

BUNDLE_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
"""Source: sigstore/protobuf-specs, ``protos/sigstore_bundle.proto``, ``Bundle.media_type``."""

ATTESTATION_KINDS = ("evidence", "runlog", "index", "verdict")
"""What an attestation in a bundle may be, as its file name says."""

MAX_ATTESTATION_BYTES = 2 * MAX_BYTES
"""Largest attestation read, in bytes: a payload of the largest document's size in base64."""

_NAME = re.compile(r"(evidence|runlog|index|verdict)-([0-9a-f]{16})-([1-9][0-9]{0,3})\.sigstore\.json")


@attrs.frozen
class Sealed:
    """A signed payload as received: parsed, and nothing about it believed yet.

    Attributes:
        payload: the signed bytes.
        payload_type: always the in-toto media type.
        signature: the signature's bytes.
        hint_fingerprint: fingerprint of the key that the bundle says to use. A claim until verified.
    """

    payload: bytes
    payload_type: str
    signature: bytes
    hint_fingerprint: str

    @property
    def payload_digest(self) -> str:
        """The payload's digest, which is the attestation's identity."""
        return digest_bytes(self.payload)


@attrs.frozen
class AttestationName:
    """The parts of an attestation's file name: kind, first 16 hex digits of the payload's SHA-256, number from 1."""

    kind: str
    prefix: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.prefix}-{self.number}.sigstore.json"


def seal(private_key: PrivateKey, payload: bytes) -> bytes:
    """Return a Sigstore bundle that holds the in-toto statement ``payload``, signed; the same input, the same bytes.

    The hint is cosign's: base64 of the SHA-256 of the DER SubjectPublicKeyInfo. OpenSSF model signing writes the
    digest in hex and an empty ``tlogEntries`` beside it; neither is written or read here.
    Source: sigstore/cosign, ``pkg/cosign/bundle``, key hint; OpenSSF model signing specification v1.0.
    """
    key = hex_of(fingerprint(public_key_of(private_key)))
    signature = sign(private_key, pae(IN_TOTO_PAYLOAD_TYPE, payload))
    return _write(payload, signature, bytes.fromhex(key))


def _write(payload: bytes, signature: bytes, hint: bytes) -> bytes:
    return canonical_line(
        {
            "mediaType": BUNDLE_MEDIA_TYPE,
            "verificationMaterial": {"publicKey": {"hint": _encode(hint)}},
            "dsseEnvelope": {
                "payload": _encode(payload),
                "payloadType": IN_TOTO_PAYLOAD_TYPE,
                "signatures": [{"sig": _encode(signature), "keyid": ""}],
            },
        }
    )


def open_sealed(data: bytes) -> Sealed:
    """Return the parts of a Sigstore bundle in the one form that :func:`seal` writes. Verifies nothing.

    Raises:
        VerificationError: ``attestation_malformed``; ``payload_type``; ``attestation_not_canonical`` for other white
            space, key order, base64 or a ``keyid``.
    """
    try:
        value = parse_strict(data, max_bytes=MAX_ATTESTATION_BYTES)
    except InputError as error:
        raise VerificationError(
            *(attrs.evolve(issue, code="attestation_malformed") for issue in error.issues)
        ) from None
    top = _members(value, "$", "mediaType", "verificationMaterial", "dsseEnvelope")
    if top["mediaType"] != BUNDLE_MEDIA_TYPE:
        _malformed("$.mediaType", "not a Sigstore bundle of version 0.3", BUNDLE_MEDIA_TYPE, top["mediaType"])
    material = _members(top["verificationMaterial"], "$.verificationMaterial", "publicKey")
    key = _members(material["publicKey"], "$.verificationMaterial.publicKey", "hint")
    envelope = _members(top["dsseEnvelope"], "$.dsseEnvelope", "payload", "payloadType", "signatures")
    signature = _only_signature(envelope["signatures"])
    if envelope["payloadType"] != IN_TOTO_PAYLOAD_TYPE:
        got = escape(repr(envelope["payloadType"]), 80)
        _raise("$.dsseEnvelope.payloadType", "payload_type", "payload of another type", IN_TOTO_PAYLOAD_TYPE, got)
    hint = _decode(key["hint"], "$.verificationMaterial.publicKey.hint")
    if len(hint) != 32:
        _malformed("$.verificationMaterial.publicKey.hint", "not a SHA-256", "32 bytes", len(hint))
    payload = _decode(envelope["payload"], "$.dsseEnvelope.payload")
    raw = _decode(signature, "$.dsseEnvelope.signatures[0].sig")
    if _write(payload, raw, hint) != data:
        _raise("$", "attestation_not_canonical", "not in canonical form", "RFC 8785 and one LF")
    return Sealed(payload, IN_TOTO_PAYLOAD_TYPE, raw, "sha256:" + hint.hex())


def verify_sealed(sealed: Sealed, public_key: PublicKey) -> None:
    """Check that the key the bundle names is this one, then that it signed the payload.

    Raises:
        VerificationError: ``key_hint`` for another key, ``signature_invalid``.
    """
    mine = fingerprint(public_key)
    if sealed.hint_fingerprint != mine:
        _raise("$.verificationMaterial.publicKey.hint", "key_hint", "names another key", mine, sealed.hint_fingerprint)
    verify_signature(public_key, sealed.signature, pae(sealed.payload_type, sealed.payload))


def attestation_name(kind: str, payload: bytes, n: int) -> str:
    """Return the file name of an attestation: ``<kind>-<first 16 hex of the payload's SHA-256>-<n>.sigstore.json``.

    Args:
        kind: one of :data:`ATTESTATION_KINDS`.
        payload: the signed bytes.
        n: from 1; tells signatures of several keys over one payload apart.

    Raises:
        InputError: another kind, or a number out of range.
    """
    name = str(AttestationName(kind, hex_of(digest_bytes(payload))[:16], n))
    if _NAME.fullmatch(name) is None:
        expected = f"one of {', '.join(ATTESTATION_KINDS)}, and a number from 1 to 9999"
        raise InputError(Issue("$", "attestation_name", "no attestation name", expected, escape(name)))
    return name


def is_attestation_name(name: str) -> bool:
    """Return whether a file name (without a folder) is that of an attestation."""
    return _NAME.fullmatch(name) is not None


def parse_attestation_name(name: str) -> AttestationName:
    """Return the parts of an attestation's file name (without a folder).

    Raises:
        VerificationError: ``attestation_name``.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        expected = "<kind>-<16 hex digits>-<n>.sigstore.json"
        raise VerificationError(
            Issue(escape(name), "attestation_name", "not an attestation's file name", expected, escape(name))
        )
    return AttestationName(match[1], match[2], int(match[3]))


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(value: Any, path: str) -> bytes:
    if type(value) is not str:
        _malformed(path, "not text", "base64", value)
    try:
        data = base64.b64decode(value.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        _malformed(path, "not base64", "base64 (RFC 4648, section 4)")
    if _encode(data) != value:
        _raise(path, "attestation_not_canonical", "base64 with spare bits or characters", "its one base64 form")
    return data


def _members(value: Any, path: str, *keys: str) -> dict[str, Any]:
    if type(value) is not dict or set(value) != set(keys):
        _malformed(path, "object of another form", "exactly " + ", ".join(keys))
    return value


def _only_signature(value: Any) -> Any:
    path = "$.dsseEnvelope.signatures"
    if type(value) is not list or len(value) != 1:
        _malformed(path, "not one signature", "a list of exactly one")
    entry = _members(value[0], f"{path}[0]", "sig", "keyid")
    if entry["keyid"] != "":
        got = escape(repr(entry["keyid"]), 80)
        _raise(f"{path}[0].keyid", "attestation_not_canonical", "keyid, which nobody signs", "an empty keyid", got)
    return entry["sig"]


def _malformed(path: str, message: str, expected: str, got: object = None) -> NoReturn:
    shown = None if got is None else escape(repr(got), 80)
    _raise(path, "attestation_malformed", message, expected, shown)


def _raise(path: str, code: str, message: str, expected: str, got: str | None = None) -> NoReturn:
    raise VerificationError(Issue(path, code, message, expected, got))
