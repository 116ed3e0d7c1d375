"""EC P-256, EC P-384 and Ed25519 keys: load, name, sign, verify. One form of signature only."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, VerificationError, escape

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

__all__ = [
    "PrivateKey",
    "PublicKey",
    "fingerprint",
    "load_private_key",
    "load_public_key",
    "public_key_of",
    "public_pem",
    "sign",
    "verify_signature",
]

PrivateKey: TypeAlias = Union["EllipticCurvePrivateKey", "Ed25519PrivateKey"]
PublicKey: TypeAlias = Union["EllipticCurvePublicKey", "Ed25519PublicKey"]

_ORDERS = {
    "secp256r1": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "secp384r1": 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
}
"""Order n of each curve's group. Source: NIST SP 800-186, sections 3.2.1.3 and 3.2.1.4."""

_ED25519_BYTES = 64
"""Length of a signature. Source: RFC 8032, section 5.1.6."""

_ED25519_PRIME = 2**255 - 19
_ED25519_WEAK = frozenset(
    (
        0,
        1,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
        _ED25519_PRIME - 1,
    )
)
"""y of the eight points of small order, for which anybody can make signatures that verify.

Source: libsodium, ``ed25519_ref10.c``, ``ge25519_has_small_order``.
"""

_KINDS = "an EC P-256, EC P-384 or Ed25519 key"
_MAX_PEM_BYTES = 64 << 10


def load_private_key(pem: bytes, *, source: str | None = None) -> PrivateKey:
    """Return the unencrypted private key in ``pem`` (PKCS #8 or SEC 1).

    Raises:
        InputError: ``key_encrypted``, ``key_malformed``, or ``key_unsupported`` for another algorithm or curve.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"ENCRYPTED" in pem[:_MAX_PEM_BYTES]:
        hint = "decrypt it first: openssl pkcs8 -in key.pem -out plain.pem"
        raise _refuse("key_encrypted", "private key is encrypted", "an unencrypted PEM key", source, hint)
    try:
        _check_pem(pem, b"PRIVATE KEY")
        key = load_pem_private_key(pem, password=None)
    except UnsupportedAlgorithm:
        raise _refuse("key_unsupported", "unsupported private key", _KINDS, source) from None
    except (ValueError, TypeError):
        raise _refuse("key_malformed", "not a private key in PEM", _KINDS, source) from None
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _ORDERS:
        return key
    raise _refuse("key_unsupported", "unsupported private key", _KINDS, source)


def load_public_key(pem: bytes, *, source: str | None = None) -> PublicKey:
    """Return the public key in ``pem`` (SubjectPublicKeyInfo).

    Raises:
        InputError: ``key_malformed``, also for an Ed25519 point of small order or in a second encoding;
            ``key_unsupported`` for another algorithm or curve.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if b"PRIVATE KEY-----" in pem:
        hint = "give the public half: openssl pkey -in KEY -pubout"
        raise _refuse("key_malformed", "this is a private key", "its public half", source, hint)
    try:
        _check_pem(pem, b"PUBLIC KEY")
        key = load_pem_public_key(pem)
    except UnsupportedAlgorithm:
        raise _refuse("key_unsupported", "unsupported public key", _KINDS, source) from None
    except (ValueError, TypeError):
        raise _refuse("key_malformed", "not a public key in PEM", _KINDS, source) from None
    if isinstance(key, ed25519.Ed25519PublicKey):
        if _is_weak(key):
            hint = "have the signer make a key of their own: openssl genpkey -algorithm ED25519"
            raise _refuse("key_malformed", "a public key for which anybody can sign", _KINDS, source, hint)
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _ORDERS:
        return key
    raise _refuse("key_unsupported", "unsupported public key", _KINDS, source)


def _is_weak(key: Ed25519PublicKey) -> bool:
    """Return whether the point is of small order or not in its one encoding, which OpenSSL does not look at."""
    y = int.from_bytes(key.public_bytes_raw(), "little") & (2**255 - 1)
    return y in _ED25519_WEAK or y >= _ED25519_PRIME


