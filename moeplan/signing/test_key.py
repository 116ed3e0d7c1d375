"""Fingerprints of keys whose private halves are published. No private key is in the package."""

from __future__ import annotations

__all__ = ["TEST_KEY_FINGERPRINTS"]

TEST_KEY_FINGERPRINTS = ("sha256:a4bb5fa12167bd0f9c8de3b2f70551eacc582c9c9274c92de5b04aa51157d5e8",)
"""Keys anybody can sign with, ``tests/data/published-test-key.pem``: a policy that trusts one must say ``testKeys``."""
