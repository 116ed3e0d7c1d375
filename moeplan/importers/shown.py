"""What messages and records take over from a tool's file: short words. A file's texts are prompts, paths and names."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from moeplan.errors import escape

__all__ = ["endpoint_word", "model_word", "shown", "version_word"]

_WORD = re.compile(r"[A-Za-z%][A-Za-z0-9%/_-]{0,19}", re.ASCII)
_ENDPOINT = re.compile(r"(?:/v[0-9]/)?[a-z]{1,16}(?:[/_+-][a-z]{1,16}){0,4}", re.ASCII)
_ADDRESS = re.compile(r"\d+(?:\.\d+){3}", re.ASCII)
_VERSION = re.compile(r"v?[0-9][0-9A-Za-z]{0,15}(?:[.+_-][0-9A-Za-z]{1,24}){0,8}", re.ASCII)


def shown(value: Any) -> str:
    """Return a refused value as a message shows it: a number, a short word, or else its type and length alone."""
    if value is None or type(value) in (bool, int, float, Decimal):
        return escape(str(value), 40)
    if type(value) is not str:
        return type(value).__name__
    return repr(value) if _WORD.fullmatch(value) else f"text of {len(value)} characters"


def model_word(name: str) -> str:
    """Return a model's name as a message shows it: of a path or an address the last part."""
    placed = name.startswith(("/", "~", ".")) or "://" in name or "@" in name or "\\" in name
    return escape(re.split(r"[/\\@]", name.rstrip("/"))[-1] if placed else name, 100)


def endpoint_word(text: str) -> bool:
    """Return whether a tool's word for what it called is the name of a kind, such as ``openai-chat``; no address."""
    return _ENDPOINT.fullmatch(text) is not None


def version_word(text: str | None) -> str | None:
    """Return a version that a tool's file states, None where the text is no version of at most 64 characters."""
    known = text is not None and len(text) <= 64 and _VERSION.fullmatch(text) and not _ADDRESS.fullmatch(text)
    return text if known else None
