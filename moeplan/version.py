"""The release: written into plans, verdicts and evidence, so that a later release can tell whose wording it reads."""

from __future__ import annotations

__all__ = ["GENERATOR", "VERSION"]

VERSION = "0.1.0"
GENERATOR = f"moeplan/{VERSION}"
