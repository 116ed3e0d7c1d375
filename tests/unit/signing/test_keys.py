"""Keys against second sources: RFC 6979 and RFC 8032 vectors, and the openssl command."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, utils
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from moeplan.errors import InputError, VerificationError
from moeplan.model.policy import Signer
from moeplan.signing.keys import (
    PrivateKey,
    fingerprint,
    load_private_key,
    load_public_key,
    public_key_of,
    public_pem,
    sign,
    verify_signature,
)
from moeplan.signing.test_key import TEST_KEY_FINGERPRINTS
from tests.unit.signing.conftest import TEST_KEY

ORDER_256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ORDER_384 = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973
ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
"""y of two of the Ed25519 points of order 8; that of the other two is its negative."""
OPENSSL = shutil.which("openssl")


def private_pem(key: PrivateKey, form: PrivateFormat = PrivateFormat.PKCS8) -> bytes:
    return key.private_bytes(Encoding.PEM, form, NoEncryption())


def refused(signature: bytes, key: PrivateKey, message: bytes) -> str:
    with pytest.raises(VerificationError) as caught:
        verify_signature(public_key_of(key), signature, message)
    assert caught.value.issues[0].code == "signature_invalid"
    return caught.value.issues[0].message


class TestVectors:
    def test_rfc_6979_a_2_5_p256_sha256(self) -> None:
        # RFC 6979 A.2.5, message "sample"; its s is above n / 2, so ours is n - s.
        secret = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
        r = 0xEFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716
        s = 0xF7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8
        key = ec.derive_private_key(secret, ec.SECP256R1())
        assert utils.decode_dss_signature(sign(key, b"sample")) == (r, ORDER_256 - s)

    def test_rfc_6979_a_2_6_p384_sha384(self) -> None:
        # RFC 6979 A.2.6, message "sample", SHA-384.
        secret = 0x6B9D3DAD2E1B8C1C05B19875B6659F4DE23C3B667BF297BA9AA47740787137D896D5724E4C70A825F872C9EA60D2EDF5
        r = 0x94EDBB92A5ECB8AAD4736E56C691916B3F88140666CE9FA73D64C4EA95AD133C81A648152E44ACF96E36DD1E80FABE46
        s = 0x99EF4AEB15F178CEA1FE40DB2603138F130E740A19624526203B6351D0A3A94FA329C145786E679E7B82C71A38628AC8
        key = ec.derive_private_key(secret, ec.SECP384R1())
        assert utils.decode_dss_signature(sign(key, b"sample")) == (r, min(s, ORDER_384 - s))

    def test_rfc_8032_7_1_test_2(self) -> None:
        secret = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
        expected = (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        )
        assert sign(ed25519.Ed25519PrivateKey.from_private_bytes(secret), b"\x72").hex() == expected


class TestLoad:
    def test_round_trip(self, any_key: PrivateKey) -> None:
        loaded = load_private_key(private_pem(any_key))
        public = load_public_key(public_pem(public_key_of(any_key)).encode())
        assert fingerprint(public_key_of(loaded)) == fingerprint(public) == fingerprint(public_key_of(any_key))

    def test_sec1_private_key(self, test_key: PrivateKey) -> None:
        loaded = load_private_key(private_pem(test_key, PrivateFormat.TraditionalOpenSSL))
        assert fingerprint(public_key_of(loaded)) == fingerprint(public_key_of(test_key))

    @pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
    def test_encrypted_key_refused(self, test_key: PrivateKey, form: PrivateFormat) -> None:
        pem = test_key.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"secret"))
        with pytest.raises(InputError) as caught:
            load_private_key(pem, source="key.pem")
        assert (caught.value.issues[0].path, caught.value.issues[0].code) == ("key.pem", "key_encrypted")

    @pytest.mark.parametrize("other", ["rsa", "p521", "k1"])
    def test_other_algorithms_refused(self, other: str) -> None:
        key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
        if other == "rsa":
            key = rsa.generate_private_key(65537, 2048)
        else:
            key = ec.derive_private_key(7, ec.SECP521R1() if other == "p521" else ec.SECP256K1())
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        with pytest.raises(InputError) as caught:
            load_private_key(private)
        assert caught.value.issues[0].code == "key_unsupported"
        with pytest.raises(InputError) as caught:
            load_public_key(public)
        assert caught.value.issues[0].code == "key_unsupported"

    def test_malformed_keys_refused(self, test_key: PrivateKey) -> None:
        private, public = private_pem(test_key), public_pem(public_key_of(test_key)).encode()
        for pem in (b"", b"not a key", public, private[:60], private + private):
            with pytest.raises(InputError) as caught:
                load_private_key(pem)
            assert caught.value.issues[0].code == "key_malformed"
        for pem in (b"", b"\xff\xfe", private, public[:60], public + public):
            with pytest.raises(InputError) as caught:
                load_public_key(pem)
            assert caught.value.issues[0].code == "key_malformed"

    def test_pem_text_is_what_a_policy_takes(self, any_key: PrivateKey) -> None:
        public = public_key_of(any_key)
        text = public_pem(public)
        assert "\r" not in text
        assert text.endswith("-----END PUBLIC KEY-----\n")
        signer = Signer(id="s", roles=("runner",), fingerprint=fingerprint(public), public_key=text)
        assert fingerprint(load_public_key(signer.public_key.encode())) == signer.fingerprint
        assert attrs.evolve(signer, id="t").public_key == text

    def test_windows_line_ends_name_the_same_key(self, test_key: PrivateKey) -> None:
        public = public_key_of(test_key)
        crlf = public_pem(public).replace("\n", "\r\n").encode()
        assert public_pem(load_public_key(crlf)) == public_pem(public)

    def test_fingerprint_over_der(self, any_key: PrivateKey) -> None:
        body = "".join(public_pem(public_key_of(any_key)).splitlines()[1:-1])
        import base64

        assert fingerprint(public_key_of(any_key)) == "sha256:" + hashlib.sha256(base64.b64decode(body)).hexdigest()

    @pytest.mark.parametrize("sign_bit", [0, 1])
    @pytest.mark.parametrize(
        "y", [0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18, 2**255 - 1, ORDER_8, 2**255 - 19 - ORDER_8]
    )
    def test_a_point_for_which_anybody_can_sign(self, y: int, sign_bit: int) -> None:
        raw = (y | sign_bit << 255).to_bytes(32, "little")
        pem = ed25519.Ed25519PublicKey.from_public_bytes(raw).public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )
        with pytest.raises(InputError) as caught:
            load_public_key(pem)
        assert caught.value.issues[0].code == "key_malformed"
        assert "anybody" in caught.value.issues[0].message


class TestSign:
    def test_deterministic_and_verifies(self, any_key: PrivateKey) -> None:
        first = sign(any_key, b"message")
        assert sign(any_key, b"message") == first
        verify_signature(public_key_of(any_key), first, b"message")

    def test_always_low_s(self, test_key: PrivateKey) -> None:
        for number in range(40):
            _, s = utils.decode_dss_signature(sign(test_key, b"%d" % number))
            assert 0 < s <= ORDER_256 // 2


class TestVerify:
    def test_another_message_refused(self, any_key: PrivateKey) -> None:
        assert refused(sign(any_key, b"message"), any_key, b"massage") == "signature does not verify"

    def test_another_key_refused(self, any_key: PrivateKey, test_key: PrivateKey) -> None:
        refused(sign(any_key, b"message"), test_key, b"message")

    def test_every_flipped_bit_refused(self, any_key: PrivateKey) -> None:
        signature = sign(any_key, b"message")
        for position in range(len(signature) * 8):
            flipped = bytearray(signature)
            flipped[position // 8] ^= 1 << position % 8
            refused(bytes(flipped), any_key, b"message")

    def test_other_lengths_refused(self, any_key: PrivateKey) -> None:
        signature = sign(any_key, b"message")
        for altered in (b"", signature[:-1], signature + b"\0", signature * 2):
            refused(altered, any_key, b"message")

    def test_high_s_twin_refused_though_it_verifies_elsewhere(self, test_key: PrivateKey) -> None:
        from cryptography.hazmat.primitives.hashes import SHA256

        r, s = utils.decode_dss_signature(sign(test_key, b"message"))
        twin = utils.encode_dss_signature(r, ORDER_256 - s)
        public = public_key_of(test_key)
        assert isinstance(public, ec.EllipticCurvePublicKey)
        public.verify(twin, b"message", ec.ECDSA(SHA256()))
        assert refused(twin, test_key, b"message") == "signature with the higher s"

    def test_out_of_range_refused(self, test_key: PrivateKey) -> None:
        for r, s in ((0, 1), (1, 0), (ORDER_256, 1), (1, ORDER_256)):
            signature = utils.encode_dss_signature(r, s)
            assert refused(signature, test_key, b"message") == "signature out of range"

    def test_lax_der_refused(self, test_key: PrivateKey) -> None:
        der = sign(test_key, b"message")
        long_length = der[:1] + b"\x81" + der[1:]
        padded = bytes([0x30, der[1] + 1, 0x02, der[3] + 1, 0]) + der[4:]
        for altered in (long_length, padded):
            assert refused(altered, test_key, b"message") == "signature is not DER"

    def test_ed25519_s_plus_order_refused(self) -> None:
        key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
        signature = sign(key, b"message")
        order = 2**252 + 27742317777372353535851937790883648493
        shifted = int.from_bytes(signature[32:], "little") + order
        refused(signature[:32] + shifted.to_bytes(32, "little"), key, b"message")


class TestPublishedKey:
    def test_fingerprint_is_listed(self, test_key: PrivateKey) -> None:
        assert fingerprint(public_key_of(test_key)) in TEST_KEY_FINGERPRINTS

    def test_public_half_lies_beside_it(self, test_key: PrivateKey) -> None:
        beside = TEST_KEY.with_name("published-test-key.pub.pem").read_bytes()
        assert beside == public_pem(public_key_of(test_key)).encode()
        assert TEST_KEY_FINGERPRINTS[0] in TEST_KEY.with_name("README.md").read_text("utf-8")

    def test_no_private_key_in_the_package(self) -> None:
        package = Path(__file__).resolve().parents[3] / "moeplan"
        marker = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
        for path in package.rglob("*"):
            assert not (path.is_file() and path.suffix != ".pyc" and marker.search(path.read_bytes())), path


@pytest.mark.skipif(OPENSSL is None, reason="the openssl command is not installed")
class TestOpenssl:
    def run(self, *words: str | Path) -> bytes:
        assert OPENSSL is not None
        return subprocess.run([OPENSSL, *map(str, words)], capture_output=True, check=True).stdout

    def test_fingerprint(self, tmp_path: Path, any_key: PrivateKey) -> None:
        (tmp_path / "pub").write_text(public_pem(public_key_of(any_key)))
        der = self.run("pkey", "-pubin", "-in", tmp_path / "pub", "-outform", "DER")
        assert fingerprint(public_key_of(any_key)) == "sha256:" + hashlib.sha256(der).hexdigest()

    def test_verifies_our_signature(self, tmp_path: Path, any_key: PrivateKey) -> None:
        (tmp_path / "pub").write_text(public_pem(public_key_of(any_key)))
        (tmp_path / "message").write_bytes(b"message")
        (tmp_path / "sig").write_bytes(sign(any_key, b"message"))
        if isinstance(any_key, ed25519.Ed25519PrivateKey):
            words = ["-rawin"]
        else:
            words = ["-rawin", "-digest", "sha256" if any_key.curve.name == "secp256r1" else "sha384"]
        command: list[str | Path] = [
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            tmp_path / "pub",
            "-sigfile",
            tmp_path / "sig",
        ]
        assert b"Verified Successfully" in self.run(*command, "-in", tmp_path / "message", *words)

    def test_keys_made_by_openssl_load(self, tmp_path: Path) -> None:
        for options in (
            ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
            ["-algorithm", "ED25519"],
        ):
            self.run("genpkey", *options, "-out", tmp_path / "key")
            key = load_private_key((tmp_path / "key").read_bytes())
            public = self.run("pkey", "-in", tmp_path / "key", "-pubout")
            assert public.decode() == public_pem(public_key_of(key))
