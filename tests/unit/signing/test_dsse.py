from __future__ import annotations

from moeplan.signing.dsse import pae


def test_lengths_count_bytes() -> None:
    assert pae("type/é", "ü€".encode()) == b"DSSEv1 7 type/\xc3\xa9 5 \xc3\xbc\xe2\x82\xac"


def test_the_boundary_between_type_and_payload_is_signed() -> None:
    assert pae("a", b"b c") != pae("a b", b"c")
    assert pae("", b"") == b"DSSEv1 0  0 "
