"""DSSE's pre-authentication encoding: the bytes that are signed."""

from __future__ import annotations

__all__ = ["IN_TOTO_PAYLOAD_TYPE", "pae"]

IN_TOTO_PAYLOAD_TYPE = "application/vnd.in-toto+json"
"""Media type of an in-toto statement. Source: in-toto attestation framework v1, ``spec/v1/envelope.md``."""


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return ``DSSEv1 <length> <type> <length> <payload>``. Both lengths count bytes, not characters.

    Args:
        payload_type: media type or URI of the payload.
        payload: the payload's bytes, not their base64.

    Source: DSSE v1.0, ``protocol.md``, "Signature Definition".
    """
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
