"""Words of commands, as containers and scripts are given them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["option_words"]


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Return a command's options as words: True stands alone, a mapping becomes JSON text, anything else its text."""
    words: list[str] = []
    for name, value in options.items():
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
