"""Names of nodes, devices and processes as keyed pseudonyms: the same key gives the same word, and no way back."""

from __future__ import annotations

import hashlib
import hmac

__all__ = ["KEY_BYTES", "PSEUDONYM_KINDS", "pseudonym"]

KEY_BYTES = 32
"""Length of a key."""
PSEUDONYM_KINDS = ("node", "gpu", "process", "endpoint")
_HEX_DIGITS = 12


def pseudonym(key: bytes, kind: str, name: str) -> str:
    """Return ``<kind>-`` and 12 hex digits of HMAC-SHA-256 over kind and name: an identifier of records.

    It does not hide a name from whoever holds the key. Source: RFC 2104.

    Args:
        key: the site's secret, ``KEY_BYTES`` long; it is never packed.
        kind: one of :data:`PSEUDONYM_KINDS`.
        name: what the system calls it: a node object's name, a device's serial or UUID, a host and a process id,
            an endpoint's scheme, host and port.
    """
    if kind not in PSEUDONYM_KINDS:
        raise ValueError(f"no kind of pseudonym: {kind}")
    made = hmac.new(key, f"{kind}\0{name}".encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"{kind}-{made.hexdigest()[:_HEX_DIGITS]}"
