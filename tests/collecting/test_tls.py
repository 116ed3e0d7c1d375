"""https: the server's certificate is checked, always."""

from __future__ import annotations

import ipaddress
import json
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from moeplan.cli.main import main
from tests.collecting.conftest import DEMO
from tests.stub_server.server import serving

SIZES = ("--requests", "4", "--input-tokens", "4", "--output-tokens", "2", "--concurrency", "2", "--trials", "1")


def certificate(path: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """Make a certificate that signs itself; return a server's context with it, and the file it lies in."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    pem, private = path / f"{name}.pem", path / f"{name}.key"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private.write_bytes(key.private_bytes(*form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, private)
    return context, pem


def test_a_known_certificate_is_taken(collect: Callable[..., Any], tmp_path: Path) -> None:
    context, pem = certificate(tmp_path, "one")
    with serving("ok", context=context) as stub:
        code, made = collect(stub.url, *SIZES, "--ca-file", str(pem))
    assert code == 0
    assert [row["outcome"] for row in made.table("requests")] == ["complete"] * 4


def test_an_unknown_certificate_is_not(stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context, _ = certificate(tmp_path, "one")
    _, other = certificate(tmp_path, "two")
    words = ["collect", "endpoint", "--tokenizer", str(DEMO / "tiny-moe"), *stated, *SIZES, "--ca-file", str(other)]
    with serving("ok", context=context) as stub:
        assert main([*words, "--url", stub.url, "-o", str(tmp_path / "out"), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["got"]) == ("endpoint_not_ready", "connect_failed")
    assert stub.bodies == []


@pytest.mark.parametrize(("name", "code"), [("missing.pem", "file_read"), ("empty.pem", "file_read")])
def test_a_file_without_certificates_is_named(
    name: str, code: str, stated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.pem").write_text("")
    words = ["collect", "smoke", *stated, "--url", "https://127.0.0.1:9", "--ca-file", str(tmp_path / name)]
    assert main([*words, "-o", str(tmp_path / "out"), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["path"]) == (code, str(tmp_path / name))