def _check_pem(pem: bytes, label: bytes) -> None:
    """Refuse a file in which the key is not the only key, so that nobody reads another one than is used."""
    if len(pem) > _MAX_PEM_BYTES or pem.count(label + b"-----") != 2:
        raise ValueError("not one key")


def _refuse(code: str, message: str, expected: str, source: str | None, hint: str | None = None) -> InputError:
    where = "$" if source is None else escape(source, 400)
    return InputError(Issue(where, code, message, expected, None, hint), source=None if source is None else where)


def public_key_of(private: PrivateKey) -> PublicKey:
    """Return the public half of a private key."""
    return private.public_key()


def public_pem(public: PublicKey) -> str:
    """Return the one PEM text of a public key: SubjectPublicKeyInfo, 64 columns, LF line ends."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")


def fingerprint(public: PublicKey) -> str:
    """Return a public key's name: ``sha256:`` over its DER SubjectPublicKeyInfo (EC points uncompressed).

    ``openssl pkey -pubin -in k.pub -outform DER | sha256sum`` prints the same digits.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return digest_bytes(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def sign(private: PrivateKey, message: bytes) -> bytes:
    """Return the signature of ``message``; the same key and message give the same bytes.

    ECDSA uses SHA-256 on P-256 and SHA-384 on P-384, the deterministic nonce of RFC 6979, and the lower of s and n - s;
    the result is DER. Ed25519 is pure (RFC 8032, section 5.1.6) and gives 64 bytes.

    Raises:
        InputError: ``key_unsupported``, where the cryptographic library has no deterministic ECDSA.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    if not isinstance(private, ec.EllipticCurvePrivateKey):
        return private.sign(message)
    try:
        made = private.sign(message, ec.ECDSA(_hash_for(private.curve.name), deterministic_signing=True))
    except UnsupportedAlgorithm:
        hint = "install a cryptography wheel that brings OpenSSL 3.2 or later"
        raise _refuse("key_unsupported", "no deterministic ECDSA here", "RFC 6979", None, hint) from None
    r, s = utils.decode_dss_signature(made)
    return utils.encode_dss_signature(r, min(s, _ORDERS[private.curve.name] - s))


def _hash_for(curve: str) -> HashAlgorithm:
    from cryptography.hazmat.primitives.hashes import SHA256, SHA384

    return SHA256() if curve == "secp256r1" else SHA384()


def verify_signature(public: PublicKey, signature: bytes, message: bytes) -> None:
    """Check that ``signature`` over ``message`` was made with the key, and has the one form that :func:`sign` writes.

    An ECDSA signature's twin (r, n - s) verifies too and so would any laxer DER: they are refused, because what two
    forms can say, nobody signed.

    Raises:
        VerificationError: ``signature_invalid``.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        if isinstance(public, ec.EllipticCurvePublicKey):
            _check_ecdsa_form(public.curve.name, signature)
            public.verify(signature, message, ec.ECDSA(_hash_for(public.curve.name)))
        else:
            if len(signature) != _ED25519_BYTES:
                raise _invalid("signature of another length", f"{_ED25519_BYTES} bytes", f"{len(signature)} bytes")
            public.verify(signature, message)
    except InvalidSignature:
        raise _invalid("signature does not verify", f"a signature by {fingerprint(public)}") from None


def _check_ecdsa_form(curve: str, signature: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric import utils

    order = _ORDERS[curve]
    try:
        r, s = utils.decode_dss_signature(signature)
    except ValueError:
        raise _invalid("signature is not DER", "a DER sequence of two integers") from None
    if not (0 < r < order and 0 < s < order):
        raise _invalid("signature out of range", "r and s from 1 to n - 1")
    if s > order // 2:
        raise _invalid("signature with the higher s", "the lower of s and n - s")
    if utils.encode_dss_signature(r, s) != signature:
        raise _invalid("signature is not strict DER", "its one DER form")


def _invalid(message: str, expected: str, got: str | None = None) -> VerificationError:
    return VerificationError(Issue("$", "signature_invalid", message, expected, got))
