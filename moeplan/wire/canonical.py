"""The one form of a document: RFC 8785 followed by one LF; its SHA-256 is the document's identity."""

from __future__ import annotations

from typing import Any

from moeplan.digest import digest_bytes

__all__ = ["canonical_bytes", "canonical_line", "identity"]


def canonical_bytes(value: Any) -> bytes:
    """Return ``value`` (dicts, lists, text, integers, booleans, None) in RFC 8785 form, without a final LF."""
    import rfc8785

    return rfc8785.dumps(value)


def canonical_line(value: Any) -> bytes:
    """Return ``value`` in a document's form: RFC 8785 and one LF."""
    return canonical_bytes(value) + b"\n"


def identity(value: Any) -> str:
    """Return the digest of ``value`` in a document's form, as ``sha256sum`` shows it for the file."""
    return digest_bytes(canonical_line(value))
