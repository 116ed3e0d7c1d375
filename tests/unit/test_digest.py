"""SHA-256 against the vectors of FIPS 180-4 and the standard library."""

from __future__ import annotations

import io

from moeplan.digest import CHUNK_BYTES, digest_bytes, digest_chunks, digest_stream, hex_of

ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
MILLION_A = "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"


def test_published_vectors() -> None:
    assert digest_bytes(b"abc") == ABC
    assert digest_bytes(b"") == EMPTY
    assert digest_bytes(b"a" * 10**6) == MILLION_A


def test_pieces_and_streams_give_the_same() -> None:
    assert digest_chunks([b"a", b"", b"bc"]) == (ABC, 3)
    assert digest_chunks([]) == (EMPTY, 0)
    assert digest_stream(io.BytesIO(b"a" * 10**6)) == (MILLION_A, 10**6)
    data = b"x" * (CHUNK_BYTES + 1)
    stream = io.BytesIO(b"skipped" + data)
    stream.seek(7)
    assert digest_stream(stream) == (digest_bytes(data), CHUNK_BYTES + 1)


def test_hex() -> None:
    assert hex_of(ABC) == ABC[7:]
    assert len(hex_of(ABC)) == 64
