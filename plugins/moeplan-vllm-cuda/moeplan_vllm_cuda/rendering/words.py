"""Command lines: options as words, for a container, a shell and ``docker run``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moeplan.manifests.words import option_words

__all__ = ["MODELS", "SHELL_START", "serve_words", "shell_lines"]

MODELS = "/models"
"""Where a node's model directory is mounted in a container."""
SHELL_START = "$((LWS_WORKER_INDEX * {local}))"
"""A worker's first data-parallel rank, reckoned by the shell."""


def serve_words(model: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return ``vllm serve`` with its model and options; never the server's module, which knows no headless ranks."""
    return ["vllm", "serve", model, *option_words(arguments)]


def shell_lines(words: Sequence[str], *, expand: Sequence[str] = ()) -> str:
    """Return a command for a shell, an option with its value on each line; ``expand`` are words left to the shell."""
    return " \\\n  ".join(_grouped([f'"{word}"' if word in expand else shlex.quote(word) for word in words]))


def _grouped(words: Sequence[str]) -> Iterator[str]:
    line: list[str] = []
    for word in words:
        if word.startswith("-") and line:
            yield " ".join(line)
            line = []
        line.append(word)
    yield " ".join(line)
