"""Command lines: options as words, for a container, a shell and ``docker run``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["MODELS", "SHELL_START", "option_words", "serve_words", "shell_lines"]

MODELS = "/models"
"""Where a node's model directory is mounted in a container."""
SHELL_START = "$((LWS_WORKER_INDEX * {local}))"
"""A worker's first data-parallel rank, reckoned by the shell."""


def option_words(arguments: Mapping[str, Any]) -> list[str]:
    """Return options as words: True stands alone, a mapping becomes JSON text."""
    words: list[str] = []
    for name, value in arguments.items():
        words.append(name)
        if isinstance(value, Mapping):
            words.append(json.dumps(_plain(value)))
        elif value is not True:
            words.append(str(value))
    return words


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


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
