"""The part of a line that is shown: around what was found, escaped, without what looks like a secret."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moeplan.errors import escape

__all__ = ["EXCERPT_CHARACTERS", "excerpt"]

EXCERPT_CHARACTERS = 300
"""The most characters of a line that are shown."""

_BEFORE = 80
_SECRET = re.compile(
    r"(?i)(\bbearer\s+|\b(?:api[_-]?key|hf_token|access[_-]?token|password|secret)\b[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]+"
    r"|\bhf_[A-Za-z0-9]{16,}"
)


def excerpt(line: bytes, texts: Sequence[str]) -> str:
    """Return what is shown of a line.

    Args:
        line: valid UTF-8.
        texts: what was looked for; a long line is shown from a little before the first of them that it holds.
    """
    shown = _SECRET.sub(lambda found: (found[1] or "") + "***", line.decode("utf-8", "replace")).strip()
    if len(shown) <= EXCERPT_CHARACTERS:
        return escape(shown, EXCERPT_CHARACTERS)
    lowered = shown.lower()
    at = min((place for text in texts if (place := lowered.find(text.lower())) >= 0), default=0)
    start = max(0, at - _BEFORE)
    return ("…" if start else "") + escape(shown[start:], EXCERPT_CHARACTERS)
